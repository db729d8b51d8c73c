"""List and get withdrawals, and the address book (docs/api.md#list-withdrawals)."""

from typing import Any, Final
from urllib.parse import unquote

import falcon
import falcon.asgi

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from gateway.api.paging import in_the_list, page_from, page_to_json
from gateway.exchange import Request
from gateway.json.query import Query, no_query
from gateway.json.replies import optional_time_text, time_text
from gateway.wiring import Deps
from kit.base.ids import parse_id
from kit.base.proto import optional, timestamp_from
from kit.rpc.errors import not_found
from kit.web.replies import reply

STATUS_NAMES: Final = {
    pb.WITHDRAWAL_STATUS_PENDING: "pending",
    pb.WITHDRAWAL_STATUS_SUCCESS: "success",
    pb.WITHDRAWAL_STATUS_FAILED: "failed",
    pb.WITHDRAWAL_STATUS_CANCELLED: "cancelled",
}
STATUSES: Final = {name: status for status, name in STATUS_NAMES.items()}
ORDERS: Final = {"desc": pb.SORT_ORDER_DESC, "asc": pb.SORT_ORDER_ASC}


class WithdrawalResource:
    """GET /api/v1/withdrawals/{withdraw_uuid} and GET /api/v1/withdrawals."""

    def __init__(self, deps: Deps) -> None:
        self._withdrawals = deps.withdrawals
        self._marked = deps.marked

    async def on_get(self, req: Request, resp: falcon.asgi.Response, withdraw_uuid: str) -> None:
        no_query(req.query_string)
        known_form = parse_id(unquote(withdraw_uuid))
        if known_form is None:
            raise not_found("WITHDRAWAL_NOT_FOUND", "Withdrawal not found")
        answer = await self._withdrawals.GetWithdrawal(
            pb.GetWithdrawalRequest(
                merchant_id=req.exchange.caller.merchant_id, withdraw_uuid=str(known_form)
            )
        )
        reply(resp, {"successful": True, "data": self._marked(withdrawal_to_json(answer.withdrawal))})

    async def on_get_list(self, req: Request, resp: falcon.asgi.Response) -> None:
        query = Query(req.query_string)
        page = page_from(query)
        status = query.choice("status", STATUSES, pb.WITHDRAWAL_STATUS_UNSPECIFIED)
        order = query.choice("order", ORDERS, pb.SORT_ORDER_DESC)
        created_from, created_to = query.time("created_from"), query.time("created_to")
        query.check()
        request = pb.ListWithdrawalsRequest(
            merchant_id=req.exchange.caller.merchant_id,
            page=page.asked,
            per_page=page.per_page,
            status=status,
            created_from=timestamp_from(created_from),
            created_before=timestamp_from(created_to),
            after_withdraw_uuid=page.after,
            order=order,
        )
        with in_the_list(page.after):
            answer = await self._withdrawals.ListWithdrawals(request)
        data = [self._marked(withdrawal_to_json(withdrawal)) for withdrawal in answer.withdrawals]
        reply(resp, page_to_json(page, answer.total, data, id_name="withdraw_uuid"))


class AddressResource:
    """GET /api/v1/addresses."""

    def __init__(self, deps: Deps) -> None:
        self._withdrawals = deps.withdrawals

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        no_query(req.query_string)
        request = pb.ListAddressesRequest(merchant_id=req.exchange.caller.merchant_id)
        answer = await self._withdrawals.ListAddresses(request)
        reply(resp, {"successful": True, "data": [address_to_json(address) for address in answer.addresses]})


def address_to_json(address: pb.WithdrawalAddress) -> dict[str, Any]:
    """Returns `Address` of openapi.yaml."""
    return {
        "address_id": address.address_id,
        "name": address.name,
        "withdrawal_method_id": address.withdrawal_method_id,
        "network": address.network,
        "address": address.address,
        "address_memo": optional(address, "address_memo"),
        "status": "waiting" if address.waits else "usable",
        "usable_at": time_text(address.usable_at),
        "created_at": time_text(address.created_at),
    }


def withdrawal_to_json(withdrawal: pb.Withdrawal) -> dict[str, Any]:
    """Returns `Withdrawal` of openapi.yaml. A nullable field without a value is null, never absent."""
    return {
        "withdraw_uuid": withdrawal.withdraw_uuid,
        "withdrawal_method_id": withdrawal.withdrawal_method_id,
        "address": withdrawal.address,
        "address_memo": optional(withdrawal, "address_memo"),
        "amount": withdrawal.amount,
        "network_fee": withdrawal.network_fee,
        "amount_to_receive": withdrawal.amount_to_receive,
        "status": STATUS_NAMES[withdrawal.status],
        "substatus": optional(withdrawal, "substatus"),
        "external_tx_id": optional(withdrawal, "external_tx_id"),
        "created_at": time_text(withdrawal.created_at),
        "updated_at": time_text(withdrawal.updated_at),
        "processed_at": optional_time_text(withdrawal, "processed_at"),
    }
