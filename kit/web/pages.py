"""Answers with pages, and the headers that protect them (docs/security.md#a-customer)."""

from collections.abc import Sequence
from typing import Final

import falcon

from kit.web.compression import answer_text
from kit.web.exchange import Request

# Nothing from other hosts, and nothing inline.
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors "
)
_HEADERS: Final = (
    ("X-Content-Type-Options", "nosniff"),
    # A page's address can be a secret. Not `no-referrer`: with it browsers send `Origin: null` with our own forms.
    ("Referrer-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


def answer_html(
    req: Request, resp: falcon.Response, html: str, *, status: int = 200, frame_origins: Sequence[str] = ()
) -> None:
    """Answers with a page.

    frame_origins  sites whose pages may show it in a frame
    """
    resp.status = status
    resp.content_type = falcon.MEDIA_HTML
    answer_text(req, resp, html.encode())
    resp.set_headers(_HEADERS)
    resp.set_header("Content-Security-Policy", _POLICY + (" ".join(frame_origins) or "'none'"))
    if not frame_origins:  # X-Frame-Options can't hold a list
        resp.set_header("X-Frame-Options", "DENY")
