"""LinePaymentsService: the methods, and the parts of lines in ConfirmDeal."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Final

from fiatgate.invoices.v1 import lines_pb2 as pb
from kit.base.account_forms import account_key
from kit.base.money import fiat_text
from kit.base.proto import timestamp_from
from kit.rpc import values
from kit.rpc.methods import Methods, by_name
from services.invoices.operations import lines
from services.invoices.store.lines import DealOfLine, LinePayment, Part


def parts_from_messages(given: Iterable[pb.LinePart]) -> Sequence[Part]:
    parts = list(given)
    values.at_most("lines", parts, lines.PARTS_MOST)
    return [
        lines.part(line_id=part.line_id, amount=part.amount, line_amount=part.line_amount) for part in parts
    ]


def accounts_from_messages(given: Iterable[pb.ImportedAccount]) -> Sequence[tuple[str, date]]:
    return [(account_key(each.account), lines.day("accounts", each.first_day)) for each in given]


def _deals(found: Sequence[DealOfLine]) -> dict[str, Any]:
    return {
        "deals": [
            pb.DealOfLine(
                deal_id=str(deal.deal_id),
                invoice_id=str(deal.invoice_id),
                reference=deal.reference or "",
                account=deal.account,
                currency_code=deal.currency_code,
                amount_fiat=fiat_text(deal.amount_fiat),
                is_open=deal.is_open,
                is_paid=deal.is_paid,
                is_linked=deal.is_linked,
                created_at=timestamp_from(deal.created_at),
                expires_at=timestamp_from(deal.expires_at),
                sender_name=deal.sender_name or "",
            )
            for deal in found
        ]
    }


def _payments(found: Sequence[LinePayment]) -> dict[str, Any]:
    return {
        "payments": [
            pb.LinePayment(
                number=each.number,
                line_id=str(each.line_id),
                deal_id=str(each.deal_id),
                invoice_id=str(each.invoice_id),
                amount=fiat_text(each.amount),
                line_amount=fiat_text(each.line_amount),
                paid_at=timestamp_from(each.paid_at),
            )
            for each in found
        ]
    }


METHODS: Final[Methods] = {
    "FindDealsOfLines": by_name(lines.find_deals_of_lines, _deals),
    "ListUnlinkedDeals": by_name(lines.list_unlinked_deals, _deals),
    "LinkDeal": by_name(lines.link_deal),
    "ListLinePayments": by_name(lines.list_line_payments, _payments),
}
