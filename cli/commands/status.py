"""`fiatgate status`: the health of everything, on one screen."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from cli import connection, output, stack
from cli.command import shaped
from fiatgate.status.v1 import status_pb2
from kit.base.clock import SystemClock
from kit.base.services import SERVICES
from kit.rpc import health
from kit.rpc.errors import Refused
from kit.rpc.health import Line, Part

EXAMPLE: Final = "fiatgate status --watch"

ANSWER_SECONDS = 3
REFRESH_SECONDS = 1.0

STATES: Final = {health.WELL: "good", health.ATTENTION: "wait", health.ILL: "bad"}
TONES: Final = {"bad": "bold red", "wait": "yellow", "good": "green", "quiet": "dim", "strong": "bold"}


@dataclass(frozen=True)
class Reported:
    """The answer of a process: as JSON, and in words."""

    row: dict[str, Any]
    lines: Sequence[Line]
    state: str

    @property
    def healthy(self) -> bool:
        return bool(self.row["healthy"])


@shaped(None)
def status(
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat every second until Ctrl-C.")] = False,
) -> None:
    """Health of every service, its workers and its queues. Exit code 1 when something is not healthy."""
    services = _query_all()
    if output.mode.json:
        output.print_json([service.row for service in services])
    elif watch:
        with _until_interrupted(), _shown() as show:
            while True:
                show(_table(services, caption=f"{SystemClock().now():%H:%M:%S} UTC, Ctrl-C ends"))
                time.sleep(REFRESH_SECONDS)
                services = _query_all()
    else:
        output.console.print(_table(services))
    raise typer.Exit(0 if all(service.healthy for service in services) else 1)


def _query_all() -> list[Reported]:
    """Queries all at the same time: several that do not answer cost no more time than one."""
    queries: list[Callable[[], Reported]] = [
        _query_gateway,
        *(partial(_query_http, name, url) for name, url in connection.internal_console_urls().items()),
        *(partial(_query, name) for name in SERVICES),
    ]
    with ThreadPoolExecutor(len(queries)) as threads:
        return list(threads.map(lambda query: query(), queries))


def _query_gateway() -> Reported:
    try:
        url = connection.internal_gateway_url()
    except stack.NoAddress:  # the services can still be queried where only their addresses are known
        return _silent("gateway", "NO_ADDRESS: set FIATGATE_PUBLIC_URL")
    return _query_http("gateway", url)


def _query_http(name: str, url: str) -> Reported:
    """Returns the process' answer at /readyz: the services that serve, from its side."""
    import requests  # noqa: PLC0415  `fiatgate --help` imports this file, and needs no HTTP client

    try:
        answer = requests.get(f"{url}/readyz", timeout=ANSWER_SECONDS)
        services = answer.json()["services"]
    except (requests.RequestException, KeyError):
        return _silent(name, "NO_ANSWER")
    row = {"service": name, "healthy": answer.status_code == 200, "services": services}
    state = health.WELL if row["healthy"] else health.ILL
    return Reported(row, list(health.lines_of_http(services)), state)


def _query(name: str) -> Reported:
    try:
        answer = connection.status(name).GetStatus(status_pb2.GetStatusRequest(), timeout=ANSWER_SECONDS)
    except Refused as refused:
        return _silent(name, refused.reason)
    row = output.plain(answer) | {"healthy": health.is_well(answer)}
    return Reported(row, list(health.lines_of(answer, age=_round_of)), health.state_of(answer))


def _silent(name: str, reason: str) -> Reported:
    return Reported(
        {"service": name, "healthy": False, "error": reason}, [health.no_answer(reason)], health.ILL
    )


def _table(services: list[Reported], *, caption: str | None = None) -> Table:
    is_test = any(service.row.get("mode") == "test" for service in services)
    title = "Test mode: no real money" if is_test else None
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, caption=caption, title=title)
    for column in ("service", "", "up"):
        table.add_column(column, no_wrap=True)
    table.add_column("workers and numbers", overflow="fold")
    # A small screen shows only the first rows.
    for service in sorted(services, key=lambda each: each.healthy):
        state = shown(Line((Part(service.state, STATES[service.state]),)))
        up = output.age(service.row.get("started_at"))
        table.add_row(service.row["service"], state, up, "\n".join(map(shown, service.lines)) or "-")
    return table


def shown(line: Line) -> str:
    """Returns the line with its colours, and the next step beneath it."""
    text = "".join(_coloured(part) for part in line.parts)
    return f"{text}\n[dim]{escape(line.step)}[/dim]" if line.step else text


def _coloured(part: Part) -> str:
    return f"[{TONES[part.tone]}]{escape(part.text)}[/{TONES[part.tone]}]" if part.tone else escape(part.text)


def _round_of(worker: status_pb2.WorkerStatus) -> str:
    """Returns how long ago the worker's last step ended well."""
    return output.age(output.plain(worker)["last_run_at"])


@contextmanager
def _shown() -> Iterator[Callable[[Table], None]]:
    """Shows each table in place of the one before; without a terminal, one after the other."""
    if not output.console.is_terminal:
        yield output.console.print
        return
    with Live(console=output.console, auto_refresh=False, screen=True) as live:
        yield partial(live.update, refresh=True)


@contextmanager
def _until_interrupted() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
