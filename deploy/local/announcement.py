"""The output of `make run` once the stack is up: its addresses, the demo key, and commands to try."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from demo import invoice as demo_invoice
from deploy.local.home import write_private_json
from deploy.local.plan import DASHBOARD, DESK, Plan


def announce(console: Console, plan: Plan, *, seconds: float) -> None:
    """Prints it, or in mode "serve" what does not run. Makes a new demo invoice when the last one has ended."""
    if plan.serve_only:
        _line(
            console,
            "serve only",
            "the services answer .venv/bin/fiatgate; gateway, consoles and workers do not run",
        )
        console.print("Ctrl-C stops it; what it stored stays.", style="dim")
        return
    demo = plan.home.demo()
    if demo is None:
        raise RuntimeError(f"{plan.home.demo_file} vanished")
    _line(console, "Fiatgate runs", plan.url, f"(ready after {seconds:.1f} s)")
    _line(console, "API key", demo["api_key"])
    _line(console, "signing secret", demo["secret"])
    try:
        invoice = demo_invoice.pending_invoice(plan.url, demo)
    except demo_invoice.Refusal as refusal:
        _line(console, "pay a demo invoice", f"none could be made: {refusal}")
    else:
        write_private_json(plan.home.demo_file, demo | {"invoice_id": invoice["invoice_id"]})
        _line(console, "pay a demo invoice", invoice["payment_link"])
    _line(console, "make another", demo_invoice.curl_line(plan.url, demo["api_key"]))
    _line(console, "the API", f"{plan.url}/docs")
    links = plan.home.links()
    for label, process in (("desk", DESK), ("dashboard", DASHBOARD)):
        if link := links.get(label):
            _line(console, f"the {label}", link, "(a link for one use: a click and you are in)")
        else:
            _line(console, f"the {label}", plan.consoles[process.name])
    _line(console, "as the operator", 'make cli ARGS="deals list"', "(or .venv/bin/fiatgate --help)")
    if plan.prometheus is not None:
        _line(console, "Prometheus", plan.prometheus.url)
    _line(console, "logs", str(plan.home.logs))
    console.print("Ctrl-C stops it; what it stored stays.", style="dim")


def _line(console: Console, label: str, value: str, remark: str = "") -> None:
    # One line each, even in a narrow terminal: people copy these.
    text = Text.assemble((f"{label:>18}  ", "dim"), (value, "bold"), (f"  {remark}" if remark else "", "dim"))
    console.print(text, soft_wrap=True)
