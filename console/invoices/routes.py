"""The addresses of invoices, and their entries of the navigation."""

from typing import Final

from console.invoices.finding import FindPage
from console.invoices.invoice import InvoicePage
from console.invoices.list import InvoicesPage
from console.invoices.switch import DealsSystemPage
from console.page import App
from console.ui.pages import SEARCH, Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link("/invoices", "Invoices", "all payments, each with its timeline", reads(*READERS), group="find"),
    Link(SEARCH, "Search", "anything, by what you have in front of you", reads(*READERS), group=""),
    Link("/deals-system", "New deals", "whether new payments are accepted", reads(*READERS), group="setup"),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    invoice = InvoicePage(deps)
    InvoicesPage(deps).add_to(app, "/invoices")
    app.add_route("/invoices/{invoice_id}", invoice)
    app.add_route("/invoices/{invoice_id}/timeline.csv", invoice, suffix="csv")
    app.add_route("/invoices/{invoice_id}/cancel", invoice, suffix="cancel")
    FindPage(deps).add_to(app, SEARCH)
    app.add_route("/deals-system", DealsSystemPage(deps))
