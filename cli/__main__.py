"""`fiatgate …` and `python -m cli …`. Exit codes: 0 done, 1 refused or something is wrong, 2 usage."""

import sys

import typer

from cli import output
from cli.commands import (
    balance,
    categories,
    checkout,
    currencies,
    deals,
    demo,
    invoices,
    keys,
    merchants,
    methods,
    owners,
    rates,
    requisites,
    status,
    verify,
    webhooks,
    withdrawals,
)
from cli.connection import NoAddress
from kit.errors import Refused

app = typer.Typer(
    name="fiatgate",
    help="Runs Fiatgate: merchants, prices, deals, withdrawals, and the proof that the books are right.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for group in (
    merchants,
    owners,
    keys,
    categories,
    currencies,
    methods,
    rates,
    requisites,
    invoices,
    checkout,
    deals,
    withdrawals,
    webhooks,
):
    app.add_typer(group.app, name=group.NAME)
app.command("balance")(balance.balance)
app.command("verify")(verify.verify)
app.command("status")(status.status)
app.command("demo")(demo.demo)


def main() -> None:
    try:
        app()
    except Refused as refused:
        output.refusal(refused.reason, refused.message, refused.metadata)
    except NoAddress as unknown:
        output.refusal("NO_STACK", str(unknown), {})
    except BrokenPipeError:
        sys.exit(0)  # `fiatgate … | head` has seen enough
    sys.exit(1)


if __name__ == "__main__":
    main()
