"""`fiatgate fact-keys …`: the keys that sign facts, for the settings of the services. No service is called."""

import sys

import typer

from kit.events import fact_keys

app = typer.Typer(help="Keys that sign the facts that move money.", no_args_is_help=True)


@app.command("new", epilog="Example: fiatgate fact-keys new")
def new() -> None:
    """Make a pair: the private key for invoices, the public key for withdrawals, webhooks and invoices."""
    _print("new")


@app.command("public", epilog="Example: fiatgate fact-keys public")
def public() -> None:
    """Print the public key of the private key on standard input.

    For a file: fiatgate fact-keys public < fact-keys.env
    """
    _print("public")


@app.command("id", epilog="Example: fiatgate fact-keys id")
def ids() -> None:
    """Print the id of each key on standard input. Signatures and parked events name their key by it."""
    _print("id")


def _print(verb: str) -> None:
    """Prints lines for the environment and for scripts, never a table."""
    try:
        sys.stdout.write(fact_keys.output_of(verb, "" if verb == "new" else sys.stdin.read()))
    except fact_keys.NoKey as error:
        raise typer.BadParameter(str(error)) from None
