"""The routes of the customer's page: complete without JavaScript, safe to repeat, never wrong."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import urlencode

import falcon
import falcon.asgi
from markupsafe import Markup

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.withdrawals.v1 import refunds_pb2
from gateway.exchange import Request
from gateway.json.query import Query
from gateway.pay.existing import ExistingPayments
from gateway.pay.languages import Language
from gateway.pay.notices import ACCOUNT_REFUSED, CHOOSE_AGAIN, METHOD_IN_USE, NOTICES, PICTURE_REFUSED
from gateway.pay.qr import svg_of
from gateway.pay.refunds import ACCOUNT_MAX_CHARACTERS, FIELDS, KINDS, Refund, Typed, refunds_of, typed_in
from gateway.pay.rendering import answer_page, language_of
from gateway.pay.view import Screen, View, view_of
from gateway.walls.pace import Pace
from gateway.walls.strangers import PAYMENTS
from gateway.walls.uploads import PICTURE_MAX_BYTES
from gateway.wiring import Deps
from kit.base.ids import parse_id
from kit.base.proto import most_of
from kit.events.subjects import subject_of
from kit.rpc.errors import Refused, denied, invalid, not_found
from kit.web.forms import Form, form_of, sent_by_own_page
from kit.web.live import Live
from kit.web.templates import theirs
from kit.web.walls import turned_away
from kit.web.walls.buckets import Buckets

HINT: Final = subject_of(pb.InvoiceChanged)
SENDER_NAME_MAX_CHARACTERS: Final = most_of(pb.MarkPaidRequest, "sender_name")
NOTE_MAX_CHARACTERS: Final = most_of(pb.OpenCustomerAppealRequest, "note")
PICTURE_FIELD: Final = "picture"
REFUNDS_SECONDS: Final = 1.0
"""The page waits no longer for refunds: it matters more."""


class PageResource:
    """/pay/{invoice_id} and its steps: methods, paid, cancel, appeal, late, refund. A GET shows, a POST acts and
    redirects.

    A step that no longer fits (another tab was quicker, or time ran out) redirects to the page in its present state,
    with a sentence about it.
    """

    def __init__(self, deps: Deps, pace: Pace) -> None:
        self._checkout = deps.checkout
        self._refunds = deps.refunds
        self._existing = ExistingPayments(deps.checkout)
        self._links = deps.links
        self._live = Live(deps.hints, item="payment")
        self._strangers = deps.strangers
        self._pages = Buckets(deps.settings.page_requests_per_minute)
        self._pace = pace
        self._is_test = deps.settings.is_test
        turned_away.begin("page")

    # -- showing

    async def on_get(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(req, invoice_id)
        self._show(req, resp, invoice_id, view.screen.value, view)

    on_head = on_get

    async def on_get_methods(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(req, invoice_id, choosing=True)
        self._show_step(req, resp, invoice_id, "choose", view, fits=view.can_choose)

    async def on_get_cancel(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(req, invoice_id)
        self._show_step(req, resp, invoice_id, "cancel", view, fits=view.can_cancel)

    async def on_get_appeal(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(req, invoice_id)
        self._show_step(req, resp, invoice_id, "appeal", view, fits=view.can_appeal)

    async def on_get_late(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        view = await self._view(req, invoice_id)
        self._show_step(req, resp, invoice_id, "late", view, fits=view.can_report_late_money)

    async def on_get_paid(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        """Redirects to the page: a browser may have this address after a failed POST."""
        self._redirect(resp, invoice_id)

    on_get_refund = on_get_paid

    async def on_get_qr(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        """Answers with the requisite's QR code, as a picture."""
        view = await self._view(req, invoice_id)
        if view.requisite is None:
            raise not_found("NOT_FOUND", "There is no account to pay to")
        resp.content_type = "image/svg+xml"
        resp.data = svg_of(view.requisite.code.text)
        resp.set_headers(
            {
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": "default-src 'none'",
            }
        )

    async def on_get_events(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        """Answers with the stream of changes; with 204 when too many are open, and then the page checks by itself."""
        view = await self._view(req, invoice_id)
        id, network = _known_form(invoice_id), req.exchange.network
        if not self._live.has_room_for(id, network):
            resp.status = falcon.HTTP_204
            return
        resp.set_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        has_changed = req.get_param("state") != view.state

        async def check() -> bool:
            with suppress(Refused):
                return (await self._view(req, invoice_id)).state != view.state
            return False

        resp.sse = self._live.stream(
            id,
            network,
            subject=f"{HINT}.{id}",
            has_changed=has_changed,
            check=check,
            stopping=req.exchange.stopping,
        )

    # -- acting

    async def on_post_methods(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        method_code = (await self._form(req, invoice_id)).text("method_code")
        request = pb.SelectPaymentMethodRequest(invoice_id=_known_form(invoice_id), method_code=method_code)
        call = partial(self._checkout.SelectPaymentMethod, request)
        await self._step(req, resp, invoice_id, call, method_code=method_code)

    async def on_post_paid(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        form = await self._form(req, invoice_id)
        deal_id = form.text("deal_id")
        # For invoices an empty id means the open deal, which may not be the one that the customer saw.
        if not deal_id:
            raise invalid("VALIDATION_ERROR", "The form does not name its payment")
        sender_name = form.line("sender_name", most=SENDER_NAME_MAX_CHARACTERS)
        request = pb.MarkPaidRequest(
            invoice_id=_known_form(invoice_id), deal_id=deal_id, sender_name=sender_name
        )
        await self._step(req, resp, invoice_id, partial(self._checkout.MarkPaid, request))

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        await self._form(req, invoice_id)
        request = pb.CancelCheckoutRequest(invoice_id=_known_form(invoice_id))
        await self._step(req, resp, invoice_id, partial(self._checkout.CancelCheckout, request))

    async def on_post_appeal(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        form = await self._form_with_picture(req, resp, invoice_id, lambda view: view.can_appeal)
        if form is None:
            return
        note = form.prose("note", most=NOTE_MAX_CHARACTERS)
        request = pb.OpenCustomerAppealRequest(
            invoice_id=_known_form(invoice_id), note=note, picture=form.file
        )
        call = partial(self._checkout.OpenCustomerAppeal, request)
        await self._step_with_picture(req, resp, invoice_id, template="appeal", note=note, call=call)

    async def on_post_late(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        form = await self._form_with_picture(req, resp, invoice_id, lambda view: view.can_report_late_money)
        if form is None:
            return
        note = form.prose("note", most=NOTE_MAX_CHARACTERS)
        request = pb.OpenCaseRequest(invoice_id=_known_form(invoice_id), note=note, picture=form.file)
        call = partial(self._checkout.OpenCase, request)
        await self._step_with_picture(req, resp, invoice_id, template="late", note=note, call=call)

    async def on_post_refund(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        typed = typed_in(await self._form(req, invoice_id))
        call = partial(self._refunds.GiveRefundAccount, typed.request(_known_form(invoice_id)))
        try:
            await self._step(req, resp, invoice_id, call)
        except _FieldRefused:
            view = await self._view(req, invoice_id)
            name = view.screen.value
            self._show(req, resp, invoice_id, name, view, status=422, notice=ACCOUNT_REFUSED, typed=typed)

    # -- helpers

    async def _view(self, req: Request, invoice_id: str, *, choosing: bool = False) -> View:
        """Returns the view; with `choosing` it has the free places of each method even when one is chosen."""
        known_form = _known_form(invoice_id)
        self._check_flood(known_form)
        return await self._checked_view(req, known_form, choosing=choosing)

    async def _checked_view(self, req: Request, known_form: str, *, choosing: bool = False) -> View:
        await self._admit(req, known_form)
        request = pb.GetCheckoutRequest(invoice_id=known_form, choosing=choosing)
        call = partial(self._checkout.GetCheckout, request)
        network = req.exchange.network
        async with self._pace.page(network):
            checkout = await self._strangers.ask(PAYMENTS, network, known_form, call)
        return view_of(checkout, self._links, await self._refunds_of(checkout.invoice))

    async def _refunds_of(self, invoice: pb.Invoice) -> Sequence[Refund]:
        if invoice.status == pb.INVOICE_STATUS_PENDING:
            return ()
        request = refunds_pb2.ListRefundsOfPageRequest(invoice_id=invoice.invoice_id)
        with suppress(Refused):
            answer = await self._refunds.ListRefundsOfPage(request, timeout=REFUNDS_SECONDS)
            return refunds_of(answer)
        return ()

    async def _admit(self, req: Request, known_form: str) -> None:
        """Waits for the turn of the client's network. Raises INVOICE_NOT_FOUND, and RATE_LIMITED when too many wait.

        A payment that is new to this process is checked first, by a call that waits for no other service: a guess costs
        little.
        """
        network = req.exchange.network
        if not self._strangers.knows(PAYMENTS, known_form):
            await self._strangers.ask(
                PAYMENTS, network, known_form, partial(self._existing.require, known_form)
            )
        await self._pace.turn(network)

    def _show_step(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        invoice_id: str,
        template: str,
        view: View,
        *,
        fits: bool,
    ) -> None:
        if fits:
            self._show(req, resp, invoice_id, template, view)
        else:
            self._redirect(resp, invoice_id)

    def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        invoice_id: str,
        template: str,
        view: View,
        *,
        status: int = 200,
        notice: str = "",
        note: str = "",
        typed: Typed | None = None,
    ) -> None:
        language = language_of(req)
        query = Query(req.query_string)
        answer_page(
            req,
            resp,
            template,
            status=status,
            prefix=self._links.prefix,
            is_test=self._is_test,
            language=language,
            frame_origins=view.brand.frame_origins,
            brand=f"{self._links.prefix}/pay-brand/{view.brand.stylesheet}"
            if view.brand.stylesheet
            else None,
            page=self._links.page(_known_form(invoice_id)),
            view=view,
            notice=language.text(notice) or _notice_of(query, view, language),
            stays=query.text("stay") == "yes",
            note=note,
            note_max_characters=NOTE_MAX_CHARACTERS,
            sender_name_max_characters=SENDER_NAME_MAX_CHARACTERS,
            picture_max_bytes=PICTURE_MAX_BYTES,
            typed=typed,
            account_kinds=KINDS,
            account_max_characters=ACCOUNT_MAX_CHARACTERS,
        )

    async def _form(self, req: Request, invoice_id: str) -> Form:
        """Reads the posted form of a payment that is known to exist, after every check that needs no body."""
        known_form = self._posted_by_us(req, invoice_id)
        await self._admit(req, known_form)
        return await self._received(req, known_form)

    async def _form_with_picture(
        self, req: Request, resp: falcon.asgi.Response, invoice_id: str, fits: Callable[[View], bool]
    ) -> Form | None:
        """Reads the form with its picture if the payment can use it. Otherwise redirects to the page and returns None:
        such a large body is read only when it is used.
        """
        known_form = self._posted_by_us(req, invoice_id)
        view = await self._checked_view(req, known_form)
        if fits(view):
            return await self._received(req, known_form)
        has_ended = view.screen in (Screen.REVIEW, Screen.OUTCOME)
        self._redirect(resp, invoice_id, "" if has_ended else "DEAL_STATE_CONFLICT")
        return None

    def _posted_by_us(self, req: Request, invoice_id: str) -> str:
        """Returns the payment's id in its canonical form, if the payment page sent the form and its rate allows it."""
        known_form = _known_form(invoice_id)
        self._check_flood(known_form)
        if not sent_by_own_page(req, self._links.origin):
            raise denied("VALIDATION_ERROR", "The form was sent from another site")
        return known_form

    async def _received(self, req: Request, known_form: str) -> Form:
        await req.exchange.receive_body(item=known_form)
        form = form_of(req, file_field=PICTURE_FIELD, file_max_bytes=PICTURE_MAX_BYTES)
        req.exchange.body = b""  # a picture has megabytes, and the form holds them too
        return form

    def _check_flood(self, invoice_id: str) -> None:
        if not self._pages.take(invoice_id):
            turned_away.count("page")
            raise self._pages.refusal(limit_of="page")

    async def _step_with_picture(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        invoice_id: str,
        *,
        template: str,
        note: str,
        call: Callable[[], Awaitable[object]],
    ) -> None:
        """Does the same as `_step`. After a refused picture it shows the form again, with the customer's text."""
        try:
            await self._step(req, resp, invoice_id, call)
        except _FieldRefused:
            view = await self._view(req, invoice_id)
            self._show(req, resp, invoice_id, template, view, status=422, notice=PICTURE_REFUSED, note=note)

    async def _step(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        invoice_id: str,
        call: Callable[[], Awaitable[object]],
        *,
        method_code: str = "",
    ) -> None:
        """Makes the call and redirects to the page, with a notice if the reason of a refusal has one."""
        try:
            await self._strangers.ask(PAYMENTS, req.exchange.network, _known_form(invoice_id), call)
        except Refused as refused:
            if refused.metadata.get("field") in {PICTURE_FIELD, *FIELDS}:
                raise _FieldRefused from None
            if refused.reason not in NOTICES:
                raise
            self._redirect(resp, invoice_id, refused.reason, method_code=method_code)
        else:
            self._redirect(resp, invoice_id)

    def _redirect(
        self, resp: falcon.asgi.Response, invoice_id: str, reason: str = "", *, method_code: str = ""
    ) -> None:
        """Redirects with 303: the browser's next request, and a reload, is a GET."""
        target = self._links.page(_known_form(invoice_id))
        if reason in CHOOSE_AGAIN:
            target += "/methods"
        if NOTICES.get(reason):
            target += "?" + urlencode({"notice": reason.lower()})
            if reason == "NO_AVAILABLE_REQUISITES":
                target += "&" + urlencode({"method": method_code})
        resp.status = falcon.HTTP_303
        resp.location = target
        resp.set_header("Cache-Control", "no-store")


def _notice_of(query: Query, view: View, language: Language) -> str:
    """Returns the sentence about the step that led here, unless the page has it already."""
    reason = (query.text("notice") or "").upper()
    sentence = NOTICES.get(reason, "")
    if sentence == view.nothing_to_choose:
        return ""
    name = next((each.name for each in view.methods if each.code == query.text("method")), None)
    if reason == "NO_AVAILABLE_REQUISITES" and name is not None:
        return Markup(language.text(METHOD_IN_USE)) % {"method": theirs(name)}  # noqa: S704  our own sentence
    return language.text(sentence)


class _FieldRefused(Exception):
    """The form is shown again: the uploaded file is no picture, or the account is none."""


def _known_form(invoice_id: str) -> str:
    """Returns the id in its canonical form. Raises INVOICE_NOT_FOUND for a text that is no UUID."""
    known_form = parse_id(invoice_id)
    if known_form is None:
        raise not_found("INVOICE_NOT_FOUND", "Invoice not found")
    return str(known_form)
