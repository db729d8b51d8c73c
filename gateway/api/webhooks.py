"""The webhook history of an invoice (docs/api.md#list-invoice-webhooks), and the manual resend."""

import json
from typing import Any, Final

import falcon
import falcon.asgi

from fiatgate.invoices.v1.invoices_pb2 import GetInvoiceRequest, Invoice
from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from gateway.api.references import invoice_ref_from
from gateway.exchange import Request
from gateway.json.body import no_other_than_json
from gateway.json.query import no_query
from gateway.json.replies import optional_time_text, time_text
from gateway.wiring import Deps
from kit.base.proto import optional
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from kit.web.exchange import allow
from kit.web.replies import reply

EVENT_STATUS_NAMES: Final = {
    pb.EVENT_STATUS_PENDING: "pending",
    pb.EVENT_STATUS_SUCCESS: "success",
    pb.EVENT_STATUS_DEAD: "dead",
}
TRIGGER_NAMES: Final = {
    pb.ATTEMPT_TRIGGER_AUTO: "auto",
    pb.ATTEMPT_TRIGGER_MANUAL: "manual",
}
ATTEMPT_STATUS_NAMES: Final = {
    pb.ATTEMPT_STATUS_SUCCESS: "success",
    pb.ATTEMPT_STATUS_FAILURE: "failure",
}


class WebhookResource:
    """GET /api/v1/invoices/{invoice_ref}/webhooks and POST .../webhooks/resend.

    Only invoices knows the invoice of a reference and its merchant, so it is called first.
    """

    def __init__(self, deps: Deps) -> None:
        self._invoices = deps.invoices
        self._webhooks = deps.webhooks

    async def on_get(self, req: Request, resp: falcon.asgi.Response, invoice_ref: str) -> None:
        no_query(req.query_string)
        invoice = await self._invoice(req, invoice_ref)
        answer = await self._webhooks.ListInvoiceEvents(
            pb.ListInvoiceEventsRequest(merchant_id=invoice.merchant_id, invoice_id=invoice.invoice_id)
        )
        reply(
            resp,
            {
                "successful": True,
                "invoice_id": invoice.invoice_id,
                "external_id": invoice.external_id,
                "events_count": len(answer.events),
                "events": [event_to_json(event) for event in answer.events],
            },
        )

    async def on_post_resend(self, req: Request, resp: falcon.asgi.Response, invoice_ref: str) -> None:
        no_query(req.query_string)
        await req.exchange.receive_body()
        no_other_than_json(req)
        invoice = await self._invoice(req, invoice_ref)
        allow(OUTWARD_CALL_SECONDS)
        answer = await self._webhooks.ResendLatest(
            pb.ResendLatestRequest(merchant_id=invoice.merchant_id, invoice_id=invoice.invoice_id),
            timeout=OUTWARD_CALL_SECONDS,
        )
        reply(resp, {"successful": True, "invoice_id": invoice.invoice_id, **resend_to_json(answer)})

    async def _invoice(self, req: Request, invoice_ref: str) -> Invoice:
        answer = await self._invoices.GetInvoice(
            GetInvoiceRequest(
                merchant_id=req.exchange.caller.merchant_id, invoice_ref=invoice_ref_from(invoice_ref)
            )
        )
        return answer.invoice


def event_to_json(event: pb.WebhookEvent) -> dict[str, Any]:
    """Returns `WebhookEvent` of openapi.yaml."""
    return {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "status": EVENT_STATUS_NAMES[event.status],
        "callback_url": event.callback_url,
        "auto_attempts": event.auto_attempts,
        "manual_attempts": event.manual_attempts,
        "total_attempts": event.auto_attempts + event.manual_attempts,
        "next_retry_at": optional_time_text(event, "next_retry_at"),
        "locked_at": optional_time_text(event, "locked_at"),
        "locked_by": optional(event, "locked_by"),
        "request_payload": _payload(event.request_payload),
        "created_at": time_text(event.created_at),
        "updated_at": time_text(event.updated_at),
        "attempts": [attempt_to_json(attempt) for attempt in event.attempts],
    }


def _payload(text: bytes) -> Any:
    """Returns {} for what no process of webhooks wrote: it is not JSON, or no answer can hold it."""
    try:
        payload = json.loads(text)
        json.dumps(payload, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {}
    return payload


def attempt_to_json(attempt: pb.Attempt) -> dict[str, Any]:
    """Returns `WebhookAttempt` of openapi.yaml. `response_headers` is null when the receiver did not answer."""
    http_status = optional(attempt, "http_status")
    return {
        "try_number": attempt.try_number,
        "trigger": TRIGGER_NAMES[attempt.trigger],
        "attempt_status": ATTEMPT_STATUS_NAMES[attempt.status],
        "http_status": http_status,
        "response_headers": None if http_status is None else dict(attempt.response_headers),
        "response_body": optional(attempt, "response_body"),
        "error_message": optional(attempt, "error_message"),
        "duration_ms": optional(attempt, "duration_ms"),
        "created_at": time_text(attempt.created_at),
    }


def resend_to_json(answer: pb.ResendLatestResponse) -> dict[str, Any]:
    """Returns the answer of docs/api.md#resend-invoice-webhook."""
    return {
        "event_id": answer.event_id,
        "resend": {
            "ok": answer.ok,
            "http_status": optional(answer, "http_status"),
            "duration_ms": answer.duration_ms,
            "attempt_id": answer.attempt_id,
        },
    }
