"""/docs/guide: docs/integrate.md as a page, the same without scripts. `make docs` makes its text of the document."""

import re
from typing import Final

import falcon.asgi
from markupsafe import Markup, escape

from gateway.exchange import Request
from gateway.openapi.page import TEMPLATES, answer_page, environment
from gateway.wiring import Deps

EXAMPLE: Final = "https://pay.example"
LOCAL: Final = "http://127.0.0.1:8080"
"""The gateway in the document's examples; the page has the installation's own address."""
_PART: Final = re.compile(r'<div class="(local|installation)">\n(.*?)</div>\n', re.DOTALL)
HEADING: Final = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>')


class GuideResource:
    """GET /docs/guide."""

    def __init__(self, deps: Deps) -> None:
        settings = deps.settings
        self._html = render(
            settings.public_url,
            prefix=deps.links.prefix,
            is_local=settings.webhook_allow_private,
            is_test=settings.is_test,
        ).encode()

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        answer_page(resp, self._html)

    on_head = on_get


def render(public_url: str, *, prefix: str, is_local: bool, is_test: bool) -> str:
    """Returns the page, of `make run` or of an installation; `prefix` is the path that the gateway's addresses begin
    with.
    """
    shown = "local" if is_local else "installation"
    text = (TEMPLATES / "guide-text.html").read_text()
    text = _PART.sub(lambda part: part[2] if part[1] == shown else "", text)
    text = text.replace('href="/docs', f'href="{escape(prefix)}/docs')
    text = text.replace(EXAMPLE, escape(public_url)).replace(LOCAL, escape(public_url))
    headings = [(id, Markup(heading)) for id, heading in HEADING.findall(text)]  # noqa: S704  our own document
    return (
        environment(prefix)
        .get_template("guide.html")
        .render(
            is_test=is_test,
            headings=headings,
            text=Markup(text),  # noqa: S704  the same
        )
    )
