"""Templates, the stylesheet, and the headers that keep the page to itself (DESIGN section 9)."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

import falcon
import jinja2

from gateway.pay.view import amount_in_groups

_HERE: Final = Path(__file__).parent

# Nothing from anywhere but us, except pictures: an operator may link a method's logo. No script at all.
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self' https: data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_PAGE_HEADERS: Final = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    # The address is the page's secret. Not `no-referrer`: with it browsers send `Origin: null` with our own forms.
    ("Referrer-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["amount_in_groups"] = amount_in_groups
    return environment


@cache
def stylesheet() -> tuple[str, bytes]:
    """Its name, which changes with its content, and its content."""
    content = (_HERE / "static" / "pay.css").read_bytes()
    return f"pay.{hashlib.sha256(content).hexdigest()[:12]}.css", content


def answer_page(
    resp: falcon.Response, template: str, *, status: int = 200, prefix: str, **values: object
) -> None:
    """Answers with a template; `prefix` is the path our addresses begin with."""
    html = _templates().get_template(f"{template}.html")
    resp.status = status
    resp.content_type = falcon.MEDIA_HTML
    resp.text = html.render(stylesheet=f"{prefix}/pay-static/{stylesheet()[0]}", **values)
    resp.set_headers(_PAGE_HEADERS)
