"""Request and list the refunds of an invoice (docs/api.md#refund-a-payment)."""

from collections.abc import Mapping
from typing import Any, Final

import falcon
import falcon.asgi

from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from gateway.api.invoices import invoice_of
from gateway.exchange import Request
from gateway.json.body import CreateRefund, create_refund_from
from gateway.json.problems import BodyFault, InvalidBody
from gateway.json.query import no_query
from gateway.json.replies import optional_time_text, time_text
from gateway.wiring import Deps
from kit.rpc.errors import Refused, faults_of
from kit.rpc.values import LIST_MOST_ROWS
from kit.web.replies import reply

STATUS_NAMES: Final = {
    number: name.removeprefix("REFUND_STATUS_").lower() for name, number in pb.RefundStatus.items() if number
}
ORIGIN_NAMES: Final = {
    number: name.removeprefix("REFUND_ORIGIN_").lower() for name, number in pb.RefundOrigin.items() if number
}
_OF_API: Final[Mapping[str, str]] = {
    "refund_amount": "amount",
    "holder": "account_holder",
    "bank": "account_bank",
}
"""The names of fields in the body, where those of the service are others."""


class RefundResource:
    """POST and GET /api/v1/invoices/{invoice_ref}/refunds."""

    def __init__(self, deps: Deps) -> None:
        self._invoices = deps.invoices
        self._refunds = deps.refunds
        self._marked = deps.marked

    async def on_post(self, req: Request, resp: falcon.asgi.Response, invoice_ref: str) -> None:
        no_query(req.query_string)
        await req.exchange.receive_body()
        invoice = await invoice_of(self._invoices, req, invoice_ref)
        wanted = create_refund_from(req)
        request = request_from(wanted, merchant_id=invoice.merchant_id, invoice_id=invoice.invoice_id)
        try:
            answer = await self._refunds.RequestRefund(request)
        except Refused as refused:
            faults = faults_of(refused) if refused.reason == "VALIDATION_ERROR" else {}
            if not faults:
                raise
            raise InvalidBody(
                *(
                    BodyFault(("body", _OF_API.get(field, field)), "value_error", message)
                    for field, message in faults.items()
                )
            ) from None
        reply(resp, {"successful": True, "data": self._marked(refund_to_json(answer.refund))}, status=201)

    async def on_get(self, req: Request, resp: falcon.asgi.Response, invoice_ref: str) -> None:
        no_query(req.query_string)
        invoice = await invoice_of(self._invoices, req, invoice_ref)
        answer = await self._refunds.ListRefunds(
            pb.ListRefundsRequest(
                merchant_id=invoice.merchant_id, invoice_id=invoice.invoice_id, limit=LIST_MOST_ROWS
            )
        )
        data = [self._marked(refund_to_json(refund)) for refund in answer.refunds]
        reply(resp, {"successful": True, "data": data})


def request_from(wanted: CreateRefund, *, merchant_id: str, invoice_id: str) -> pb.RequestRefundRequest:
    account = pb.RefundAccount(
        kind=wanted.account_kind or "",
        account=wanted.account or "",
        holder=wanted.account_holder or "",
        bank=wanted.account_bank or "",
    )
    return pb.RequestRefundRequest(
        merchant_id=merchant_id,
        invoice_id=invoice_id,
        external_id=wanted.external_id,
        origin=pb.REFUND_ORIGIN_CREDITED,
        refund_amount=wanted.amount or "",
        account=None if wanted.account is None else account,
        reason=wanted.reason or "",
    )


def refund_to_json(refund: pb.Refund) -> dict[str, Any]:
    """Returns `Refund` of openapi.yaml."""
    return {
        "refund_id": refund.refund_id,
        "external_id": refund.external_id,
        "invoice_id": refund.invoice_id,
        "origin": ORIGIN_NAMES[refund.origin],
        "status": STATUS_NAMES[refund.status],
        "amount": refund.refund_amount,
        "currency": refund.currency_code,
        "amount_usdt": refund.amount,
        "conversion_rate": refund.conversion_rate,
        "account": refund.account.account if refund.HasField("account") else None,
        "reason": refund.reason or None,
        "bank_reference": refund.bank_reference or None,
        "failure": refund.failure or None,
        "created_at": time_text(refund.created_at),
        "updated_at": time_text(refund.updated_at),
        "finished_at": optional_time_text(refund, "finished_at"),
    }
