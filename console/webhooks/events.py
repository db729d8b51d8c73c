"""Webhooks: the list by state, one with its attempts, and the resend of one or several."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

import falcon.asgi

from console.calls import Outcome, each_of, invoices_of, or_none
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for, own_path
from console.ui.filters import SINCE, UNTIL, Choice, Merchant, Tabs, Text
from console.ui.values import iso, number_of, word
from console.webhooks.explained import explained
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from kit.base.clock import SystemClock
from kit.rpc.errors import Refused, is_away, not_found
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from kit.web.exchange import allow

RESENT_MOST: Final = 20
"""Webhooks of one form."""
SENT_AT_ONCE: Final = 2
"""As many as the webhooks service sends at the same time for one merchant."""
ATTENTION: Final = timedelta(days=7)
"""Older webhooks choose no tab: the list of their state has them."""
_CLOCK: Final = SystemClock()

STATES: Final = {
    "dead": "Dead",
    "retrying": "Retrying",
    "pending": "Pending",
    "success": "Delivered",
    "all": "All",
}
TYPES: Final = {
    each: each.partition(".")[2]
    for each in ("invoice.success", "invoice.fail", "invoice.expired", "invoice.canceled", "invoice.adjusted")
}
REFUSALS: Final = {
    "WEBHOOK_NOT_FOUND": "The invoice has no webhook.",
    "WEBHOOK_RESEND_COOLDOWN": "It was resent a moment ago. Wait a minute.",
    "WEBHOOK_RESEND_CONFLICT": "An attempt is under way. Wait for its end.",
    "RATE_LIMITED": "Too many resends of this merchant at the same time. Try again in a moment.",
}
SILENT: Final = "The webhooks service does not answer. Open the page anew before you try again."


@dataclass(frozen=True)
class Resent:
    """The result of a resend for people."""

    invoice_id: str
    delivered: bool
    sentence: str


class EventsPage(ListPage):
    """/webhooks: events of all merchants, or of the session's, newest first."""

    link: ClassVar[str] = "/webhooks"
    template = "webhooks"
    csv_name = "webhooks"
    columns = (
        *("event_id", "created_at", "event_type", "status", "invoice_id", "merchant_id", "merchant"),
        *("callback_url", "automatic_attempts", "manual_attempts", "next_attempt_at"),
    )
    filters = (
        Tabs("state", "State", STATES, unnamed="all"),
        Merchant(),
        Choice("type", "Type", {"": "Any", **TYPES}, of="event_type"),
        Text("invoice", "Invoice", hint="its whole id", of="invoice_id"),
        SINCE,
        UNTIL,
    )

    async def on_get(self, req: Request, resp: falcon.asgi.Response, **params: str) -> None:
        """Leads a person who names no filter to the tab that needs attention: a member to those given up, those that
        failed so far, else all; operators to those that were given up.
        """
        if not req.query_string:
            is_member = bool(req.exchange.signed_in.merchant_id)
            leave_for(resp, "/webhooks", state=await self._first_tab(req) if is_member else "dead")
            return
        await super().on_get(req, resp, **params)

    on_head = on_get

    async def _first_tab(self, req: Request) -> str:
        """Returns the first state that has a webhook of the last days; `all` when neither has, or webhooks is away."""
        own = req.exchange.signed_in.merchant_id
        dead = pb.ListEventsRequest(merchant_id=own, status=pb.EVENT_STATUS_DEAD, limit=1)
        pending = pb.EVENT_STATUS_PENDING
        retrying = pb.ListEventsRequest(merchant_id=own, status=pending, attempted=True, limit=1)
        for request in (dead, retrying):
            request.created_from.FromDatetime(_CLOCK.now() - ATTENTION)
        answers = await asyncio.gather(
            or_none(self.deps.webhooks.ListEvents(dead)), or_none(self.deps.webhooks.ListEvents(retrying))
        )
        tabs = zip(("dead", "retrying"), answers, strict=True)
        return next((tab for tab, answer in tabs if answer and answer.events), "all")

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListEventsRequest(
            merchant_id=asked["merchant"],
            event_type=asked["type"],
            invoice_id=asked["invoice"],
            after_event_id=number_of(asked.after),
            limit=min(asked.limit, 1000),
        )
        request.status = {
            "dead": pb.EVENT_STATUS_DEAD,
            "retrying": pb.EVENT_STATUS_PENDING,
            "pending": pb.EVENT_STATUS_PENDING,
            "success": pb.EVENT_STATUS_SUCCESS,
        }.get(asked["state"], pb.EVENT_STATUS_UNSPECIFIED)
        if asked["state"] == "retrying":
            request.attempted = True
        if begin := SINCE.begin(asked["since"]):
            request.created_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.created_before.FromDatetime(end)
        answer = await self.deps.webhooks.ListEvents(request)
        names = await self.names(*(each.merchant_id for each in answer.events))
        if answer.continue_after_event_id:
            after = str(answer.continue_after_event_id)
            return Found(answer.events, after, values={"names": names, "searched": True})
        return asked.found(answer.events, after=lambda row: str(row.event_id), names=names, searched=False)

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        own, ids = req.exchange.signed_in.merchant_id, [each.invoice_id for each in found.rows]
        orders = await invoices_of(self.deps.deals, ids, merchant_id=own) or {}
        searched = found.values.get("searched", False)
        return {"resent": (), "left": 0, "next_after": "", "searched": searched, "orders": orders}

    def cells(self, row: pb.WebhookEvent, found: Found) -> Sequence[str]:
        return (
            str(row.event_id),
            iso(row.created_at),
            row.event_type,
            word(row, "status"),
            row.invoice_id,
            row.merchant_id,
            found.values["names"].get(row.merchant_id, ""),
            row.callback_url,
            str(row.auto_attempts),
            str(row.manual_attempts),
            iso(row.next_retry_at) if row.HasField("next_retry_at") else "",
        )

    async def on_post_resend(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Sends the ticked ones now, or the next ones of the list (`every`, from `after` on), and shows what their
        receivers answered.
        """
        form, next_after = await self.form(req), ""
        ticked = form.all("invoice_id")
        if form.text("every"):
            wanted = Asked(
                await self._checked(req, self._given(req)), form.text("after"), RESENT_MOST + 1, {}
            )
            found = await self.rows(req, wanted)
            ticked, next_after = [row.invoice_id for row in found.rows], found.after
        if not ticked:
            leave_for(resp, own_path(f"/webhooks?{req.query_string}"), problem="nothing_ticked")
            return
        ids = list(dict.fromkeys(ticked))
        outcomes = await each_of(
            ids[:RESENT_MOST],
            lambda id: self._resend(req, id),
            beside=REFUSALS,
            at_once=SENT_AT_ONCE,
            seconds=OUTWARD_CALL_SECONDS,
        )
        resent = [_resent(each) for each in outcomes]
        values = {"resent": resent, "left": len(ids) - len(outcomes), "next_after": next_after}
        await self.answer(req, resp, values=values)

    async def _resend(self, req: Request, invoice_id: str) -> pb.ResendLatestResponse:
        own = req.exchange.signed_in.merchant_id
        request = pb.ResendLatestRequest(merchant_id=own, invoice_id=invoice_id)
        return await self.deps.webhooks.ResendLatest(request, timeout=OUTWARD_CALL_SECONDS)


def _resent(outcome: Outcome) -> Resent:
    if outcome.is_done:
        return Resent(outcome.id, outcome.answer.ok, result_of(outcome.answer))
    if outcome.refused is not None and is_away(outcome.refused):
        return Resent(outcome.id, False, SILENT)
    known = REFUSALS.get(outcome.refused.reason) if outcome.refused else None
    return Resent(outcome.id, False, known or outcome.sentence)


class EventPage(Page):
    """/webhooks/{event_id}: an event with its payload and each attempt; resend."""

    link: ClassVar[str] = "/webhooks"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, event_id: str) -> None:
        await self._show(req, resp, event_id)

    on_head = on_get

    async def on_post_resend(self, req: Request, resp: falcon.asgi.Response, event_id: str) -> None:
        await self.form(req)
        event = await self._event(event_id)
        own = req.exchange.signed_in.merchant_id
        request = pb.ResendLatestRequest(merchant_id=own, invoice_id=event.invoice_id)
        allow(OUTWARD_CALL_SECONDS)
        try:
            answer = await self.deps.webhooks.ResendLatest(request, timeout=OUTWARD_CALL_SECONDS)
        except Refused as refused:
            if refused.reason not in REFUSALS:
                raise
            leave_for(resp, f"/webhooks/{event_id}", problem=refused.reason.lower())
        else:
            path = f"/webhooks/{event_id}"
            if answer.ok:
                leave_for(resp, path, notice="webhook-delivered-here" if own else "webhook-delivered")
            elif answer.not_sent:
                leave_for(resp, path, problem="webhook_not_sent")
            else:
                leave_for(resp, path, problem="webhook_refused_here" if own else "webhook_refused")

    async def _show(self, req: Request, resp: falcon.asgi.Response, event_id: str) -> None:
        event = await self._event(event_id)
        names = await self.names(event.merchant_id)
        is_own = bool(req.exchange.signed_in.merchant_id)
        attempts = [(each, explained(each, for_members=is_own)) for each in reversed(event.attempts)]
        payload = event.request_payload.decode(errors="replace")
        made_by, signing_key = await self._signing_key(req, event)
        self.show(
            req,
            resp,
            "webhooks-event",
            event=event,
            names=names,
            attempts=attempts,
            sent=json.loads(event.request_payload),
            payload=payload,
            made_by=made_by,
            signing_key=signing_key,
        )

    async def _signing_key(
        self, req: Request, event: pb.WebhookEvent
    ) -> tuple[str, merchants_pb2.ApiKey | None]:
        """Returns the id of the key that made the invoice, empty for a person, and the key whose secret signs the next
        attempt: this one while it is active, else the newest active one (docs/api.md#signature). Only for members who
        see the keys.
        """
        own = req.exchange.signed_in.merchant_id
        if not (own and self.may(req, "developer")):
            return "", None
        of_invoice = invoices_pb2.GetInvoiceStoryRequest(invoice_id=event.invoice_id)
        of_merchant = merchants_pb2.ListApiKeysRequest(merchant_id=own)
        try:
            story, keys = await asyncio.gather(
                or_none(self.deps.deals.GetInvoiceStory(of_invoice)),
                or_none(self.deps.merchants.ListApiKeys(of_merchant)),
            )
        except Refused:  # an invoice that a restore has lost: the webhook is shown all the same
            return "", None
        if story is None or keys is None:
            return "", None
        made_by = story.invoice.key_id
        active = {key.key_id: key for key in keys.keys if key.active}
        return made_by, active.get(made_by) or active.get(max(active, default=""))

    async def _event(self, event_id: str) -> pb.WebhookEvent:
        number = number_of(event_id)
        if not number:
            raise not_found("NOT_FOUND", "There is no such webhook")
        return (await self.deps.webhooks.GetEvent(pb.GetEventRequest(event_id=number))).event


def result_of(answer: pb.ResendLatestResponse) -> str:
    """Returns the result of a resend, as the command line says it."""
    if answer.not_sent:
        return f"Not sent: event {answer.event_id}; its page says why."
    got = f"status {answer.http_status}" if answer.HasField("http_status") else "no answer"
    verb = "Delivered" if answer.ok else "Sent, and not accepted"
    return f"{verb}: event {answer.event_id}, {got} after {answer.duration_ms} ms."
