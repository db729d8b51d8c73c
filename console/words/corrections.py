"""The words of corrections, what came beyond the amount that was asked, and the credit that backs a case."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from console.words.refunds import LIVE
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from fiatgate.withdrawals.v1 import refunds_pb2
from kit.base.money import money_text, typed_decimal
from kit.rpc.values import invalid

KINDS: Final[Mapping[str, str]] = {
    "reversal": "taken back",
    "late_credit": "late money credited",
    "surplus": "surplus credited",
    "manual_credit": "credited by hand",
    "manual_debit": "debited by hand",
}
"""The effect of a correction, by its kind."""
DEBITS: Final = frozenset({"reversal", "manual_debit"})
HEADINGS: Final[Mapping[str, str]] = {
    "reversal": "Take back a credit",
    "late_credit": "Credit late money",
    "surplus": "More came than was asked",
    "manual": "Correct a balance",
}
"""The heading of the form, by its kind."""
DIRECTIONS: Final[Mapping[str, str]] = {
    "manual_credit": "The merchant gets the amount",
    "manual_debit": "The amount is taken from the merchant",
}
CHANGED: Final = "It would move {} USDT by now, so nothing was done. Look at it again."

_CREDITED: Final = refunds_pb2.REFUND_ORIGIN_CREDITED
_UNPAID: Final = frozenset(
    {invoices_pb2.DEAL_STATUS_FAILED, invoices_pb2.DEAL_STATUS_EXPIRED, invoices_pb2.DEAL_STATUS_CANCELED}
)


def beyond(came: str, deal: invoices_pb2.Deal) -> str:
    """Returns what of all that came was not paid for the order. Raises VALIDATION_ERROR unless it is more."""
    try:
        amount = typed_decimal(came) - Decimal(deal.amount_fiat)
    except ValueError:
        raise invalid("received_amount", "an amount is a number, as 49.90") from None
    if amount <= 0:
        paid = money_text(deal.amount_fiat, deal.currency_code)
        raise invalid("received_amount", f"{paid} are paid already: more came in all")
    return f"{amount:f}"


def possible(
    deal: invoices_pb2.Deal, made: Iterable[pb.Correction], refunds: Iterable[refunds_pb2.Refund] = ()
) -> frozenset[str]:
    """Returns the kinds of corrections that an ended deal allows after those and the refunds of its invoice, and
    "refund".
    """
    is_paid = deal.status == invoices_pb2.DEAL_STATUS_COMPLETED
    if not is_paid and deal.status not in _UNPAID:
        return frozenset()
    credited = Decimal(deal.merchant_usdt) if is_paid else Decimal(0)
    live = [each for each in refunds if each.status in LIVE]
    back = {each.origin for each in live}
    held = sum(Decimal(each.amount) for each in live)
    left = Decimal(deal.amount_fiat) if is_paid else Decimal(0)
    left -= sum(Decimal(each.refund_amount) for each in live if each.origin == _CREDITED)
    taken, has_surplus = Decimal(0), refunds_pb2.REFUND_ORIGIN_SURPLUS in back
    for each in made:
        left += Decimal(each.received_amount or 0)
        has_surplus = has_surplus or each.kind == pb.CORRECTION_KIND_SURPLUS
        if each.kind == pb.CORRECTION_KIND_REVERSAL:
            taken += Decimal(each.amount)
        else:
            credited += Decimal(each.amount)
    allowed = {
        "surplus": is_paid and not has_surplus,
        "late_credit": not is_paid and credited <= taken and refunds_pb2.REFUND_ORIGIN_LATE not in back,
        "reversal": credited > taken + held,
        "refund": credited > 0 and not taken and left > 0,
    }
    return frozenset(name for name, is_allowed in allowed.items() if is_allowed)


def late_credit(case: invoices_pb2.Case, made: Iterable[pb.Correction]) -> pb.Correction | None:
    """Returns the newest late credit among the corrections of the case's invoice, newest first; None if all of it was
    taken back before the case was closed.
    """
    closed = case.resolved_at.ToDatetime() if case.HasField("resolved_at") else None
    credits, left = [], Decimal(0)
    for each in made:
        if each.kind == pb.CORRECTION_KIND_LATE_CREDIT:
            credits.append(each)
            left += Decimal(each.amount)
        elif each.kind == pb.CORRECTION_KIND_REVERSAL and (
            closed is None or each.created_at.ToDatetime() < closed
        ):
            left -= Decimal(each.amount)
    return credits[0] if left > 0 else None
