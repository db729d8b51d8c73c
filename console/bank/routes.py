"""The addresses of bank lines, and their entry of the navigation."""

from typing import Final

from console.bank.connectors import ConnectorsPage
from console.bank.days import DaysPage
from console.bank.files import DemoStatementPage, FilesPage, ImportPage
from console.bank.lines import LinePage, LinesPage, has_demo_bank
from console.bank.profiles import CsvPage, ProfilesPage
from console.bank.rules import RulesPage
from console.bank.several import SeveralPage
from console.bank.unlinked import UnlinkedPage
from console.page import App
from console.ui.pages import Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link("/bank", "Bank", "money that came on the accounts", reads(*READERS), count="bank_lines_proposed"),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    LinesPage(deps).add_to(app, "/bank")
    DaysPage(deps).add_to(app, "/bank/days")
    UnlinkedPage(deps).add_to(app, "/bank/unlinked")
    FilesPage(deps).add_to(app, "/bank/files")
    app.add_route("/bank/files/{import_id}", ImportPage(deps))
    app.add_route("/bank/files/{import_id}/csv", CsvPage(deps))
    app.add_route("/bank/profiles", ProfilesPage(deps))
    connectors = ConnectorsPage(deps)
    app.add_route("/bank/connectors", connectors)
    app.add_route("/bank/connectors/{connector_id}/revoke", connectors, suffix="revoke")
    app.add_route("/bank/rules", RulesPage(deps))
    app.add_route("/bank/several", SeveralPage(deps))
    if has_demo_bank(deps):
        app.add_route("/bank/demo-statement", DemoStatementPage(deps))
    one = LinePage(deps)
    app.add_route("/bank/{line_id}", one)
    for step in ("confirm", "ignore", "restore", "case", "refund"):
        app.add_route(f"/bank/{{line_id}}/{step}", one, suffix=step)
