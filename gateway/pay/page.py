"""The routes of the customer's page (issue: complete without JavaScript, safe to repeat, never wrong)."""

from collections.abc import Awaitable
from typing import Final
from urllib.parse import urlencode

import falcon
import falcon.asgi

from fiatgate.invoices.v1 import invoices_pb2 as pb
from gateway.exchange import Request
from gateway.pay.forms import form_of, sent_by_our_page
from gateway.pay.rendering import answer_page, stylesheet
from gateway.pay.view import CHOOSE_AGAIN, NOTICES, View, view_of
from gateway.query import Query
from gateway.wiring import Deps
from kit.errors import Refused, denied, invalid, not_found
from kit.ids import parse_id

NOTE_MAX_CHARACTERS: Final = 2000


class PageResource:
    """/pay/{invoice_id} and its steps: methods, paid, cancel, appeal. A GET shows, a POST does and leads back.

    A step that no longer fits (another tab was quicker, time ran out) leads to the page as it stands now, with a
    sentence that says so.
    """

    def __init__(self, deps: Deps) -> None:
        self._checkout = deps.checkout
        self._links = deps.links

    # -- what is shown

    async def on_get(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(invoice_id)
        self._show(req, resp, invoice_id, view.screen.value, view)

    on_head = on_get

    async def on_get_methods(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(invoice_id)
        if view.can_choose:
            self._show(req, resp, invoice_id, "choose", view)
        else:
            self._lead(resp, invoice_id)

    async def on_get_cancel(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(invoice_id)
        if view.can_cancel:
            self._show(req, resp, invoice_id, "cancel", view)
        else:
            self._lead(resp, invoice_id)

    async def on_get_appeal(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(invoice_id)
        if view.can_appeal:
            self._show(req, resp, invoice_id, "appeal", view)
        else:
            self._lead(resp, invoice_id)

    async def on_get_paid(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        """Nothing to show here; where a browser's address bar may end up after a failed POST."""
        self._lead(resp, invoice_id)

    # -- what is done

    async def on_post_methods(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        form = self._form(req)
        request = pb.SelectPaymentMethodRequest(
            invoice_id=_known_form(invoice_id), method_code=form.get("method_code", "")
        )
        await self._step(resp, invoice_id, self._checkout.SelectPaymentMethod(request))

    async def on_post_paid(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        deal_id = self._form(req).get("deal_id", "")
        if (
            not deal_id
        ):  # to invoices an empty one means "whichever is open", which is not what the customer saw
            raise invalid("VALIDATION_ERROR", "The form says nothing of the payment it is about")
        request = pb.MarkPaidRequest(invoice_id=_known_form(invoice_id), deal_id=deal_id)
        await self._step(resp, invoice_id, self._checkout.MarkPaid(request))

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        self._form(req)
        request = pb.CancelCheckoutRequest(invoice_id=_known_form(invoice_id))
        await self._step(resp, invoice_id, self._checkout.CancelCheckout(request))

    async def on_post_appeal(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        # Browsers send line ends as CR LF and count them as one; a NUL is nothing a person typed.
        note = self._form(req).get("note", "").replace("\r\n", "\n").replace("\x00", "").strip()
        request = pb.OpenCustomerAppealRequest(
            invoice_id=_known_form(invoice_id), note=note[:NOTE_MAX_CHARACTERS]
        )
        await self._step(resp, invoice_id, self._checkout.OpenCustomerAppeal(request))

    # -- how

    async def _view(self, invoice_id: str) -> View:
        known_form = _known_form(invoice_id)
        checkout = await self._checkout.GetCheckout(pb.GetCheckoutRequest(invoice_id=known_form))
        return view_of(checkout, page=self._links.page(known_form))

    def _show(
        self, req: Request, resp: falcon.asgi.Response, invoice_id: str, template: str, view: View
    ) -> None:
        notice = Query(req.query_string).text("notice") or ""
        answer_page(
            resp,
            template,
            prefix=self._links.prefix,
            page=self._links.page(_known_form(invoice_id)),
            view=view,
            notice=NOTICES.get(notice.upper(), ""),
            note_max_characters=NOTE_MAX_CHARACTERS,
        )

    def _form(self, req: Request) -> dict[str, str]:
        if not sent_by_our_page(req, self._links):
            raise denied("VALIDATION_ERROR", "The form was sent from another site")
        return dict(form_of(req))

    async def _step(self, resp: falcon.asgi.Response, invoice_id: str, call: Awaitable[object]) -> None:
        """Does it and leads to the page, with a notice when the answer was a "no" that the page can explain."""
        try:
            await call
        except Refused as refused:
            if refused.reason not in NOTICES:
                raise
            self._lead(resp, invoice_id, refused.reason)
        else:
            self._lead(resp, invoice_id)

    def _lead(self, resp: falcon.asgi.Response, invoice_id: str, reason: str = "") -> None:
        """303: what the browser loads next, and what a reload repeats, is a GET."""
        target = self._links.page(_known_form(invoice_id))
        if reason in CHOOSE_AGAIN:
            target += "/methods"
        if NOTICES.get(reason):
            target += "?" + urlencode({"notice": reason.lower()})
        resp.status = falcon.HTTP_303
        resp.location = target
        resp.set_header("Cache-Control", "no-store")


class StylesheetResource:
    """GET /pay-static/{name}: one file, whose name says its content and may be kept for ever."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response, name: str) -> None:
        known, content = stylesheet()
        if name != known:
            raise not_found("NOT_FOUND", "No such file")
        resp.content_type = "text/css; charset=utf-8"
        resp.data = content
        resp.set_header("Cache-Control", "public, max-age=31536000, immutable")
        resp.set_header("X-Content-Type-Options", "nosniff")


def _known_form(invoice_id: str) -> str:
    """The id in its canonical form. Raises INVOICE_NOT_FOUND for what is no UUID."""
    known_form = parse_id(invoice_id)
    if known_form is None:
        raise not_found("INVOICE_NOT_FOUND", "Invoice not found")
    return str(known_form)


# -- when it can't be shown

# Title and sentence by status; any other is as a 500.
_PROBLEM_TEXTS: Final = {
    400: ("This did not work", "The form could not be read. Go back to the payment page and try again."),
    404: (
        "Payment not found",
        "There is no payment at this address. Check that the link is complete, or open it again from the shop.",
    ),
    405: ("This did not work", "Go back to the payment page and continue from there."),
    413: ("That was too long", "Go back to the payment page and send a shorter text."),
    503: (
        "One moment, please",
        "We cannot show the payment right now. Nothing is lost: wait a few seconds and load the page again.",
    ),
}
_UNKNOWN_PROBLEM: Final = (
    "Something went wrong",
    "It is our mistake, not yours, and your payment is as it was. Load the page again in a minute.",
)


def refuse_page(
    req: Request, resp: falcon.asgi.Response, refused: Refused, *, status: int, prefix: str
) -> None:
    """A page for people in place of the error envelope: what happened, and the way on."""
    title, sentence = _PROBLEM_TEXTS.get(status, _UNKNOWN_PROBLEM)
    segments = req.path.split("/")
    known_form = parse_id(segments[2]) if len(segments) > 2 else None
    is_gone = known_form is None or refused.reason == "INVOICE_NOT_FOUND"
    answer_page(
        resp,
        "problem",
        status=status,
        prefix=prefix,
        title=title,
        sentence=sentence,
        back=None if is_gone else f"{prefix}/pay/{known_form}",
        reference=refused.metadata.get("error_id") or req.exchange.request_id,
    )
