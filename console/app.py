"""All routes of a surface, and their collaborators."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import falcon.asgi

from console.audit.pages import AuditPage
from console.config import ConsoleSettings
from console.dashboard import home as dashboard
from console.desk import home as desk
from console.exchange import Exchange, Request
from console.people.pages import InvitationsPage, InvitePage, PeoplePage, PersonPage
from console.refusals import Refusals, broken_http
from console.signin.access import Access
from console.signin.entry import InvitationPage, SignInPage, SignOutPage
from console.signin.factors import FactorsPage, PasskeysPage, PasswordPage, RecoveryCodesPage, TotpPage
from console.signin.sessions import SessionsPage
from console.signin.step_up import StepUpPage
from console.surfaces import DASHBOARD, surface_of
from console.wiring import Deps, addresses, wired
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


def site(settings: ConsoleSettings) -> Site:
    """Returns a surface, for the server."""
    accounts = {"accounts": addresses(settings)["accounts"]}
    return Site(
        edge=lambda: console(settings),
        is_ready=lambda: can_reach_all(accounts, settings.identity),
        broken_http=broken_http,
    )


def console(settings: ConsoleSettings) -> Edge:
    """Returns the ASGI application; its channels are opened when the server's loop runs."""

    navigation = dashboard.NAVIGATION if surface_of(settings) is DASHBOARD else desk.NAVIGATION

    @asynccontextmanager
    async def open_app() -> AsyncIterator[Any]:
        async with traced(settings), wired(settings, navigation) as deps, scraped(settings):
            yield routes(deps)

    forms = Pool("forms", most=FORMS_MOST, most_per_client=FORMS_MOST_PER_CLIENT)
    bounds = Bounds(forms, FORM_MAX_BYTES, BODY_SECONDS)
    return Edge(open_app, clients=clients_of(settings), bounds=lambda path: bounds, exchange_type=Exchange)


def routes(deps: Deps) -> falcon.asgi.App[Any, Any]:
    """Returns every address of the surface. A trailing slash makes no difference (`kit.web.edge` removes it)."""
    access = Access(deps)
    app = falcon.asgi.App(middleware=[Middleware()], request_type=Request)
    app.add_middleware(access)
    Refusals(deps, access).add_to(app)

    app.add_route("/healthz", AliveResource())
    app.add_route("/readyz", ReadyResource(deps.health))
    app.add_route("/static/{version}/{name}", FilesResource(deps.pages.files))

    sign_in, step_up = SignInPage(deps), StepUpPage(deps)
    app.add_route("/sign-in", sign_in)
    app.add_route("/sign-in/challenge", sign_in, suffix="challenge")
    app.add_route("/sign-in/passkey", sign_in, suffix="passkey")
    app.add_route("/sign-out", SignOutPage(deps))
    app.add_route("/invitation", InvitationPage(deps))
    app.add_route("/step-up", step_up)
    app.add_route("/step-up/challenge", step_up, suffix="challenge")
    _add_account(app, deps)
    _add_people(app, deps)

    audit = AuditPage(deps)
    app.add_route("/audit", audit)
    app.add_route("/audit.csv", audit, suffix="csv")
    if deps.surface.has_merchants:
        app.add_route("/", dashboard.HomePage(deps))
        app.add_route("/merchant", dashboard.MerchantPage(deps))
    else:
        app.add_route("/", desk.HomePage(deps))
    return app


def _add_account(app: falcon.asgi.App[Any, Any], deps: Deps) -> None:
    passkeys, totp, sessions = PasskeysPage(deps), TotpPage(deps), SessionsPage(deps)
    app.add_route("/account", FactorsPage(deps))
    app.add_route("/account/passkeys", passkeys)
    app.add_route("/account/passkeys/challenge", passkeys, suffix="challenge")
    app.add_route("/account/passkeys/{passkey_id}/remove", passkeys, suffix="remove")
    app.add_route("/account/password", PasswordPage(deps))
    app.add_route("/account/totp", totp)
    app.add_route("/account/totp/confirm", totp, suffix="confirm")
    app.add_route("/account/totp/remove", totp, suffix="remove")
    app.add_route("/account/recovery-codes", RecoveryCodesPage(deps))
    app.add_route("/account/sessions", sessions)
    app.add_route("/account/sessions/end-others", sessions, suffix="others")
    app.add_route("/account/sessions/{session_id}/end", sessions, suffix="end")


def _add_people(app: falcon.asgi.App[Any, Any], deps: Deps) -> None:
    person = PersonPage(deps)
    app.add_route("/people", PeoplePage(deps))
    app.add_route("/people/invite", InvitePage(deps))
    app.add_route("/people/invitations/{invitation_id}/withdraw", InvitationsPage(deps), suffix="withdraw")
    app.add_route("/people/{person_id}", person)
    app.add_route("/people/{person_id}/roles", person, suffix="roles")
    app.add_route("/people/{person_id}/recover", person, suffix="recover")
    if deps.surface.has_merchants:
        app.add_route("/people/{person_id}/remove", person, suffix="remove")
        return
    app.add_route("/people/{person_id}/disable", person, suffix="disable")
    app.add_route("/people/{person_id}/enable", person, suffix="enable")
    app.add_route("/people/{person_id}/sessions/{session_id}/end", person, suffix="session")
