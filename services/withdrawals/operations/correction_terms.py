"""A correction that is not made yet, and the terms by which a second person decides about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from kit.audit.approvals import Terms
from kit.base.money import usdt_text
from services.withdrawals.domain import CorrectionKind
from services.withdrawals.operations.fields import quoted

MAKE: Final = "correction.make"
_NUMBERS: Final = ("received_amount", "conversion_rate", "locked_rate")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A correction that is not made yet. All but the last two stands in its row. `case_decided` is as in DealMoney."""

    kind: CorrectionKind
    merchant_id: UUID
    invoice_id: UUID | None
    case_number: int | None
    amount: Decimal
    received_amount: Decimal | None
    currency_code: str | None
    conversion_rate: Decimal | None
    locked_rate: Decimal | None
    case_decided: str | None


def request_of(wanted: Wanted) -> dict[str, Any]:
    """Returns the values of a request for a second person, without its texts."""
    return {
        "kind": str(wanted.kind),
        "merchant_id": str(wanted.merchant_id),
        "invoice_id": str(wanted.invoice_id or ""),
        "case_number": wanted.case_number or 0,
        "amount": usdt_text(wanted.amount),
        "currency_code": wanted.currency_code or "",
        **{each: _text(getattr(wanted, each)) for each in _NUMBERS},
    }


def _text(amount: Decimal | None) -> str:
    return "" if amount is None else f"{amount:.2f}"


def wanted_of(request: Mapping[str, Any]) -> Wanted:
    """Returns the correction that the request asks for."""
    return Wanted(
        kind=CorrectionKind(request["kind"]),
        merchant_id=UUID(str(request["merchant_id"])),
        invoice_id=UUID(str(request["invoice_id"])) if request["invoice_id"] else None,
        case_number=int(request["case_number"] or 0) or None,
        amount=Decimal(request["amount"]),
        currency_code=request["currency_code"] or None,
        case_decided=None,
        **{each: Decimal(request[each]) if request[each] else None for each in _NUMBERS},
    )


def make_terms(request: Mapping[str, Any]) -> Terms:
    wanted = wanted_of(request)
    amount, merchant = usdt_text(wanted.amount), f"merchant {wanted.merchant_id}"
    came = f"{request['received_amount']} {wanted.currency_code}"
    rate = f"at {request['conversion_rate']} {wanted.currency_code} per USDT"
    if wanted.conversion_rate != wanted.locked_rate:
        rate = f"{rate}, not at {request['locked_rate']} that the deal has locked"
    does = {
        CorrectionKind.REVERSAL: f"Take back {amount} USDT from {merchant}, credited for invoice {wanted.invoice_id}",
        CorrectionKind.LATE_CREDIT: f"Credit {amount} USDT to {merchant} for {came} that came late for invoice "
        f"{wanted.invoice_id}, {rate}",
        CorrectionKind.SURPLUS: f"Credit {amount} USDT to {merchant} for {came} that came beyond the amount of invoice "
        f"{wanted.invoice_id}, {rate}",
        CorrectionKind.MANUAL_CREDIT: f"Credit {amount} USDT to {merchant}",
        CorrectionKind.MANUAL_DEBIT: f"Take {amount} USDT from {merchant}",
    }[wanted.kind]
    evidence = f". Evidence: {quoted(request['evidence'])}" if request["evidence"] else ""
    return Terms(
        act=MAKE,
        object=f"invoice:{wanted.invoice_id}" if wanted.invoice_id else f"merchant:{wanted.merchant_id}",
        request=request,
        summary=f"{does}. Reason: {quoted(request['reason'])}{evidence}",
        merchant_id=wanted.merchant_id,
    )
