"""The one fact that withdrawals consumes: an invoice is finished."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from google.protobuf.message import DecodeError

from fiatgate.invoices.v1 import invoices_pb2
from kit.base.ids import parse_id
from kit.base.money import USDT_PLACES, has_decimals, parse_decimal
from kit.base.proto import optional_datetime
from services.withdrawals.domain import MAX_AMOUNT

_UNPAID: Final = frozenset(
    {
        invoices_pb2.INVOICE_STATUS_FAIL,
        invoices_pb2.INVOICE_STATUS_EXPIRED,
        invoices_pb2.INVOICE_STATUS_CANCELED,
    }
)


@dataclass(frozen=True)
class InvoicePaid:
    """A successful invoice and its credit: USDT, zero or more. `paid_at`: the time of the confirmation."""

    invoice_id: UUID
    merchant_id: UUID
    merchant_usdt: Decimal
    paid_at: datetime | None


def invoice_paid_from_message(message: invoices_pb2.InvoiceFinished) -> InvoicePaid | None:
    """Returns the credit of the fact; None when the invoice did not end in success, which moves no money.

    Raises ValueError for content that invoices never sends. Such an event is parked, because money depends on it.
    """
    if message.status in _UNPAID:
        return None
    if message.status != invoices_pb2.INVOICE_STATUS_SUCCESS:
        raise ValueError(f"invoice {message.invoice_id!r} is finished with status {message.status}")
    return InvoicePaid(
        invoice_id=_uuid("invoice_id", message.invoice_id),
        merchant_id=_uuid("merchant_id", message.merchant_id),
        merchant_usdt=_usdt(message.merchant_usdt),
        paid_at=optional_datetime(message, "finished_at"),
    )


def is_unpaid(payload: bytes) -> bool:
    """Returns whether this is the fact of an invoice that ended without success: it moves no money."""
    try:
        return invoices_pb2.InvoiceFinished.FromString(payload).status in _UNPAID
    except DecodeError:
        return False


def _uuid(field: str, text: str) -> UUID:
    parsed = parse_id(text)
    if parsed is None:
        raise ValueError(f"{field} is no UUID: {text!r}")
    return parsed


def _usdt(text: str) -> Decimal:
    amount = parse_decimal(text)
    if not 0 <= amount <= MAX_AMOUNT or not has_decimals(amount, at_most=USDT_PLACES):
        raise ValueError(f"merchant_usdt is no amount of USDT: {text!r}")
    return amount
