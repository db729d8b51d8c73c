"""All routes of a surface, and their collaborators."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import falcon.asgi

from console.config import ConsoleSettings
from console.exchange import Exchange, Request
from console.refusals import Refusals, broken_http
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

    @asynccontextmanager
    async def open_app() -> AsyncIterator[Any]:
        async with traced(settings), wired(settings, ()) as deps, scraped(settings):
            yield routes(deps)

    forms = Pool("forms", most=FORMS_MOST, most_per_client=FORMS_MOST_PER_CLIENT)
    bounds = Bounds(forms, FORM_MAX_BYTES, BODY_SECONDS)
    return Edge(open_app, clients=clients_of(settings), bounds=lambda path: bounds, exchange_type=Exchange)


def routes(deps: Deps) -> falcon.asgi.App[Any, Any]:
    """Returns every address of the surface. A trailing slash makes no difference (`kit.web.edge` removes it)."""
    app = falcon.asgi.App(middleware=[Middleware()], request_type=Request)
    Refusals(deps.pages).add_to(app)

    app.add_route("/healthz", AliveResource())
    app.add_route("/readyz", ReadyResource(deps.health))
    app.add_route("/static/{version}/{name}", FilesResource(deps.pages.files))
    return app
