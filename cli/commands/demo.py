"""`fiatgate demo`: one whole purchase against the running stack."""

from typing import Final

import typer
from rich.markup import escape

from cli import output
from cli.output import Json

EXAMPLE: Final = "fiatgate demo"


def demo(*, as_json: Json = False) -> None:
    """Run one whole purchase on the local stack (`make run`), from invoice to withdrawal, and print each step."""
    from cli import demonstrating  # noqa: PLC0415  `fiatgate --help` imports this file, and needs no HTTP client

    steps: list[dict[str, str]] = []

    def report(step: str, detail: str) -> None:
        steps.append({"step": step, "detail": detail})
        if not as_json:
            output.console.print(f"[green]✓[/green] [bold]{escape(step)}[/bold]")
            for line in detail.splitlines():
                output.console.print(f"  [dim]{escape(line)}[/dim]", soft_wrap=True)

    try:
        demonstrating.run(demonstrating.demo_shop(), report)
    except demonstrating.DemoFailed as failed:
        output.refusal("DEMO_FAILED", str(failed), {})
        raise typer.Exit(1) from None
    if as_json:
        output.print_json(steps)
