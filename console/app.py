"""All routes of a surface, and their collaborators."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import falcon.asgi

from console.approvals import routes as approvals
from console.approvals.pages import EvidenceOf
from console.audit import routes as audit
from console.bank import routes as bank
from console.cases import routes as cases
from console.config import ConsoleSettings
from console.corrections import routes as corrections
from console.dashboard import routes as dashboard
from console.deals import routes as deals
from console.deals.evidence import evidence_of_invoice
from console.desk import routes as desk
from console.exchange import Exchange, Request
from console.finding import routes as finding
from console.invoices import routes as invoices
from console.keys import routes as keys
from console.late import routes as late
from console.links import routes as links
from console.merchants import routes as merchants
from console.page import App, Page
from console.parked import routes as parked
from console.people import routes as people
from console.prices import routes as prices
from console.refunding import routes as refunding
from console.refunds import routes as refunds
from console.refusals import Refusals
from console.reports import routes as reports
from console.requisites import routes as requisites
from console.settings import routes as settings_room
from console.signin import routes as signin
from console.signin.access import Access
from console.statements import routes as statements
from console.surfaces import Surface, surface_of
from console.ui.pages import Link
from console.webhooks import routes as webhooks
from console.wiring import Deps, addresses, wired
from console.withdrawals import routes as withdrawals
from console.withdrawing import routes as withdrawing
from console.words.late_money import ANSWERS
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.invoices.v1.invoices_pb2 import GetInvoiceStoryRequest
from kit.web.bodies import BODY_SECONDS, Bounds
from kit.web.config import clients_of
from kit.web.counting import scraped
from kit.web.edge import Edge
from kit.web.files import FilesResource
from kit.web.health import AliveResource, ReadyResource
from kit.web.middleware import Middleware
from kit.web.reach import can_reach_all
from kit.web.server import Site
from kit.web.spans import traced
from kit.web.walls.uploads import Pool

# Forms have a few hundred bytes, the answer of a passkey a few thousand.
FORM_MAX_BYTES: Final = 32 * 1024
FORMS_MOST: Final = 8 * 2**20
FORMS_MOST_PER_CLIENT: Final = 2**20
# The desk takes files of banks; it is not on the internet.
BANK_FILES: Final = "/bank/files"
BANK_FILE_MAX_BYTES: Final = 8 * 2**20 + FORM_MAX_BYTES
BANK_FILES_MOST: Final = 4 * BANK_FILE_MAX_BYTES

ROOMS: Final = {
    "desk": (
        desk,
        deals,
        bank,
        cases,
        withdrawals,
        refunds,
        corrections,
        approvals,
        invoices,
        finding,
        reports,
        merchants,
        keys,
        requisites,
        prices,
        webhooks,
        parked,
        statements,
        people,
        audit,
    ),
    "dashboard": (
        dashboard,
        invoices,
        finding,
        late,
        links,
        statements,
        withdrawals,
        refunding,
        webhooks,
        keys,
        withdrawing,
        settings_room,
        people,
        audit,
    ),
}
"""The rooms of each surface; their entries stand in the navigation in this order."""


async def _of_correction(page: Page, approval: approvals_pb2.Approval) -> Mapping[str, Any]:
    """Returns the merchant's money; of a correction that is about an invoice the deal, and the case of late money."""
    kind, _, id = approval.object.partition(":")
    values = {**await corrections.evidence(page, approval), "deal": None, "case": None, "answers": ANSWERS}
    if kind == "invoice":
        story = await page.deps.deals.GetInvoiceStory(GetInvoiceStoryRequest(invoice_id=id))
        values["deal"] = await evidence_of_invoice(page, id)
        values["case"] = story.case if story.HasField("case") else None
    return values


EVIDENCE: Final[Mapping[str, EvidenceOf]] = {
    "deal.adjust": deals.evidence,
    "withdrawal.process": withdrawals.evidence,
    "correction.make": _of_correction,
    "refund.send": refunds.evidence,
}
"""The evidence that a second person compares, by the act that is requested."""
LARGER_FORMS: Final[Mapping[str, int]] = dict.fromkeys(
    ("/logo", "/new-requisites", "/new-requisites/add", "/settings", "/step-up"), 256 * 1024
)
"""The most bytes of forms with pictures or long lists, by the end of their address. A step-up carries the form."""


def site(settings: ConsoleSettings) -> Site:
    """Returns a surface, for the server."""
    identity = {"identity": addresses(settings)["identity"]}
    return Site(
        edge=lambda: console(settings),
        is_ready=lambda: can_reach_all(identity, settings.identity),
    )


def console(settings: ConsoleSettings) -> Edge:
    """Returns the ASGI application; its channels are opened when the server's loop runs."""

    navigation = navigation_of(surface_of(settings))

    @asynccontextmanager
    async def open_app() -> AsyncIterator[Any]:
        async with traced(settings), wired(settings, navigation) as deps, scraped(settings):
            yield routes(deps)

    forms = Pool("forms", most=FORMS_MOST, most_per_client=FORMS_MOST_PER_CLIENT)
    files = Pool("bank-files", most=BANK_FILES_MOST, most_per_client=BANK_FILE_MAX_BYTES)
    takes_files = surface_of(settings).name == "desk"

    def bounds(path: str) -> Bounds:
        if takes_files and path == BANK_FILES:
            return Bounds(files, BANK_FILE_MAX_BYTES, BODY_SECONDS)
        most = next((most for end, most in LARGER_FORMS.items() if path.endswith(end)), FORM_MAX_BYTES)
        return Bounds(forms, most, BODY_SECONDS)

    return Edge(open_app, clients=clients_of(settings), bounds=bounds, exchange_type=Exchange)


def navigation_of(surface: Surface) -> list[Link]:
    """Returns the entries of all rooms of a surface."""
    return [link for room in ROOMS[surface.name] for link in room.LINKS if link.surface == surface.name]


def routes(deps: Deps) -> App:
    """Returns every address of the surface. A trailing slash makes no difference (`kit.web.edge` removes it)."""
    access = Access(deps)
    app = falcon.asgi.App(middleware=[Middleware()], request_type=Request)
    app.add_middleware(access)
    Refusals(deps, access).add_to(app)

    app.add_route("/healthz", AliveResource())
    app.add_route("/readyz", ReadyResource(deps.health))
    app.add_route("/static/{version}/{name}", FilesResource(deps.pages.files))

    signin.add_to(app, deps)
    for room in ROOMS[deps.surface.name]:
        if room is not approvals:
            room.add_to(app, deps)
    if approvals in ROOMS[deps.surface.name]:
        approvals.add_to(app, deps, EVIDENCE)
    return app
