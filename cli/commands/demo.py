"""`fiatgate demo`: one whole purchase against the running stack."""

from typing import Annotated, Final

import typer
from rich.markup import escape

from cli import output, stack
from cli.command import shaped

EXAMPLE: Final = "fiatgate demo"


@shaped(None)
def demo(
    *,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also beside merchants that the demo did not make.")
    ] = False,
    keep_key: Annotated[
        bool,
        typer.Option(
            "--keep-key", help="Show the API key that it makes in a cluster, and leave it active afterwards."
        ),
    ] = False,
) -> None:
    """Run one whole purchase, from invoice to withdrawal, and print each step. On the local stack (`make run`), or in a
    cluster with the overlay `local`, where it makes its invented merchant, methods, accounts and people first.
    """
    # `fiatgate --help` imports this file, and needs no HTTP client.
    import requests  # noqa: PLC0415

    from cli import demonstrating, first_steps  # noqa: PLC0415
    from cli.receiving import OwnReceiver  # noqa: PLC0415

    steps: list[dict[str, str]] = []

    def report(step: str, detail: str) -> None:
        steps.append({"step": step, "detail": detail})
        if not output.mode.json:
            output.console.print(f"[green]✓[/green] [bold]{escape(step)}[/bold]")
            for line in detail.splitlines():
                output.console.print(f"  [dim]{escape(line)}[/dim]", soft_wrap=True)

    try:
        if demonstrating.is_local():
            first_steps.require_alone(anyway=anyway)
            with OwnReceiver() as receiver:
                demonstrating.run(demonstrating.demo_shop(), receiver, report)
        else:
            output.note("[yellow]Demo data: merchant, accounts and rates are invented.[/yellow]")
            with first_steps.prepared(report, anyway=anyway, keep_key=keep_key) as prepared:
                demonstrating.run(demonstrating.shop_of(prepared), prepared.receiver, report)
            if keep_key:
                output.note(f"Another invoice: {escape(first_steps.another(prepared.api_key))}")
            else:
                output.note(
                    "The key of this run is deactivated. For a key to go on with: fiatgate demo --keep-key"
                )
    except first_steps.OthersThere as others:
        output.refusal("OTHERS_THERE", str(others), {})
        raise typer.Exit(1) from None
    except demonstrating.DemoFailed as failed:
        output.refusal("DEMO_FAILED", str(failed), {})
        raise typer.Exit(1) from None
    except requests.RequestException as away:
        raise stack.NoAddress(
            f"{away.request.url if away.request else 'HTTP'}: {away}", code="SERVICE_DOWN"
        ) from None
    if output.mode.json:
        output.print_json(steps)
