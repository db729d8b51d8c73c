"""The addresses of invoices, and their entry of the navigation on each surface."""

from typing import Final

from console.invoices.desk import DeskInvoicePage, DeskInvoicesPage
from console.invoices.invoice import InvoicePage
from console.invoices.list import InvoicesPage
from console.page import App
from console.ui.pages import Link, members_read, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link("/invoices", "Invoices", "all payments, each with its timeline", reads(*READERS), group="find"),
    Link(
        "/invoices",
        "Invoices",
        "all payments, each with its timeline",
        members_read("developer", "finance", "viewer"),
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    if deps.surface.has_merchants:
        InvoicesPage(deps).add_to(app, "/invoices")
        invoice = InvoicePage(deps)
    else:
        DeskInvoicesPage(deps).add_to(app, "/invoices")
        invoice = DeskInvoicePage(deps)
        app.add_route("/invoices/{invoice_id}/cancel", invoice, suffix="cancel")
    app.add_route("/invoices/{invoice_id}", invoice)
    app.add_route("/invoices/{invoice_id}/timeline.csv", invoice, suffix="csv")
