"""Templates, what they load, and the headers that keep the page to itself (DESIGN section 9)."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import falcon
import jinja2

from gateway.exchange import Request
from gateway.pay import languages
from gateway.pay.languages import Language

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"

LANGUAGE_COOKIE: Final = "fiatgate_language"
LANGUAGE_SECONDS: Final = 365 * 86_400

# Nothing from anywhere but us, except pictures: an operator may link a method's logo. Nothing inline.
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' https: data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors "
)
_PAGE_HEADERS: Final = (
    ("X-Content-Type-Options", "nosniff"),
    # The address is the page's secret. Not `no-referrer`: with it browsers send `Origin: null` with our own forms.
    ("Referrer-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
_MEDIA_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


@cache
def templates() -> jinja2.Environment:
    """They take their words from the `language` that they are rendered with."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_gettext_callables(  # type: ignore[attr-defined]  # the extension adds it
        _translated, _never_plural, newstyle=True
    )
    return environment


@jinja2.pass_context
def _translated(context: jinja2.runtime.Context, message: str) -> str:
    language: Language = context["language"]
    return language.text(message)


def _never_plural(singular: str, plural: str, number: int) -> str:
    raise NotImplementedError("numbers with a noun are Babel's: Language.minutes")


@cache
def static_files() -> tuple[str, Mapping[str, tuple[str, bytes]]]:
    """A version that changes when any of them does, and media type and content by name.

    The version is a folder of their addresses, so that modules can import each other by name and all of it may be kept
    for ever.
    """
    files = {
        path.name: (_MEDIA_TYPES[path.suffix], path.read_bytes())
        for path in sorted(STATIC.iterdir())
        if path.suffix in _MEDIA_TYPES
    }
    digest = hashlib.sha256()
    for name, (_, content) in files.items():
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()[:12], files


def render(template: str, language: Language, *, prefix: str, here: str, **values: Any) -> str:
    """The HTML of a template.

    prefix  the path our addresses begin with
    here    the path of the page itself, for the links to its other languages
    """
    return (
        templates()
        .get_template(f"{template}.html")
        .render(
            template=template,
            language=language,
            languages=languages.NAMES,
            static=f"{prefix}/pay-static/{static_files()[0]}",
            here=here,
            **values,
        )
    )


def language_of(req: Request) -> Language:
    """Asked for in the address, else remembered, else what the browser says."""
    return languages.chosen(
        asked=req.get_param("lang") or "",
        remembered=req.cookies.get(LANGUAGE_COOKIE, ""),
        accepted=req.get_header("Accept-Language") or "",
    )


def answer_page(
    req: Request,
    resp: falcon.Response,
    template: str,
    *,
    status: int = 200,
    prefix: str,
    language: Language | None = None,
    frame_origins: Sequence[str] = (),
    **values: Any,
) -> None:
    """Answers with a template, and remembers the language that was asked for.

    frame_origins  those whose pages may show it in a frame
    """
    language = language or language_of(req)
    resp.status = status
    resp.content_type = falcon.MEDIA_HTML
    resp.text = render(template, language, prefix=prefix, here=f"{prefix}{req.path}", **values)
    resp.set_headers(_PAGE_HEADERS)
    resp.set_header("Content-Security-Policy", _POLICY + (" ".join(frame_origins) or "'none'"))
    if not frame_origins:  # it knows no list
        resp.set_header("X-Frame-Options", "DENY")
    resp.set_header("Content-Language", language.code)
    if req.get_param("lang") == language.code:
        resp.set_cookie(
            LANGUAGE_COOKIE,
            language.code,
            max_age=LANGUAGE_SECONDS,
            path=f"{prefix}/pay",
            same_site="Lax",
            http_only=True,
            secure=req.forwarded_scheme == "https",
        )
