"""The health of a process in words: the same for `fiatgate status` and for the desk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fiatgate.status.v1 import status_pb2 as pb

WELL: Final = "well"
ATTENTION: Final = "attention"
"""Well itself, but a number asks an operator for a step."""
ILL: Final = "ill"

SHOWN_ABOVE_ZERO: Final = frozenset({"acts_unchained", "oldest_unchained_act_seconds"})
"""Numbers that every service has: at zero they would take a line of each on the screen."""

NO_ANSWER_STEP: Final = (
    "Check whether its process runs, and read the end of its log. Calls that need it are refused meanwhile, all others "
    "work."
)
NOT_SERVING_STEP: Final = "Check these services: this process waits for them."
DATABASE_STEP: Final = (
    "Check PostgreSQL and the address of this service's database. It works again by itself as soon as the database "
    "answers."
)
NATS_STEP: Final = "Check NATS. Nothing is lost: facts wait and are announced when it is back."
WORKER_STEP: Final = "Read the log of the process: it names the failure. The loop tries again by itself."


@dataclass(frozen=True)
class Part:
    """Some words of a line. tone: bad, wait, good, quiet, strong, or empty."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Line:
    """A line about a process. `step` is what an operator does next; empty: nothing."""

    parts: tuple[Part, ...]
    step: str = ""

    @property
    def is_trouble(self) -> bool:
        return any(part.tone == "bad" for part in self.parts)


def is_well(answer: pb.GetStatusResponse) -> bool:
    """Returns whether the process has its database and NATS, and each of its loops works."""
    return answer.database_ok and answer.nats_ok and all(worker.healthy for worker in answer.workers)


def state_of(answer: pb.GetStatusResponse) -> str:
    """Returns WELL, ATTENTION or ILL."""
    if not is_well(answer):
        return ILL
    return ATTENTION if any(_asks(each) for each in answer.gauges) else WELL


def _asks(gauge: pb.Gauge) -> bool:
    return bool(gauge.step) and gauge.value > 0


def no_answer(reason: str) -> Line:
    """Returns the line of a process that does not answer."""
    return Line((Part("does not answer", "bad"), Part(f" ({reason})")), NO_ANSWER_STEP)


def lines_of_http(services: Mapping[str, str]) -> Iterator[Line]:
    """Yields the line of a process with an HTTP server, from its answer at /readyz."""
    away = [name for name, state in services.items() if state != "serving"]
    if away:
        yield Line((Part(f"not serving: {', '.join(away)}", "bad"),), NOT_SERVING_STEP)
    else:
        yield Line((Part("all services serve"),))


def lines_of(answer: pb.GetStatusResponse, *, age: Callable[[pb.WorkerStatus], str]) -> Iterator[Line]:
    """Yields a line for each trouble, then one short line for all healthy parts.

    age  returns how long ago the last round of a loop ended well
    """
    yield from troubles_of(answer, age=age, named=lambda gauge: f"{gauge.name}={number_text(gauge)}")
    yield from loops_of(answer, age=age)
    numbers = numbers_of(answer)
    if numbers:
        yield Line(_listed((Part(f"{each.name}="), Part(number_text(each), "strong")) for each in numbers))


def troubles_of(
    answer: pb.GetStatusResponse, *, age: Callable[[pb.WorkerStatus], str], named: Callable[[pb.Gauge], str]
) -> Iterator[Line]:
    """Yields a line for each trouble, and one for each loop that waits for the end of an outage.

    named  returns a number with what it counts
    """
    if not answer.database_ok:
        yield Line((Part("database away", "bad"),), DATABASE_STEP)
    if not answer.nats_ok:
        yield Line((Part(_nats_trouble(answer), "bad"),), NATS_STEP)
    for worker in answer.workers:
        if not worker.healthy:
            yield Line((Part(worker.name, "bad"), *_round_of(worker, age)), WORKER_STEP)
    for worker in answer.workers:
        if worker.healthy and worker.detail:
            yield Line((Part(worker.name, "wait"), *_round_of(worker, age)))
    for gauge in answer.gauges:
        if _asks(gauge):
            yield Line((Part(named(gauge), "bad"),), gauge.step)


def loops_of(answer: pb.GetStatusResponse, *, age: Callable[[pb.WorkerStatus], str]) -> Iterator[Line]:
    """Yields one line with all loops that are well."""
    well = [worker for worker in answer.workers if worker.healthy and not worker.detail]
    if well:
        yield Line(_listed((Part(worker.name, "good"), *_round_of(worker, age)) for worker in well))


def numbers_of(answer: pb.GetStatusResponse) -> list[pb.Gauge]:
    """Returns the numbers that are no trouble."""
    numbers = [each for each in answer.gauges if not _asks(each)]
    return [each for each in numbers if each.value or each.name not in SHOWN_ABOVE_ZERO]


def number_text(gauge: pb.Gauge) -> str:
    return f"{gauge.value:.0f}" if gauge.unit == "seconds" else f"{gauge.value:g}"


def _nats_trouble(answer: pb.GetStatusResponse) -> str:
    """Returns "nats away", or the detail of the connection to NATS: a refused password is no outage."""
    details = [worker.detail for worker in answer.workers if worker.name == "bus"]
    return f"nats away: {details[0]}" if details and details[0] else "nats away"


def _round_of(worker: pb.WorkerStatus, age: Callable[[pb.WorkerStatus], str]) -> Iterator[Part]:
    yield Part(f" {age(worker)}", "quiet")
    if worker.detail:
        yield Part(f" {worker.detail}")


def _listed(items: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for item in items:
        parts += [Part(", "), *item] if parts else item
    return tuple(parts)
