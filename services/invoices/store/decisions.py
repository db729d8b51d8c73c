"""The values of this service that acts decide (kit.audit.decisions), and the seals of invoices and deals."""

from collections.abc import Sequence
from typing import Final

from kit.audit.decisions import Decided
from kit.base.seals import Seals, canonical
from services.invoices.domain.creating import NewInvoice
from services.invoices.domain.places import NewDeal
from services.invoices.models import Case, Deal, Invoice

REQUISITE: Final = Decided(
    "requisite",
    ("requisite.add", "requisite.enable", "requisite.disable"),
    ("method_code", "holder", "account", "bank", "max_deals", "enabled"),
)
DEAL: Final = Decided(
    "deal",
    ("deal.confirm", "deal.reject", "deal.appeal", "deal.resolve", "deal.adjust"),
    ("status", "sub_status", "adjusted_amount", "merchant_usdt"),
)
# On before the first act.
SWITCH: Final = Decided("switch", ("deals-system.set",), ("enabled",), first={"deals": {"enabled": "yes"}})
LINK: Final = Decided(
    "link",
    ("link.create", "link.cancel"),
    ("merchant_id", "code", "amount", "currency_code", "purpose", "note", "expires_at", "canceled_at"),
)
# Open before its act: customers open cases without one.
CASE: Final = Decided("case", ("case.resolve",), ("outcome", "ended_as"))
CASE_ANSWER: Final = Decided("case", ("case.answer",), ("merchant_answer", "merchant_text"))
LINE_PAYMENT: Final = Decided(
    "line-payment",
    ("line-payment.record",),
    ("line_id", "deal_id", "amount", "line_amount", "rule", "paid_at"),
)
LINE_RULE: Final = Decided(
    "line-rule", ("line-rule.set",), ("currency_code", "enabled", "deal_most", "day_most")
)

_TERMS: Final[Sequence[str]] = (
    *("id", "invoice_id", "merchant_id", "method_code", "method_name", "currency_code", "currency_decimals"),
    *("invoice_amount", "conversion_rate", "client_percent", "merchant_percent"),
    "takes_reference",
)
_SEALED: Final = "terms of a deal"
# Seals of before must stay right: neither of the two sequences gets a further name. A later field that is to be sealed
# is appended to the values where it is not null.
_OF_INVOICE: Final[Sequence[str]] = (
    *("id", "merchant_id", "key_id", "external_id", "amount", "currency_code", "customer_id", "purpose"),
    *("callback_url", "success_url", "fail_url", "created_at", "expires_at"),
)
_INVOICE_SEALED: Final = "an invoice"
_CASE_SEALED: Final = "a case"
_OF_CASE: Final[Sequence[str]] = (
    *("invoice_id", "merchant_id", "deal_id", "opened_at", "note", "policy", "answer_by"),
)


def seal_of_invoice(seals: Seals, new: NewInvoice) -> bytes:
    """Returns the seal of what create-invoice was asked for."""
    return seals.seal(_INVOICE_SEALED, _of_invoice(new))


def is_as_created(seals: Seals, invoice: Invoice) -> bool:
    """Returns whether a process of the service created the invoice with these values."""
    return seals.is_right(_INVOICE_SEALED, _of_invoice(invoice), invoice.seal)


def seal_of_case(seals: Seals, case: Case) -> bytes:
    """Returns the seal of what stands when a case is opened: what the customer wrote and the merchant's policy."""
    return seals.seal(_CASE_SEALED, _of_case(case))


def is_as_opened(seals: Seals, case: Case) -> bool:
    """Returns whether a process of the service opened the case with these values."""
    return seals.is_right(_CASE_SEALED, _of_case(case), bytes(case.seal))


def seal_of_terms(seals: Seals, deal: NewDeal) -> bytes:
    """Returns the seal of what a deal locks when it is opened: its credit and its bank lines follow from it."""
    return seals.seal(_SEALED, _of_terms(deal))


def has_its_terms(seals: Seals, deal: Deal) -> bool:
    """Returns whether a process of the service opened the deal with these terms."""
    return seals.is_right(_SEALED, _of_terms(deal), bytes(deal.seal))


def _of_terms(deal: NewDeal | Deal) -> bytes:
    return _values(deal, _TERMS if deal.reference is None else (*_TERMS, "reference"))


def _of_case(case: Case) -> bytes:
    return _values(case, _OF_CASE if case.line_id is None else (*_OF_CASE, "line_id"))


def _of_invoice(of: NewInvoice | Invoice) -> bytes:
    later = [name for name in ("link_id", "merchant_data") if getattr(of, name) is not None]
    return _values(of, (*_OF_INVOICE, *later))


def _values(of: object, names: Sequence[str]) -> bytes:
    return canonical([getattr(of, name) for name in names])
