"""`fiatgate rates …`"""

from datetime import timedelta
from typing import Annotated

import typer

from cli import connection, output, pending
from cli.output import Json
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.proto import datetime_from

app = typer.Typer(help="Rates: fiat per USDT.", no_args_is_help=True)
Code = Annotated[str, typer.Argument(metavar="CODE", help="Currency code.")]
COLUMNS = {
    "currency_code": "currency",
    "in_force.rate": "rate",
    "in_force.source_rate": "before markup",
    "in_force.origin": "origin",
    "in_force.taken_at": "taken at",
    "in_force.fresh": "fresh",
    "in_force.fresh_until": "fresh until",
    "held.source_rate": "held back",
    "held_change_percent": "change, %",
}
STACKS = (
    ("currency_code", "in_force.origin"),
    ("in_force.rate", "in_force.source_rate"),
    ("in_force.taken_at", "in_force.fresh_until"),
    ("in_force.fresh", "held.source_rate"),
    ("held_change_percent",),
)


@app.command("set", epilog="Example: fiatgate rates set EUR 0.92")
def set_one(
    code: Code,
    rate: Annotated[str, typer.Argument(metavar="RATE", help="Fiat per USDT, before the markup.")],
    *,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Request it although the jump guard refuses it; another person approves."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Set a rate by hand; it is used instead of the polled ones while it is fresh."""
    request = pb.SetRateRequest(currency_code=code, rate=rate, anyway=anyway)
    with pending.reporting_rejected("catalog", f"currency:{code}"):
        made = connection.catalog().SetRate(request).rate
    output.record(made, as_json=as_json)
    if not as_json:
        until = f"{datetime_from(made.fresh_until):%Y-%m-%d %H:%M:%S} UTC"
        output.note(
            f"[dim]It counts until {until}. Then the sources' rate counts again. "
            "Without sources the currency has no rate.[/dim]"
        )


@app.command("list", epilog="Example: fiatgate rates list")
def list_all(*, as_json: Json = False) -> None:
    """List every currency's rate in force with the end of its freshness, and the rate that the jump guard holds."""
    answer = connection.catalog().ListRates(pb.ListRatesRequest())
    rows = [output.plain(rate) for rate in answer.rates]
    empty = "No rates yet: fiatgate rates set CODE RATE"
    output.rows(rows, COLUMNS, as_json=as_json, empty=empty, stacks=STACKS)


@app.command("history", epilog="Example: fiatgate rates history EUR --days 7")
def history(
    code: Code,
    *,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=93, help="The days up to now.")] = 1,
    as_json: Json = False,
) -> None:
    """List the lowest, highest and last rate of each part of the time, before the markup: hours, or days."""
    request = pb.GetRateHistoryRequest(currency_code=code, step_seconds=3600 if days <= 7 else 86_400)
    until = SystemClock().now()
    request.until.FromDatetime(until)
    request.since.FromDatetime(until - timedelta(days=days))
    answer = connection.catalog().GetRateHistory(request)
    columns = {
        "at": "since",
        "lowest": "lowest",
        "highest": "highest",
        "last": "last",
        "accepted": "accepted",
        "by_operators": "by operators",
    }
    stacks = (("at",), ("lowest", "highest"), ("last",), ("accepted", "by_operators"))
    rows = [output.plain(step) for step in answer.steps]
    output.rows(rows, columns, as_json=as_json, empty="No rate was accepted in this time", stacks=stacks)


@app.command("pull", epilog="Example: fiatgate rates pull")
def pull(*, as_json: Json = False) -> None:
    """Query the configured sources now."""
    answer = connection.catalog().PullRates(pb.PullRatesRequest(), timeout=60)
    output.records(answer.rates, COLUMNS, as_json=as_json, empty="No sources: set FIATGATE_RATE_SOURCES")


@app.command("accept", epilog="Example: fiatgate rates accept EUR")
def accept(
    code: Code,
    held: Annotated[
        str,
        typer.Argument(metavar="RATE", help="The held rate that `rates list` shows; else the present one."),
    ] = "",
    *,
    as_json: Json = False,
) -> None:
    """Accept the rate that the jump guard holds back; refused if another one is held by then."""
    catalog = connection.catalog()
    if not held:
        states = {each.currency_code: each for each in catalog.ListRates(pb.ListRatesRequest()).rates}
        state = states.get(code, pb.RateState())
        if held := state.held.source_rate:
            before = f"; in force is {state.in_force.source_rate}" if state.HasField("in_force") else ""
            output.note(f"The jump guard holds {held} {code} per USDT{before}.")
    request = pb.AcceptRateRequest(currency_code=code, expected_source_rate=held)
    output.record(catalog.AcceptRate(request).rate, as_json=as_json)
