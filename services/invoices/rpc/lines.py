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
from services.invoices.operations import line_rules, lines
from services.invoices.store.line_rules import RuleView
from services.invoices.store.lines import DealOfLine, LinePayment, Part
from services.invoices.wiring import Deps


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
                is_automatic=deal.is_automatic,
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


def _rule(rule: RuleView) -> pb.LineRule:
    return pb.LineRule(
        method_code=rule.method_code,
        currency_code=rule.currency_code,
        enabled=rule.enabled,
        deal_most=fiat_text(rule.deal_most),
        day_most=fiat_text(rule.day_most),
        changed_at=timestamp_from(rule.changed_at),
        actor=rule.actor,
        day_sum=fiat_text(rule.day_sum),
    )


def confirm_by_line(deps: Deps, request: pb.ConfirmByLineRequest) -> pb.ConfirmByLineResponse:
    (part,) = parts_from_messages([request.line])
    return pb.ConfirmByLineResponse(held=line_rules.confirm_by_line(deps, deal_id=request.deal_id, part=part))


METHODS: Final[Methods] = {
    "ConfirmByLine": confirm_by_line,
    "ListLineRules": by_name(line_rules.list_line_rules, lambda found: {"rules": map(_rule, found)}),
    "SetLineRule": by_name(line_rules.set_line_rule, lambda rule: {"rule": _rule(rule)}),
    "FindDealsOfLines": by_name(lines.find_deals_of_lines, _deals),
    "ListUnlinkedDeals": by_name(lines.list_unlinked_deals, _deals),
    "LinkDeal": by_name(lines.link_deal),
    "ListLinePayments": by_name(lines.list_line_payments, _payments),
}
