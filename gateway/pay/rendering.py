"""Templates, the files they load, and the headers that protect the page (docs/security.md#a-customer)."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import falcon
import jinja2
from jinja2 import nodes
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from gateway.http.exchange import Request
from gateway.pay import languages
from gateway.pay.compression import answer_text
from gateway.pay.files import static_files
from gateway.pay.languages import Language

_HERE: Final = Path(__file__).parent

_ISOLATE: Final = "\N{FIRST STRONG ISOLATE}"
_END_OF_ISOLATE: Final = "\N{POP DIRECTIONAL ISOLATE}"

LANGUAGE_COOKIE: Final = "fiatgate_language"
LANGUAGE_SECONDS: Final = 365 * 86_400

# Nothing from other hosts, and nothing inline.
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors "
)
_PAGE_HEADERS: Final = (
    ("X-Content-Type-Options", "nosniff"),
    # The page's address is a secret. Not `no-referrer`: with it browsers send `Origin: null` with the page's own forms.
    ("Referrer-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


class _InOneLanguage(jinja2.Environment):
    """Translates its templates when they are compiled: `_("sentence")` becomes text like that around it."""

    def __init__(self, language: Language) -> None:
        super().__init__(
            loader=jinja2.FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            auto_reload=False,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._language = language
        self.filters.update(theirs=theirs, titled=_titled)
        self.globals.update(
            _=self.sentence, language=language, languages=languages.NAMES, as_paid=languages.as_paid
        )

    def sentence(self, sentence: str, **values: object) -> Markup:
        """The translation, with the values filled in. The values are escaped; it may hold HTML such as <strong>."""
        return Markup(self._language.text(sentence)) % values  # noqa: S704  sentences are our own

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        written: nodes.Template = _Translator(self).visit(super()._parse(source, name, filename))
        return written


def theirs(text: str) -> Markup:
    """Isolates a text from outside, in its own direction: the rest of the line keeps the page's direction."""
    return Markup("<bdi>{}</bdi>").format(text)


def _titled(html: str) -> str:
    """The text for a window's title, which has no elements: characters isolate texts from outside."""
    isolated = str(html).replace("<bdi>", _ISOLATE).replace("</bdi>", _END_OF_ISOLATE)
    return Markup(isolated).striptags()  # noqa: S704  escaped where it comes from


class _Translator(NodeTransformer):
    """Replaces each `_("sentence")` without values by its translation."""

    def __init__(self, environment: _InOneLanguage) -> None:
        self._environment = environment

    def visit_Call(self, call: nodes.Call) -> nodes.Node:  # noqa: N802  jinja2's name for it
        self.generic_visit(call)
        match call:
            case nodes.Call(
                node=nodes.Name(name="_"), args=[nodes.Const(value=sentence)], kwargs=[], dyn_kwargs=None
            ):
                return nodes.Const(self._environment.sentence(sentence), lineno=call.lineno)
        return call


@cache
def templates(language: Language) -> jinja2.Environment:
    """The templates in that language, each compiled at its first use."""
    return _InOneLanguage(language)


def render(template: str, language: Language, *, prefix: str, **values: Any) -> str:
    """The HTML of a template; `prefix` is the path that the gateway's addresses begin with."""
    static = f"{prefix}/pay-static/{static_files()[0]}"
    return (
        templates(language)
        .get_template(f"{template}.html")
        .render(template=template, static=static, **values)
    )


def language_of(req: Request) -> Language:
    """The language of the address's parameter, else of the cookie, else of the browser."""
    return languages.chosen(
        requested=req.get_param("lang") or "",
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
    language: Language,
    frame_origins: Sequence[str] = (),
    **values: Any,
) -> None:
    """Answers with a template.

    frame_origins  sites whose pages may show it in a frame
    """
    html = render(template, language, prefix=prefix, **values)
    answer_html(req, resp, html, status=status, prefix=prefix, language=language, frame_origins=frame_origins)


def answer_html(
    req: Request,
    resp: falcon.Response,
    html: str,
    *,
    status: int,
    prefix: str,
    language: Language,
    frame_origins: Sequence[str] = (),
) -> None:
    """Answers with a page, and stores the requested language in a cookie."""
    resp.status = status
    resp.content_type = falcon.MEDIA_HTML
    answer_text(req, resp, html.encode())
    resp.set_headers(_PAGE_HEADERS)
    resp.set_header("Content-Security-Policy", _POLICY + (" ".join(frame_origins) or "'none'"))
    if not frame_origins:  # X-Frame-Options can't hold a list
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
