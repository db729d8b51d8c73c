"""The rules of create-invoice (docs/api.md#create-invoice)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

from services.invoices.domain.places import Wanted
from services.invoices.domain.states import InvoiceStatus

NO_KEY: Final = UUID(int=0)
"""The key of an invoice that a person created by hand."""


@dataclass(frozen=True, slots=True)
class NewInvoice:
    """A request to create an invoice, its URLs resolved; and, once stored, the invoice itself."""

    id: UUID
    merchant_id: UUID
    key_id: UUID
    external_id: str
    amount: Decimal
    currency_code: str
    customer_id: str
    purpose: str | None
    callback_url: str | None
    success_url: str | None
    fail_url: str | None
    created_at: datetime
    expires_at: datetime
    link_id: UUID | None = None
    merchant_data: str | None = None
    status: InvoiceStatus = InvoiceStatus.PENDING
    finished_at: None = None
    deal: None = None

    @property
    def is_by_hand(self) -> bool:
        return self.key_id == NO_KEY and self.link_id is None


class Terms(Protocol):
    """The smallest and the largest amount that a currency accepts, and whether a deal could lock a rate of it."""

    @property
    def minimum(self) -> Decimal: ...
    @property
    def maximum(self) -> Decimal: ...
    @property
    def has_rate(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class CreationFacts:
    """The database's state at the moment of the insert, and whether the insert took place."""

    created: bool
    system_enabled: bool
    duplicate_id: UUID | None
    duplicate_status: str | None
    duplicate_amount: Decimal | None
    duplicate_currency: str | None
    waiting_id: UUID | None
    waiting_overdue: bool
    unpaid: int
    oldest_unpaid_at: datetime | None
    requisite_free: bool


@dataclass(frozen=True, slots=True)
class CustomerLimit:
    """At most `limit` unpaid invoices of one customer in the last `window`."""

    limit: int
    window: timedelta

    def window_start(self, now: datetime) -> datetime:
        """Invoices of this moment and earlier do not count."""
        return now - self.window

    def next_allowed_at(self, oldest_counted_at: datetime) -> datetime:
        """Returns the time at which the oldest of the newest `limit` unpaid invoices leaves the window."""
        return oldest_counted_at + self.window


class CreationRefusal(StrEnum):
    """The reasons against a new invoice, in the order in which they are reported (docs/api.md#create-invoice)."""

    DEALS_SYSTEM_DISABLED = "DEALS_SYSTEM_DISABLED"
    CURRENCY_INVALID = "CURRENCY_INVALID"
    MISSING_REQUIRED_URLS = "MISSING_REQUIRED_URLS"
    DUPLICATE_EXTERNAL_ID = "DUPLICATE_EXTERNAL_ID"
    AMOUNT_BELOW_MIN = "AMOUNT_BELOW_MIN"
    AMOUNT_ABOVE_MAX = "AMOUNT_ABOVE_MAX"
    PAYMENT_METHOD_NOT_FOUND = "PAYMENT_METHOD_NOT_FOUND"
    PENDING_INVOICE_EXISTS = "PENDING_INVOICE_EXISTS"
    CUSTOMER_RATE_LIMIT = "CUSTOMER_RATE_LIMIT"
    NO_AVAILABLE_REQUISITES = "NO_AVAILABLE_REQUISITES"


def refusals_of_request(
    amount: Decimal, terms: Terms | None, *, missing_urls: Sequence[str], wanted: Sequence[Wanted]
) -> set[CreationRefusal]:
    """Returns the reasons that do not depend on the database.

    terms   the currency's, None when the merchant may not use it
    wanted  a place of each method that accepts the amount
    """
    rules = {
        CreationRefusal.DEALS_SYSTEM_DISABLED: terms is not None and not terms.has_rate,
        CreationRefusal.CURRENCY_INVALID: terms is None,
        CreationRefusal.MISSING_REQUIRED_URLS: bool(missing_urls),
        CreationRefusal.AMOUNT_BELOW_MIN: terms is not None and (amount < terms.minimum or amount <= 0),
        CreationRefusal.AMOUNT_ABOVE_MAX: terms is not None and amount > terms.maximum,
        CreationRefusal.PAYMENT_METHOD_NOT_FOUND: not wanted,
    }
    return {refusal for refusal, applies in rules.items() if applies}


def refusals_of_facts(facts: CreationFacts, limit: CustomerLimit) -> set[CreationRefusal]:
    """Returns the reasons that the database has. `create_if_allowed` of the store has the same rules in SQL."""
    rules = {
        CreationRefusal.DEALS_SYSTEM_DISABLED: not facts.system_enabled,
        CreationRefusal.DUPLICATE_EXTERNAL_ID: facts.duplicate_id is not None,
        CreationRefusal.PENDING_INVOICE_EXISTS: facts.waiting_id is not None,
        CreationRefusal.CUSTOMER_RATE_LIMIT: facts.unpaid >= limit.limit,
        CreationRefusal.NO_AVAILABLE_REQUISITES: not facts.requisite_free,
    }
    return {refusal for refusal, applies in rules.items() if applies}


def first_refusal(refusals: Collection[CreationRefusal]) -> CreationRefusal | None:
    """Returns the one to report; None when there is none."""
    return next((each for each in CreationRefusal if each in refusals), None)
