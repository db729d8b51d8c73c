"""The page of an error: the problem, and the next step."""

from functools import cache
from typing import Final

import falcon.asgi

from gateway.exchange import Request
from gateway.pay.languages import N_, Language
from gateway.pay.rendering import answer_html, language_of, render
from kit.base.ids import parse_id
from kit.rpc.errors import Refused

# Title and sentence by status; any other status has those of 500.
_PROBLEM_TEXTS: Final = {
    400: (
        N_("That did not work"),
        N_("We could not read the form. Go back to the payment page and try again."),
    ),
    404: (
        N_("Payment not found"),
        N_(
            "There is no payment at this address. Check that the link is complete, or open it again from the shop."
        ),
    ),
    405: (N_("That did not work"), N_("Go back to the payment page and continue from there.")),
    413: (
        N_("That was too long"),
        N_("Go back to the payment page and send a shorter text or a smaller picture."),
    ),
    429: (
        N_("One moment, please"),
        N_(
            "Too many requests came from your network. Your payment has not changed: wait a minute, then reload the "
            "page."
        ),
    ),
    503: (
        N_("One moment, please"),
        N_(
            "We cannot show the payment right now. Nothing is lost: wait a few seconds, then reload the page."
        ),
    ),
}
_PAGE_LOADED_TOO_OFTEN: Final = (
    N_("One moment, please"),
    N_(
        "This page was loaded too many times in a short while. Your payment has not changed: wait a minute, then "
        "reload the page."
    ),
)
_UNKNOWN_PROBLEM: Final = (
    N_("Something went wrong"),
    N_("The problem is on our side, and your payment has not changed. Reload the page in a minute."),
)


# Placeholders for the parts that differ per request: the page is cached, because a stranger may request many.
_ANY_REFERENCE: Final = "THE-REFERENCE"
_ANY_PAYMENT: Final = "THE-PAYMENT"


def refuse_page(
    req: Request, resp: falcon.asgi.Response, refused: Refused, *, status: int, prefix: str, is_test: bool
) -> None:
    """Answers with a page in place of the error envelope."""
    segments = req.path.split("/")
    known_form = parse_id(segments[2]) if len(segments) > 2 else None
    leads_back = known_form is not None and refused.reason != "INVOICE_NOT_FOUND"
    language = language_of(req)
    texts = _PROBLEM_TEXTS.get(status, _UNKNOWN_PROBLEM)
    if refused.metadata.get("limit_of") == "page":
        texts = _PAGE_LOADED_TOO_OFTEN
    html = _problem_page(language, texts, prefix, leads_back, is_test)
    reference = refused.metadata.get("error_id") or req.exchange.request_id
    html = html.replace(_ANY_REFERENCE, reference).replace(_ANY_PAYMENT, str(known_form))
    answer_html(req, resp, html, status=status, prefix=prefix, language=language)


@cache  # one page per language and kind of problem
def _problem_page(
    language: Language, texts: tuple[str, str], prefix: str, leads_back: bool, is_test: bool
) -> str:
    title, sentence = texts
    return render(
        "problem",
        language,
        prefix=prefix,
        is_test=is_test,
        title=language.text(title),
        sentence=language.text(sentence),
        back=f"{prefix}/pay/{_ANY_PAYMENT}" if leads_back else None,
        reference=_ANY_REFERENCE,
    )
