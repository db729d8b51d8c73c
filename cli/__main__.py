"""`fiatgate …` and `python -m cli …`. Exit codes: 0 done, 1 refused or an error found, 2 usage."""

import sys
from importlib import metadata
from typing import Annotated

import typer

from cli import author, output
from cli.connection import why_silent
from cli.ids import Ambiguous
from cli.loading import Fiatgate
from cli.next_steps import next_step
from cli.stack import NoAddress
from kit.rpc.errors import Refused

app = typer.Typer(
    name="fiatgate",
    help="Runs Fiatgate: merchants, prices, deals, withdrawals, and the verification of the books.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    cls=Fiatgate,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("fiatgate"))
        raise typer.Exit


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
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    try:
        named = author.carry(on_behalf_of)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=author.OPTION) from None
    if named:
        from cli import staff  # noqa: PLC0415  a command without a name needs none of it

        if staff.is_disabled(named):
            raise typer.BadParameter(f"{named} is disabled", param_hint=author.OPTION)


def main() -> None:
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
