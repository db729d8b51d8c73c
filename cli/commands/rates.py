"""`fiatgate rates …`"""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final

import typer

from cli import connection, output, pending
from cli.command import argument, command, group, option
from cli.listing import Table
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.proto import datetime_from

app = group("rates", "Rates: fiat per USDT.")
CODE: Final = argument("currency_code", "CODE", "Currency code.")
COLUMNS: Final = (
    "currency_code: currency | in_force.rate: rate | in_force.source_rate: before markup"
    " | in_force.origin: origin | in_force.taken_at: taken at | in_force.fresh: fresh"
    " | in_force.fresh_until: fresh until | held.source_rate: held back | held_change_percent: change, %"
)
TABLE: Final = Table(
    columns=COLUMNS,
    stacks="currency_code in_force.origin | in_force.rate in_force.source_rate"
    " | in_force.taken_at in_force.fresh_until | in_force.fresh held.source_rate | held_change_percent",
    empty="No rates yet: fiatgate rates set CODE RATE",
)
PULLED: Final = Table(columns=COLUMNS, empty="No sources: set FIATGATE_RATE_SOURCES")
HISTORY: Final = Table(
    columns="at: since | lowest | highest | last | accepted | by_operators: by operators",
    stacks="at | lowest highest | last | accepted by_operators",
    empty="No rate was accepted in this time",
)


class Valid(StrEnum):
    """How long a rate that is set by hand counts."""

    HOUR = "1h"
    DAY = "24h"
    UNTIL_REPLACED = "until-replaced"


_VALIDITIES: Final = {
    Valid.HOUR: pb.RATE_VALIDITY_HOUR,
    Valid.DAY: pb.RATE_VALIDITY_DAY,
    Valid.UNTIL_REPLACED: pb.RATE_VALIDITY_UNTIL_REPLACED,
}
_ANYWAY: Final = "Request it although the jump guard refuses it; another person approves."


@command(
    *(app, "set", "EUR 0.92", pb.SetRateRequest),
    CODE,
    argument("rate", "RATE", "Fiat per USDT, before the markup."),
    option("anyway", None, _ANYWAY, default=False),
)
def set_one(
    request: pb.SetRateRequest,
    *,
    valid: Annotated[Valid, typer.Option(help="How long it counts.")] = Valid.HOUR,
) -> None:
    """Set a rate by hand; it is used instead of the polled ones for its time."""
    request.validity = _VALIDITIES[valid]
    made = pending.reporting_rejected(
        *("catalog", f"currency:{request.currency_code}"), lambda: connection.catalog().SetRate(request).rate
    )
    output.record(made)
    if made.HasField("fresh_until"):
        output.note(
            f"[dim]It counts until {datetime_from(made.fresh_until):%Y-%m-%d %H:%M:%S} UTC. Then the sources' rate "
            "counts again. Without sources the currency has no rate.[/dim]"
        )
    else:
        output.note(
            "[dim]It counts until another one is set; the sources' rates do not count meanwhile.[/dim]"
        )


@command(app, "list", "", pb.ListRatesRequest)
def list_all(request: pb.ListRatesRequest) -> None:
    """List every currency's rate in force with the end of its freshness, and the rate that the jump guard holds."""
    TABLE.show_all(connection.catalog().ListRates(request).rates)


@command(app, "history", "EUR --days 7", pb.GetRateHistoryRequest, CODE)
def history(
    request: pb.GetRateHistoryRequest,
    *,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=93, help="The days up to now.")] = 1,
) -> None:
    """List the lowest, highest and last rate of each part of the time, before the markup: hours, or days."""
    until = SystemClock().now()
    request.step_seconds = 3600 if days <= 7 else 86_400
    request.until.FromDatetime(until)
    request.since.FromDatetime(until - timedelta(days=days))
    HISTORY.show_all(connection.catalog().GetRateHistory(request).steps)


@command(app, "pull", "", pb.PullRatesRequest)
def pull(request: pb.PullRatesRequest) -> None:
    """Query the configured sources now."""
    PULLED.show_all(connection.catalog().PullRates(request, timeout=60).rates)


@command(
    *(app, "accept", "EUR", pb.AcceptRateRequest),
    CODE,
    argument(
        *("expected_source_rate", "RATE", "The held rate that `rates list` shows; else the present one."),
        default="",
    ),
)
def accept(request: pb.AcceptRateRequest) -> None:
    """Accept the rate that the jump guard holds back; refused if another one is held by then."""
    catalog, code = connection.catalog(), request.currency_code
    if not request.expected_source_rate:
        states = {each.currency_code: each for each in catalog.ListRates(pb.ListRatesRequest()).rates}
        state = states.get(code, pb.RateState())
        if held := state.held.source_rate:
            before = f"; in force is {state.in_force.source_rate}" if state.HasField("in_force") else ""
            output.note(f"The jump guard holds {held} {code} per USDT{before}.")
        request.expected_source_rate = held
    output.record(catalog.AcceptRate(request).rate)
