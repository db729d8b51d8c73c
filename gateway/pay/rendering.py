"""The pages of a payment in the customer's language, from templates."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import falcon

from gateway.exchange import Request
from gateway.pay import languages
from gateway.pay.bank import steps_of
from gateway.pay.files import static_files
from gateway.pay.languages import Language
from kit.base.money import own_text
from kit.web import pages
from kit.web.templates import Templates

_HERE: Final = Path(__file__).parent

LANGUAGE_COOKIE: Final = "fiatgate_language"
LANGUAGE_SECONDS: Final = 365 * 86_400


@cache
def templates(language: Language) -> Templates:
    """Returns the templates in that language."""
    made = Templates(_HERE / "templates", translate=language.text)
    made.globals.update(language=language, languages=languages.NAMES, own_text=own_text, bank_steps=steps_of)
    return made


def render(template: str, language: Language, *, prefix: str, is_test: bool, **values: Any) -> str:
    """Returns the HTML of a template; `prefix` is the path that the gateway's addresses begin with."""
    static = f"{prefix}/pay-static/{static_files().version}"
    return (
        templates(language)
        .get_template(f"{template}.html")
        .render(template=template, static=static, is_test=is_test, **values)
    )


def language_of(req: Request) -> Language:
    """Returns the language of the address's parameter, else of the cookie, else of the browser."""
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
    is_test: bool,
    language: Language,
    frame_origins: Sequence[str] = (),
    **values: Any,
) -> None:
    """Answers with a template.

    frame_origins  sites whose pages may show it in a frame
    """
    html = render(template, language, prefix=prefix, is_test=is_test, **values)
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
    pages.answer_html(req, resp, html, status=status, frame_origins=frame_origins)
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
