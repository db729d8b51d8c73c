"""The balance, the statement, and corrections (docs/api.md#balance)."""

from collections.abc import Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final

import falcon
import falcon.asgi

from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2
from gateway.api.invoices import invoice_of
from gateway.api.paging import cursor_from
from gateway.exchange import Request
from gateway.json.query import Query, no_query
from gateway.json.replies import time_text
from gateway.wiring import Deps
from kit.base.clock import SystemClock
from kit.base.proto import timestamp_from
from kit.rpc.values import LIST_MOST_ROWS
from kit.web.replies import reply

LONGEST_MONTH: Final = timedelta(days=31)
KIND_NAMES: Final = {
    pb.CORRECTION_KIND_REVERSAL: "reversal",
    pb.CORRECTION_KIND_LATE_CREDIT: "late_credit",
    pb.CORRECTION_KIND_SURPLUS: "surplus",
    pb.CORRECTION_KIND_MANUAL_CREDIT: "manual_credit",
    pb.CORRECTION_KIND_MANUAL_DEBIT: "manual_debit",
}
TRANSFER_KIND_NAMES: Final = {
    number: name.removeprefix("TRANSFER_KIND_").lower()
    for name, number in withdrawals_pb2.TransferKind.items()
    if number
}
_CLOCK: Final = SystemClock()


class BalanceResource:
    """GET /api/v1/balance."""

    def __init__(self, deps: Deps) -> None:
        self._withdrawals = deps.withdrawals

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        no_query(req.query_string)
        request = withdrawals_pb2.GetBalanceRequest(merchant_id=req.exchange.caller.merchant_id)
        balance = await self._withdrawals.GetBalance(request)
        reply(resp, {"successful": True, "data": balance_to_json(balance)})


class StatementResource:
    """GET /api/v1/statement: the transfers of a month, oldest first."""

    def __init__(self, deps: Deps) -> None:
        self._withdrawals = deps.withdrawals

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        query = Query(req.query_string)
        begins = query.month("month", default=_CLOCK.now())
        cursor = cursor_from(query)
        query.check()
        ends = (begins + LONGEST_MONTH).replace(day=1)

        async def transfers(limit: int) -> Sequence[withdrawals_pb2.Transfer]:
            request = withdrawals_pb2.ListTransfersRequest(
                merchant_id=req.exchange.caller.merchant_id,
                created_from=timestamp_from(begins),
                created_before=timestamp_from(ends),
                after_transfer_id=cursor.after,
                limit=limit,
                with_balances=True,
            )
            return (await self._withdrawals.ListTransfers(request)).transfers

        page = await cursor.page(transfers, attrgetter("transfer_id"), transfer_to_json)
        reply(resp, {**page, "month": f"{begins:%Y-%m}"})


class CorrectionResource:
    """GET /api/v1/invoices/{invoice_ref}/corrections and GET /api/v1/corrections."""

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

    async def on_get_list(self, req: Request, resp: falcon.asgi.Response) -> None:
        query = Query(req.query_string)
        cursor = cursor_from(query)
        query.check()

        async def corrections(limit: int) -> Sequence[pb.Correction]:
            request = pb.ListCorrectionsRequest(
                merchant_id=req.exchange.caller.merchant_id, after_correction_id=cursor.after, limit=limit
            )
            return (await self._corrections.ListCorrections(request)).corrections

        reply(resp, await cursor.page(corrections, attrgetter("correction_id"), correction_to_json))


def balance_to_json(
    balance: withdrawals_pb2.GetBalanceResponse | withdrawals_pb2.MerchantBalance,
) -> dict[str, Any]:
    """Returns `Balance` of openapi.yaml."""
    return {"available": balance.available, "reserved": balance.reserved, "owed": balance.owed}


def transfer_to_json(transfer: withdrawals_pb2.Transfer) -> dict[str, Any]:
    """Returns `StatementLine` of openapi.yaml."""
    return {
        "transfer_id": transfer.transfer_id,
        "kind": TRANSFER_KIND_NAMES[transfer.kind],
        "amount": transfer.amount,
        "invoice_id": transfer.invoice_id or None,
        "withdraw_uuid": transfer.withdraw_uuid or None,
        "correction_id": transfer.correction_id or None,
        "refund_id": transfer.refund_id or None,
        "change": balance_to_json(transfer.change),
        "after": balance_to_json(transfer.after),
        "created_at": time_text(transfer.created_at),
    }


def correction_to_json(correction: pb.Correction) -> dict[str, Any]:
    """Returns `Correction` of openapi.yaml."""
    return {
        "correction_id": correction.correction_id,
        "invoice_id": correction.invoice_id or None,
        "kind": KIND_NAMES[correction.kind],
        "amount_usdt": correction.amount,
        "owed_usdt": correction.owed,
        "received_amount": correction.received_amount or None,
        "currency": correction.currency_code or None,
        "conversion_rate": correction.conversion_rate or None,
        "reason": correction.reason,
        "created_at": time_text(correction.created_at),
    }
