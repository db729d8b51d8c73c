"""`fiatgate status`: the health of everything, on one screen."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, Final

import requests
import typer
from rich import box
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from cli import connection, output, stack
from cli.output import Json
from fiatgate.status.v1 import status_pb2
from kit.base.clock import SystemClock
from kit.base.config.processes import SERVICES
from kit.rpc.errors import Refused

ANSWER_SECONDS = 3
REFRESH_SECONDS = 1.0

SHOWN_ABOVE_ZERO: Final = frozenset({"acts_unchained", "oldest_unchained_act_seconds"})
"""Numbers that every service has: at zero they would take a line of each on the screen."""


def status(
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat every second until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Health of every service, its workers and its queues. Exit code 1 when something is not healthy."""
    services = _query_all()
    if as_json:
        output.print_json(services)
    elif watch:
        with _until_interrupted(), _shown() as show:
            while True:
                show(_table(services, caption=f"{SystemClock().now():%H:%M:%S} UTC, Ctrl-C ends"))
                time.sleep(REFRESH_SECONDS)
                services = _query_all()
    else:
        output.console.print(_table(services))
    raise typer.Exit(0 if all(service["healthy"] for service in services) else 1)


def _query_all() -> list[dict[str, Any]]:
    """Queries all at the same time: several that do not answer cost no more time than one."""
    queries: list[Callable[[], dict[str, Any]]] = [
        _query_gateway,
        *(partial(_query_http, name, url) for name, url in connection.console_urls().items()),
        *(partial(_query, name) for name in SERVICES),
    ]
    with ThreadPoolExecutor(len(queries)) as threads:
        return list(threads.map(lambda query: query(), queries))


def _query_gateway() -> dict[str, Any]:
    try:
        url = connection.gateway_url()
    except stack.NoAddress:  # the services can still be queried where only their addresses are known
        return {"service": "gateway", "healthy": False, "error": "NO_ADDRESS: set FIATGATE_PUBLIC_URL"}
    return _query_http("gateway", url)


def _query_http(name: str, url: str) -> dict[str, Any]:
    """Returns the process' answer at /readyz: the services that serve, from its side."""
    row: dict[str, Any] = {"service": name, "healthy": False}
    try:
        answer = requests.get(f"{url}/readyz", timeout=ANSWER_SECONDS)
        return row | {"healthy": answer.status_code == 200, "services": answer.json()["services"]}
    except (requests.RequestException, KeyError):
        return row | {"error": "NO_ANSWER"}


def _query(name: str) -> dict[str, Any]:
    try:
        answer = connection.status(name).GetStatus(status_pb2.GetStatusRequest(), timeout=ANSWER_SECONDS)
    except Refused as refused:
        return {"service": name, "healthy": False, "error": refused.reason}
    workers_well = all(worker.healthy for worker in answer.workers)
    return output.plain(answer) | {"healthy": answer.database_ok and answer.nats_ok and workers_well}


def _table(services: list[dict[str, Any]], *, caption: str | None = None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, caption=caption)
    for column in ("service", "", "up"):
        table.add_column(column, no_wrap=True)
    table.add_column("workers and numbers", overflow="fold")
    # A small screen shows only the first rows.
    ill_first = sorted(services, key=lambda each: bool(each["healthy"]))
    for service in ill_first:
        well = "[green]well[/green]" if service["healthy"] else "[bold red]ill[/bold red]"
        up = output.age(service.get("started_at"))
        table.add_row(service["service"], well, up, "\n".join(details(service)) or "-")
    return table


def details(service: dict[str, Any]) -> Iterator[str]:
    """Yields a line for each trouble, then one short line for all healthy parts."""
    if "error" in service:
        yield f"[bold red]does not answer[/bold red] ({escape(service['error'])})"
        return
    if "services" in service:
        away = [name for name, state in service["services"].items() if state != "serving"]
        yield f"[bold red]not serving: {escape(', '.join(away))}[/bold red]" if away else "all services serve"
        return
    for name, ok in (("database", service["database_ok"]), ("nats", service["nats_ok"])):
        if not ok:
            yield f"[bold red]{escape(_trouble_with(name, service))}[/bold red]"
    for worker in service["workers"]:
        if not worker["healthy"]:
            yield f"[bold red]{escape(worker['name'])}[/bold red] {_round_of(worker)} {escape(worker['detail'])}"
    well = [worker for worker in service["workers"] if worker["healthy"]]
    for worker in well:
        if worker["detail"]:  # it waits for the end of an outage
            yield f"[yellow]{escape(worker['name'])}[/yellow] {_round_of(worker)} {escape(worker['detail'])}"
    well = [worker for worker in well if not worker["detail"]]
    if well:
        yield ", ".join(f"[green]{escape(worker['name'])}[/green] {_round_of(worker)}" for worker in well)
    numbers = [each for each in service["gauges"] if each["value"] or each["name"] not in SHOWN_ABOVE_ZERO]
    if numbers:
        yield ", ".join(_number(gauge) for gauge in numbers)


def _trouble_with(name: str, service: dict[str, Any]) -> str:
    """Returns "nats away", or the detail of the connection to NATS: a refused password is no outage."""
    said = [worker["detail"] for worker in service["workers"] if name == "nats" and worker["name"] == "bus"]
    return f"nats away: {said[0]}" if said and said[0] else f"{name} away"


def _number(gauge: dict[str, Any]) -> str:
    value = f"{gauge['value']:.0f}" if gauge["unit"] == "seconds" else f"{gauge['value']:g}"
    return f"{gauge['name']}=[bold]{value}[/bold]"


def _round_of(worker: dict[str, Any]) -> str:
    """Returns how long ago the worker's last step ended well."""
    return f"[dim]{output.age(worker['last_run_at'])}[/dim]"


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
