"""The balance, and the corrections of an invoice (docs/api.md#balance)."""

from typing import Any, Final

import falcon
import falcon.asgi

from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2
from gateway.api.invoices import invoice_of
from gateway.exchange import Request
from gateway.json.query import no_query
from gateway.json.replies import time_text
from gateway.wiring import Deps
from kit.rpc.values import LIST_MOST_ROWS
from kit.web.replies import reply

KIND_NAMES: Final = {
    pb.CORRECTION_KIND_REVERSAL: "reversal",
    pb.CORRECTION_KIND_LATE_CREDIT: "late_credit",
    pb.CORRECTION_KIND_SURPLUS: "surplus",
}


class BalanceResource:
    """GET /api/v1/balance."""

    def __init__(self, deps: Deps) -> None:
        self._withdrawals = deps.withdrawals

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        no_query(req.query_string)
        request = withdrawals_pb2.GetBalanceRequest(merchant_id=req.exchange.caller.merchant_id)
        balance = await self._withdrawals.GetBalance(request)
        reply(resp, {"successful": True, "data": balance_to_json(balance)})


class CorrectionResource:
    """GET /api/v1/invoices/{invoice_ref}/corrections."""

    def __init__(self, deps: Deps) -> None:
        self._invoices = deps.invoices
        self._corrections = deps.corrections

    async def on_get(self, req: Request, resp: falcon.asgi.Response, invoice_ref: str) -> None:
        no_query(req.query_string)
        invoice = await invoice_of(self._invoices, req, invoice_ref)
        answer = await self._corrections.ListCorrections(
            pb.ListCorrectionsRequest(
                merchant_id=invoice.merchant_id, invoice_id=invoice.invoice_id, limit=LIST_MOST_ROWS
            )
        )
        data = [correction_to_json(correction) for correction in answer.corrections]
        reply(resp, {"successful": True, "data": data})


def balance_to_json(balance: withdrawals_pb2.GetBalanceResponse) -> dict[str, Any]:
    """Returns `Balance` of openapi.yaml."""
    return {"available": balance.available, "reserved": balance.reserved, "owed": balance.owed}


def correction_to_json(correction: pb.Correction) -> dict[str, Any]:
    """Returns `Correction` of openapi.yaml."""
    return {
        "correction_id": correction.correction_id,
        "kind": KIND_NAMES[correction.kind],
        "amount_usdt": correction.amount,
        "owed_usdt": correction.owed,
        "received_amount": correction.received_amount or None,
        "currency": correction.currency_code or None,
        "conversion_rate": correction.conversion_rate or None,
        "reason": correction.reason,
        "created_at": time_text(correction.created_at),
    }
