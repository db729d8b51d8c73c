"""What the journals say of one round: how long nothing was answered, and what of the answers is not in the books."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.faults.checker import Evidence
from tests.faults.shoppers import LATER

Line = Mapping[str, Any]
KINDS: Final = ("create", "mark", "confirm")
"""The calls of a purchase that succeeds."""
LATE_SECONDS: Final = 15
LATE_SHARE_MOST: Final = 0.25
"""The share of later calls that may fail. A machine with enough processor time fails none of them."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """When what was, and what should not have been. `load`: from when to when purchases began.

    began    before the event, which looks for its node first: calls of that time may still be done
    in_step  all nodes were there again, and the load went on
    """

    load: tuple[float, float]
    began: float
    in_step: float
    settled_seconds: float
    purchases: int
    found: list[str]


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request and its answer. `well`: done; `failed`: not done, or unknown, and to be asked again."""

    what: str
    began: float
    ended: float
    well: bool
    failed: bool


def calls(clients: Iterable[Line], steps: Iterable[Line]) -> list[Call]:
    """Returns all requests until recovery, in the order of their answers. A refusal is neither well nor failed."""
    http = (
        _call(line, well=line["http"] in (200, 201), failed=line["http"] is None or line["http"] >= 500)
        for line in clients
        if "http" in line and line["phase"] != "after"
    )
    rpc = (
        _call(line, well=line["refused"] is None, failed=line["refused"] in LATER)
        for line in steps
        if line["phase"] != "after"
    )
    return sorted((*http, *rpc), key=lambda call: call.ended)


def longest_gap_seconds(
    found: Sequence[Call], what: str, *, load: tuple[float, float], since_seconds: float
) -> float:
    """Returns the longest time without a call of this kind that was done, from the last one before a time on.

    load  its beginning and its end: before the first call and after the last one is a gap, too
    """
    began, ended = load
    ends = [call.ended for call in found if call.what == what and call.well]
    marks = sorted([began, *ends, max([ended, *ends])])
    return max(later - sooner for sooner, later in itertools.pairwise(marks) if later > since_seconds)


def never_again(found: Sequence[Call], course: Course) -> list[str]:
    """Returns a line for each kind of call of which none was begun and done while all nodes were in step again."""
    done = {call.what for call in found if call.well and call.began > course.in_step}
    return [f"no {what} was done after the nodes were in step" for what in KINDS if what not in done]


def calm_failures(found: Sequence[Call], course: Course) -> int:
    """Returns how many calls failed after all nodes were in step again."""
    return sum(call.failed and call.ended > course.in_step for call in found)


def failing_seconds(found: Sequence[Call], *, since_seconds: float) -> float:
    """Returns the time from `since_seconds` until the last failed call ended; 0 when none failed."""
    return max(
        (call.ended - since_seconds for call in found if call.failed and call.ended > since_seconds),
        default=0.0,
    )


def late_seconds(found: Sequence[Call], *, since_seconds: float) -> float:
    """Returns the time from the end of the gap until the last failed call ended; 0 when none failed after it."""
    return failing_seconds(found, since_seconds=_gap_end_seconds(found, since_seconds))


def late_share(found: Sequence[Call], *, since_seconds: float) -> float:
    """Returns the part that failed of the calls that began LATE_SECONDS after the end of the gap, or later."""
    since = _gap_end_seconds(found, since_seconds) + LATE_SECONDS
    late = [call for call in found if call.began >= since]
    return sum(call.failed for call in late) / len(late) if late else 0.0


def too_late(share: float) -> list[str]:
    if share < LATE_SHARE_MOST:
        return []
    return [f"{share:.0%} of the requests failed from {LATE_SECONDS} s after the gap on"]


def _gap_end_seconds(found: Sequence[Call], since_seconds: float) -> float:
    """The gap is the longest time without any call of KINDS that was done, from the last one before `since_seconds`."""
    ends = [call.ended for call in found if call.what in KINDS and call.well]
    gaps = [(later - sooner, later) for sooner, later in itertools.pairwise(ends) if later > since_seconds]
    return max(gaps, default=(0.0, since_seconds))[1]


def lost_invoices(seen: Evidence) -> list[str]:
    """Returns the ids of invoices that were answered with 201 and do not exist."""
    answered = {
        json.loads(line["body"])["invoice_id"]
        for line in seen.answers
        if line["what"] == "create" and line["http"] == 201
    }
    return sorted(answered - seen.invoices.keys())


def lost_deals(seen: Evidence, steps: Iterable[Line]) -> list[str]:
    """Returns a line for each deal that was marked or confirmed, by its answer, and whose history does not say so."""
    of_invoice: dict[str, set[str]] = defaultdict(set)
    states: dict[str, set[str]] = defaultdict(set)
    for deal in seen.deals:
        of_invoice[str(deal["invoice_id"])].add(str(deal["id"]))
    for step in seen.transitions:
        states[str(step["deal_id"])] |= {step["status"], step["sub_status"]}
    return list(_lost_deals(steps, of_invoice, states))


def _lost_deals(
    steps: Iterable[Line], of_invoice: Mapping[str, set[str]], states: Mapping[str, set[str]]
) -> Iterator[str]:
    for step in steps:
        if step["refused"] is not None:
            continue
        if step["what"] == "mark":
            known = {state for deal in of_invoice.get(step["id"], ()) for state in states.get(deal, ())}
            if "awaiting_confirmation" not in known:
                yield f"the deal of invoice {step['id']} was answered as marked and is not"
        elif step["what"] == "confirm" and "completed" not in states.get(step["id"], ()):
            yield f"deal {step['id']} was answered as confirmed and is not"


def _call(line: Line, *, well: bool, failed: bool) -> Call:
    return Call(what=line["what"], began=line["began"], ended=line["ended"], well=well, failed=failed)
