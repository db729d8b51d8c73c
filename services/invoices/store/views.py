"""Rows as operations and messages see them: values, which change nothing in the database."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from services.invoices.domain.late import PictureKind, Policy, due
from services.invoices.domain.states import DealState, DealStatus, InvoiceStatus, LinkStatus


@dataclass(frozen=True, slots=True)
class DealView:
    """A deal. Amounts are fiat, `merchant_usdt` is USDT, rates are fiat per USDT, percents are 0..100.

    reference        empty: it has none
    takes_reference  whether the customer was asked to write it into the transfer
    amount_to_send   what the customer was told to send: an adjustment changes `amount_fiat`, and not this
    """

    id: UUID
    invoice_id: UUID
    merchant_id: UUID
    status: DealStatus
    sub_status: str
    method_code: str
    method_name: str
    currency_code: str
    invoice_amount: Decimal
    amount_fiat: Decimal
    conversion_rate: Decimal
    client_percent: Decimal
    merchant_percent: Decimal
    merchant_usdt: Decimal | None
    adjusted_amount: Decimal | None
    requisite_id: UUID
    created_at: datetime
    expires_at: datetime
    mark_paid_at: datetime | None
    finished_at: datetime | None
    reference: str
    takes_reference: bool
    sender_name: str | None
    amount_to_send: Decimal

    @property
    def state(self) -> DealState:
        return DealState(self.status, self.sub_status)


@dataclass(frozen=True, slots=True)
class InvoiceView:
    """An invoice with its newest deal; `deal` is None until a method is chosen."""

    id: UUID
    merchant_id: UUID
    key_id: UUID
    external_id: str
    amount: Decimal
    currency_code: str
    status: InvoiceStatus
    customer_id: str
    purpose: str | None
    callback_url: str | None
    success_url: str | None
    fail_url: str | None
    created_at: datetime
    expires_at: datetime
    finished_at: datetime | None
    link_id: UUID | None
    merchant_data: str | None
    deal: DealView | None


@dataclass(frozen=True, slots=True)
class LinkView:
    """A payment link that makes a fresh invoice for each payment."""

    id: UUID
    merchant_id: UUID
    code: str
    amount: Decimal
    currency_code: str
    purpose: str | None
    note: str
    created_at: datetime
    expires_at: datetime | None
    canceled_at: datetime | None

    def status(self, now: datetime) -> LinkStatus:
        if self.canceled_at is not None:
            return LinkStatus.CANCELED
        is_over = self.expires_at is not None and self.expires_at <= now
        return LinkStatus.EXPIRED if is_over else LinkStatus.OPEN


@dataclass(frozen=True, slots=True)
class TransitionView:
    """One step of a deal's history."""

    at: datetime
    status: DealStatus
    sub_status: str
    actor: str
    note: str


@dataclass(frozen=True, slots=True)
class RequisiteView:
    id: UUID
    method_code: str
    holder: str
    account: str
    bank: str | None
    max_deals: int
    open_deals: int
    enabled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SwitchView:
    """The switch of new deals. `changed_at` is None as long as it was never used."""

    enabled: bool
    changed_at: datetime | None
    actor: str


@dataclass(frozen=True, slots=True)
class CaseView:
    number: int
    invoice_id: UUID
    merchant_id: UUID
    deal_id: UUID
    opened_at: datetime
    note: str
    policy: Policy
    answer_by: datetime | None
    line_id: UUID | None
    merchant_answer: str | None
    merchant_text: str | None
    answered_by: str | None
    answered_at: datetime | None
    resolved_at: datetime | None
    outcome: str | None
    actor: str | None
    ended_as: str | None

    def due(self, now: datetime) -> str:
        """Returns what is to be done with the money; of a closed case, what was when it was closed."""
        at = self.resolved_at or now
        return due(self.policy, self.merchant_answer, answer_by=self.answer_by, now=at)


@dataclass(frozen=True, slots=True)
class PictureView:
    """A customer's picture without its content. `size` is in bytes."""

    deal_id: UUID
    kind: PictureKind
    content_type: str
    size: int
    at: datetime


@dataclass(frozen=True, slots=True)
class PictureWithContent(PictureView):
    content: bytes
