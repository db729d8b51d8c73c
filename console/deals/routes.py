"""The addresses of deals and of their switch, and their entries of the navigation."""

from collections.abc import Mapping
from typing import Any, Final

from console.deals.decisions import DealPage
from console.deals.evidence import evidence_of
from console.deals.pictures import PicturePage
from console.deals.queue import DealsPage
from console.deals.several import SeveralPage
from console.deals.states import StatesPage
from console.deals.switch import DealsSystemPage
from console.page import App, Page
from console.ui.pages import Link, reads
from console.wiring import Deps
from fiatgate.approvals.v1 import approvals_pb2
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/deals",
        "Deals",
        "transfers of customers: has the money come?",
        reads(*READERS),
        group="work",
        count="deals_marked",
    ),
    Link(
        "/deals-system",
        "Payments on or off",
        "whether new payments are accepted",
        reads(*READERS),
        group="setup",
    ),
)


async def evidence(page: Page, approval: approvals_pb2.Approval) -> Mapping[str, Any]:
    """Returns the values for the page of a request about a deal."""
    return {
        "template": "deals-asked",
        "evidence": await evidence_of(page, approval.object.removeprefix("deal:")),
    }


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses of deals."""
    DealsPage(deps).add_to(app, "/deals")
    app.add_route("/deals/states", StatesPage(deps))
    app.add_route("/deals/several", SeveralPage(deps))
    one = DealPage(deps)
    app.add_route("/deals/{deal_id}", one)
    for step in ("confirm", "reject", "appeal", "resolve"):
        app.add_route(f"/deals/{{deal_id}}/{step}", one, suffix=step)
    app.add_route("/deals/{deal_id}/pictures/{kind}", PicturePage(deps))
    app.add_route("/deals-system", DealsSystemPage(deps))
