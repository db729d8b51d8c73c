"""`python -m tests.kit.web.small_site`, as the main program of a second HTTP process."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import falcon
import falcon.asgi

from kit.base.config.values import BaseUrl
from kit.rpc.errors import Refused, denied
from kit.web.bodies import BODY_SECONDS, Bounds
from kit.web.config import WebSettings, clients_of
from kit.web.counting import scraped
from kit.web.edge import Edge
from kit.web.exchange import Request
from kit.web.files import Files, FilesResource
from kit.web.forms import form_of, sent_by_own_page
from kit.web.health import AliveResource
from kit.web.main import main
from kit.web.middleware import Middleware
from kit.web.pages import answer_html
from kit.web.refusals import Refusals
from kit.web.server import Site
from kit.web.spans import traced
from kit.web.templates import Templates
from kit.web.walls.uploads import Pool

HERE: Final = Path(__file__).parent
BODY_MAX_BYTES: Final = 4096
GERMAN: Final = {"A small site": "Eine kleine Seite", "Send": "Senden"}
STATUSES: Final = {"NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405, "PAYLOAD_TOO_LARGE": 413}


class SmallSettings(WebSettings):
    service: ClassVar[str] = "small-site"

    public_url: BaseUrl
    seconds_to_start: float = 0


class PageResource:
    """/: shows the last note; a POST stores one and leads back."""

    def __init__(self, settings: SmallSettings, files: Files) -> None:
        self._origin = settings.public_url
        self._style = f"/static/{files.version}/site.css"
        self._templates = Templates(HERE / "templates", translate=lambda text: GERMAN.get(text, text))
        self._note = "none"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        page = self._templates.get_template("page.html")
        answer_html(req, resp, page.render(style=self._style, note=self._note))

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        if not sent_by_own_page(req, self._origin):
            raise denied("VALIDATION_ERROR", "The form was sent from another site")
        await req.exchange.receive_body(item="the note")
        form = form_of(req, file_field="attached", file_max_bytes=BODY_MAX_BYTES)
        self._note = f"{form.prose('note', most=100)}, {len(form.file or b'')} bytes"
        raise falcon.HTTPSeeOther("/")


class PlainRefusals(Refusals[Request]):
    def answer(self, req: Request, resp: falcon.asgi.Response, refused: Refused) -> None:
        req.exchange.code = refused.reason
        answer_html(req, resp, f"<p>{refused.reason}", status=STATUSES.get(refused.reason, 400))


def site(settings: SmallSettings) -> Site:
    async def is_ready() -> bool:
        return True

    return Site(
        edge=lambda: edge(settings),
        is_ready=is_ready,
    )


def edge(settings: SmallSettings) -> Edge:
    @asynccontextmanager
    async def open_app() -> AsyncIterator[Any]:
        async with traced(settings), scraped(settings):
            yield routes(settings)

    notes = Pool("notes", most=2**20, most_per_client=2**20, item="note", most_per_item=4)
    threading.Event().wait(settings.seconds_to_start)
    bounds = Bounds(notes, BODY_MAX_BYTES, BODY_SECONDS)
    return Edge(open_app, clients=clients_of(settings), bounds=lambda path: bounds)


def routes(settings: SmallSettings) -> falcon.asgi.App[Any, Any]:
    files = Files(HERE / "static")
    app = falcon.asgi.App(middleware=[Middleware()], request_type=Request)
    PlainRefusals().add_to(app)
    app.add_route("/", PageResource(settings, files))
    app.add_route("/healthz", AliveResource())
    app.add_route("/static/{version}/{name}", FilesResource(files))
    return app


if __name__ == "__main__":
    main("python -m tests.kit.web.small_site", SmallSettings, site)
