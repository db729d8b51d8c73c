"""The list of withdrawals: of all merchants at the desk, of the session's merchant at the dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.ui.filters import (
    DAYS,
    ORDER,
    SINCE,
    UNTIL,
    Amount,
    Choice,
    Filter,
    Merchant,
    Text,
    set_order,
)
from console.ui.values import iso, word
from console.withdrawals import words
from console.words.states import words_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb

STATUSES: Final = {
    "": pb.WITHDRAWAL_STATUS_UNSPECIFIED,
    "pending": pb.WITHDRAWAL_STATUS_PENDING,
    "success": pb.WITHDRAWAL_STATUS_SUCCESS,
    "failed": pb.WITHDRAWAL_STATUS_FAILED,
    "cancelled": pb.WITHDRAWAL_STATUS_CANCELLED,
}
FILTERS: Final[Sequence[Filter]] = (
    Merchant(),
    Choice(
        "status", "Status", {each: words_of(each, "withdrawal").capitalize() or "Any" for each in STATUSES}
    ),
    Choice("method", "Method", of="withdrawal_method_id"),
    Text("address", "Address"),
    Text("transaction", "Transaction", hint="hash, in any spelling", of="external_tx_id"),
    Amount("least", "Amount from", of="amount_from"),
    Amount("most", "Amount to", of="amount_to"),
    *DAYS,
    ORDER,
)


class WithdrawalsPage(ListPage):
    """/withdrawals and /withdrawals.csv: newest first."""

    link = "/withdrawals"
    template = "withdrawals"
    csv_name = "withdrawals"
    columns = (
        *("withdraw_uuid", "created_at", "merchant_id", "merchant", "status", "substatus", "amount"),
        *("network_fee", "amount_to_receive", "withdrawal_method_id", "address", "address_memo"),
        *("external_tx_id", "processed_at", "by"),
    )
    filters = FILTERS

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListAllWithdrawalsRequest(
            status=STATUSES[asked["status"]],
            merchant_id=asked["merchant"],
            withdrawal_method_id=_number(asked["method"]),
            address=asked["address"],
            external_tx_id=asked["transaction"],
            amount_from=asked["least"],
            amount_to=asked["most"],
            after_withdraw_uuid=asked.after,
            limit=asked.limit,
        )
        if begin := SINCE.begin(asked["since"]):
            request.created_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.created_before.FromDatetime(end)
        sort = set_order(request, asked[ORDER.name], usual=self.usual(asked))
        self.narrow(request, asked)
        listed = await self.deps.withdrawals.ListAllWithdrawals(request)
        found = listed.withdrawals
        names = await self.names(*(each.merchant_id for each in found))
        return asked.found(
            found,
            after=lambda row: row.withdraw_uuid,
            names=names,
            state_of=words.state_of,
            asked={},
            by_operator=listed.by_operator,
            sort=sort,
        )

    def usual(self, asked: Asked) -> str:
        """Returns the order that the list usually has."""
        return "newest"

    def narrow(self, request: pb.ListAllWithdrawalsRequest, asked: Asked) -> None:
        """Sets what further filters of a surface ask for."""

    def cells(self, row: pb.Withdrawal, found: Found) -> Sequence[str]:
        return (
            row.withdraw_uuid,
            iso(row.created_at),
            row.merchant_id,
            found.values["names"].get(row.merchant_id, ""),
            word(row, "status"),
            row.substatus,
            row.amount,
            row.network_fee,
            row.amount_to_receive,
            str(row.withdrawal_method_id),
            row.address,
            row.address_memo,
            row.external_tx_id,
            iso(row.processed_at),
            "operator" if row.withdraw_uuid in found.values["by_operator"] else "merchant",
        )

    async def choices(self, req: Request) -> Mapping[str, Mapping[str, str]]:
        listed = await self.deps.withdrawals.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
        return {"method": {str(each.method_id): each.code for each in listed.methods}}


def _number(text: str) -> int:
    """Returns the id of a method; that of none for another text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -bool(text)
