"""`fiatgate …` and `python -m cli …`. Exit codes: 0 done, 1 refused or an error found, 2 usage."""

import logging
import sys
from typing import Annotated

import structlog
import typer

from cli import author, output
from cli.commands import (
    actor_keys,
    approvals,
    audit,
    balance,
    cases,
    categories,
    checkout,
    currencies,
    deals,
    demo,
    fact_keys,
    find,
    invoices,
    keys,
    merchants,
    methods,
    owners,
    parked,
    people,
    rates,
    reports,
    requisites,
    status,
    verify,
    webhooks,
    withdrawals,
)
from cli.connection import why_silent
from cli.ids import Ambiguous
from cli.next_steps import next_step
from cli.stack import NoAddress
from kit.rpc.errors import Refused

app = typer.Typer(
    name="fiatgate",
    help="Runs Fiatgate: merchants, prices, deals, withdrawals, and the verification of the books.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    cls=author.AsAnywhere,
)


@app.callback()
def begin(
    *,
    on_behalf_of: Annotated[
        str,
        typer.Option(
            author.OPTION,
            metavar="EMAIL",
            envvar="FIATGATE_AS",
            help="The person who does it, recorded beside the user and host of this command.",
        ),
    ] = "",
) -> None:
    try:
        author.carry(on_behalf_of)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=author.OPTION) from None


BOOKS, WORK, SETUP = "Overview", "Every day", "Merchants, methods and prices"
app.command("status", rich_help_panel=BOOKS, epilog="Example: fiatgate status --watch")(status.status)
app.command("find", rich_help_panel=BOOKS, epilog="Example: fiatgate find 50.90")(find.find)
app.command("verify", rich_help_panel=BOOKS, epilog="Example: fiatgate verify --repair")(verify.verify)
app.command(
    "reports", rich_help_panel=BOOKS, epilog="Example: fiatgate reports --by merchant --month 2026-11"
)(reports.reports)
app.command("balance", rich_help_panel=BOOKS, epilog="Example: fiatgate balance 0197…")(balance.balance)
app.command("demo", rich_help_panel=BOOKS, epilog="Example: fiatgate demo")(demo.demo)
for group in (deals, cases, invoices, withdrawals, approvals, audit, webhooks, parked, checkout):
    app.add_typer(group.app, name=group.NAME, rich_help_panel=WORK)
for group in (
    *(merchants, people, owners, keys, categories, currencies, methods, rates, requisites),
    *(actor_keys, fact_keys),
):
    app.add_typer(group.app, name=group.NAME, rich_help_panel=SETUP)


def main() -> None:
    # Log lines would only disturb the output: a refusal has all that an operator needs.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        app()
    except Refused as refused:
        if silent := why_silent(refused):
            _report_silence(silent)
        else:
            output.refusal(refused.reason, refused.message, refused.metadata)
            if step := next_step(refused.reason, refused.metadata):
                output.note(f"[dim]{step}[/dim]")
    except NoAddress as unknown:
        _report_silence(unknown)
    except Ambiguous as several:
        output.refusal("ID_AMBIGUOUS", str(several), {"ids": ", ".join(several.ids)})
    except BrokenPipeError:
        sys.exit(0)  # the reader of `fiatgate … | head` has closed the pipe
    sys.exit(1)


def _report_silence(silence: NoAddress) -> None:
    output.refusal(silence.code, str(silence), {})
    if silence.code == "SERVICE_DOWN":
        output.note("[dim]The health of all services: fiatgate status[/dim]")


if __name__ == "__main__":
    main()
