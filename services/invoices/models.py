"""Tables of the invoices service, nothing else. The constraints guard every invariant here, whatever the code does."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    Numeric,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import kit.db.database
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import FIAT_PLACES
from kit.base.proto import most_of
from kit.events.outbox import BusStateColumns, OutboxColumns
from services.invoices.domain.late import End, PictureKind, Policy
from services.invoices.domain.states import OPEN_DEAL_STATUSES, SUB_STATUSES, InvoiceStatus

FIAT = Numeric(20, 2)
USDT = Numeric(38, 6)
PERCENT = Numeric(5, 2)
PICTURE_MAX_BYTES = most_of(pb.OpenCustomerAppealRequest, "picture")


def _one_of(column: str, values: type[StrEnum]) -> str:
    return f"{column} IN ({', '.join(repr(str(value)) for value in values)})"


# As kit.base.account_forms.account_key returns it.
ACCOUNT_KEY = "upper(regexp_replace(account, '[^[:alnum:]]', '', 'g'))"
"""An account as a search compares it: without spaces and hyphens, in capitals."""

DEAL_IS_OPEN = f"status IN ({', '.join(repr(str(status)) for status in OPEN_DEAL_STATUSES)})"


_DEAL_STATES = ", ".join(f"('{status}', '{sub}')" for sub, status in SUB_STATUSES.items())
"""Every state of a deal, SQL."""


class Base(DeclarativeBase):
    metadata = kit.db.database.metadata()
    type_annotation_map = kit.db.database.TYPES


class Link(Base):
    """A payment link that makes a fresh invoice for each payment."""

    __tablename__ = "links"
    __table_args__ = (
        Index("ix_links_list", "merchant_id", "created_at", "id"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("code ~ '^[0-9A-HJKMNP-TV-Z]{8}$'", name="code"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    merchant_id: Mapped[UUID]
    # The external ids of its invoices begin with it.
    code: Mapped[str]
    amount: Mapped[Decimal] = mapped_column(FIAT)
    currency_code: Mapped[str]
    purpose: Mapped[str | None]
    note: Mapped[str]
    created_at: Mapped[datetime]
    # Null: never.
    expires_at: Mapped[datetime | None]
    canceled_at: Mapped[datetime | None]


class Invoice(Base):
    __tablename__ = "invoices"
    __table_args__ = (
        UniqueConstraint("merchant_id", "external_id"),
        # One pending invoice per customer (PENDING_INVOICE_EXISTS), also when creates race. The condition is not on
        # status: PostgreSQL might then use ix_invoices_list_status and read all pending invoices of the merchant.
        Index(
            "uq_invoices_pending_customer",
            "merchant_id",
            "customer_id",
            unique=True,
            postgresql_where=text("finished_at IS NULL"),
        ),
        Index("ix_invoices_customer", "merchant_id", "customer_id", "created_at"),
        # For lists: the currency is included, so that PostgreSQL counts and skips without reading rows.
        Index(
            "ix_invoices_list",
            "merchant_id",
            "created_at",
            "id",
            postgresql_include=["currency_code"],
        ),
        Index(
            "ix_invoices_list_status",
            "merchant_id",
            "status",
            "created_at",
            "id",
            postgresql_include=["currency_code"],
        ),
        # For the expiry worker: only invoices without a method.
        Index(
            "ix_invoices_waiting",
            "expires_at",
            postgresql_where=text("status = 'pending' AND deal_id IS NULL"),
        ),
        Index("ix_invoices_link", "link_id", "status", postgresql_where=text("link_id IS NOT NULL")),
        # For operators, over all merchants: the list, and the search by amount.
        Index("ix_invoices_all", "created_at", "id"),
        Index("ix_invoices_amount", "amount", "created_at", "id"),
        Index("ix_invoices_finished", "id", postgresql_where=text("status <> 'pending'")),
        CheckConstraint(_one_of("status", InvoiceStatus), name="status"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("(status = 'pending') = (finished_at IS NULL)", name="finished_at"),
        CheckConstraint("(finished_at IS NULL) = (event_id IS NULL)", name="event_id"),
        CheckConstraint("octet_length(seal) = 32", name="seal"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    merchant_id: Mapped[UUID]
    key_id: Mapped[UUID]
    external_id: Mapped[str]
    amount: Mapped[Decimal] = mapped_column(FIAT)
    currency_code: Mapped[str]
    status: Mapped[str]
    customer_id: Mapped[str]
    purpose: Mapped[str | None]
    callback_url: Mapped[str | None]
    success_url: Mapped[str | None]
    fail_url: Mapped[str | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    # The newest deal; null until a method is chosen. No foreign key, because deals already refer to invoices.
    deal_id: Mapped[UUID | None]
    # InvoiceFinished.event_id, made once when the invoice finishes, so that a repeated announcement is the same.
    event_id: Mapped[UUID | None]
    # A code over what create-invoice was asked for. SQL wrote a row without one.
    seal: Mapped[bytes | None]
    # The link that made it; null for all others.
    link_id: Mapped[UUID | None] = mapped_column(ForeignKey("links.id"))
    # The request's `metadata`, a name that SQLAlchemy keeps for itself: a JSON object of texts in their order.
    merchant_data: Mapped[str | None]


class Requisite(Base):
    __tablename__ = "requisites"
    __table_args__ = (
        CheckConstraint("max_deals > 0", name="max_deals"),
        CheckConstraint("open_deals BETWEEN 0 AND max_deals", name="open_deals"),
        Index("ix_requisites_method", "method_code", "created_at"),
        Index("ix_requisites_account", text(ACCOUNT_KEY)),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    method_code: Mapped[str]
    holder: Mapped[str]
    account: Mapped[str]
    bank: Mapped[str | None]
    max_deals: Mapped[int]
    open_deals: Mapped[int]
    enabled: Mapped[bool]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


_UNIT = "power(CAST(10 AS numeric), currency_decimals)"
FIRST_AMOUNT = f"(ceil(invoice_amount * (100 + client_percent) * 0.01 * {_UNIT}) / {_UNIT})"
"""The amount that a deal had before its adjustment, SQL: its terms stay, and the sum of `domain.money.customer_amount`
with it.
"""

_RATE_BASIS = """
jsonb_typeof(rate_basis) = 'object' AND octet_length(CAST(rate_basis AS text)) <= 131072
AND jsonb_path_exists(rate_basis, 'strict $ ? (
  @.origin.type() == "string" && @.source_rate.type() == "string" && @.markup.type() == "string"
  && @.taken_at.type() == "string" && @.sources.type() == "array"
)')
AND NOT jsonb_path_exists(rate_basis, 'strict $.sources[*] ? (!exists (@ ? (
  @.source.type() == "string" && @.error.type() == "string"
  && (@.rate.type() == "string" || @.rate.type() == "null")
)))', silent => true)
"""


class Deal(Base):
    __tablename__ = "deals"
    __table_args__ = (
        Index("uq_deals_open_invoice", "invoice_id", unique=True, postgresql_where=text(DEAL_IS_OPEN)),
        # Two equal amounts on one requisite could not be told apart (bitcart#605).
        # Those that take a reference may share a requisite.
        Index(
            "uq_deals_open_amount",
            "requisite_id",
            "amount_fiat",
            unique=True,
            postgresql_where=text(f"{DEAL_IS_OPEN} AND NOT takes_reference"),
        ),
        Index("ix_deals_open_amount", "requisite_id", "amount_fiat", postgresql_where=text(DEAL_IS_OPEN)),
        Index("ix_deals_reference", "reference"),
        Index("uq_deals_open_reference", "reference", unique=True, postgresql_where=text(DEAL_IS_OPEN)),
        Index(
            "ix_deals_sender",
            text("to_tsvector('simple'::regconfig, sender_words)"),
            postgresql_using="gin",
            postgresql_where=text("sender_words IS NOT NULL"),
        ),
        # For counting the places of a method that one merchant holds.
        Index("ix_deals_open_merchant", "merchant_id", "method_code", postgresql_where=text(DEAL_IS_OPEN)),
        Index("ix_deals_invoice", "invoice_id", "created_at"),
        Index("ix_deals_list", "created_at", "id"),
        Index("ix_deals_list_status", "status", "created_at", "id"),
        Index("ix_deals_amount", "amount_fiat", "created_at", "id"),
        Index(
            "ix_deals_first_amount", text(FIRST_AMOUNT), postgresql_where=text("adjusted_amount IS NOT NULL")
        ),
        Index("ix_deals_unpaid", "expires_at", postgresql_where=text("sub_status = 'awaiting_payment'")),
        Index(
            "ix_deals_marked", "confirm_before", postgresql_where=text("sub_status = 'awaiting_confirmation'")
        ),
        CheckConstraint(f"(status, sub_status) IN ({_DEAL_STATES})", name="status"),
        CheckConstraint(f"({DEAL_IS_OPEN}) = (finished_at IS NULL)", name="finished_at"),
        CheckConstraint("(status = 'completed') = (merchant_usdt IS NOT NULL)", name="merchant_usdt"),
        CheckConstraint("(mark_paid_at IS NULL) = (confirm_before IS NULL)", name="confirm_before"),
        # One that a customer marked as paid ends by an operator's act only.
        CheckConstraint(
            "mark_paid_at IS NULL OR (status NOT IN ('canceled', 'expired') AND sub_status <> 'awaiting_payment')",
            name="marked",
        ),
        CheckConstraint("adjusted_amount > 0 AND adjusted_amount < invoice_amount", name="adjusted_amount"),
        CheckConstraint(
            "(sub_status = 'completed_with_adjustment') = (adjusted_amount IS NOT NULL)", name="adjustment"
        ),
        CheckConstraint("conversion_rate > 0", name="conversion_rate"),
        CheckConstraint("amount_fiat > 0", name="amount_fiat"),
        CheckConstraint("octet_length(seal) = 32", name="seal"),
        CheckConstraint(f"currency_decimals BETWEEN 0 AND {FIAT_PLACES}", name="currency_decimals"),
        CheckConstraint("reference ~ '^[0-9A-HJKMNP-TV-Z]{8}$'", name="reference"),
        CheckConstraint(
            "char_length(sender_name) BETWEEN 1 AND 128 AND (sender_name IS NULL) = (sender_words IS NULL)",
            name="sender_name",
        ),
        CheckConstraint(_RATE_BASIS, name="rate_basis"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    invoice_id: Mapped[UUID] = mapped_column(ForeignKey("invoices.id"))
    merchant_id: Mapped[UUID]
    status: Mapped[str]
    sub_status: Mapped[str]
    method_code: Mapped[str]
    method_name: Mapped[str]
    currency_code: Mapped[str]
    # Decimal places of the currency when the deal was opened, for rounding an adjustment the same way.
    currency_decimals: Mapped[int]
    invoice_amount: Mapped[Decimal] = mapped_column(FIAT)
    amount_fiat: Mapped[Decimal] = mapped_column(Numeric(22, 2))
    conversion_rate: Mapped[Decimal] = mapped_column(Numeric(20, 2))
    client_percent: Mapped[Decimal] = mapped_column(PERCENT)
    merchant_percent: Mapped[Decimal] = mapped_column(PERCENT)
    merchant_usdt: Mapped[Decimal | None] = mapped_column(USDT)
    adjusted_amount: Mapped[Decimal | None] = mapped_column(FIAT)
    requisite_id: Mapped[UUID] = mapped_column(ForeignKey("requisites.id"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    mark_paid_at: Mapped[datetime | None]
    # The time at which a deal marked paid becomes an appeal.
    confirm_before: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    reference: Mapped[str | None]
    takes_reference: Mapped[bool] = mapped_column(server_default=text("false"))
    sender_name: Mapped[str | None]
    sender_words: Mapped[str | None]
    # JSON of domain.rates.
    rate_basis: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    # Of the terms that its credit follows from (store.decisions).
    seal: Mapped[bytes]


class DealTransition(Base):
    """A deal's history. Append-only: the service's own role may neither change nor delete rows."""

    __tablename__ = "deal_transitions"
    __table_args__ = (
        Index("ix_deal_transitions_deal", "deal_id", "id"),
        # For the proof of the sums of days. Rows are written in the order of time, so it has an entry for 128 pages,
        # and a purchase writes none.
        Index(
            "ix_deal_transitions_at", "at", postgresql_using="brin", postgresql_with={"autosummarize": "on"}
        ),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    deal_id: Mapped[UUID] = mapped_column(ForeignKey("deals.id"))
    at: Mapped[datetime]
    status: Mapped[str]
    sub_status: Mapped[str]
    actor: Mapped[str]
    note: Mapped[str]


class Case(Base):
    """Late money of an invoice that ended without success, reported by its customer or by a bank line. One per invoice,
    kept for ever.
    """

    __tablename__ = "cases"
    __table_args__ = (
        UniqueConstraint("invoice_id"),
        Index("ix_cases_open", "number", postgresql_where=text("resolved_at IS NULL")),
        CheckConstraint("(resolved_at IS NULL) = (outcome IS NULL)", name="outcome"),
        CheckConstraint("(resolved_at IS NULL) = (actor IS NULL)", name="actor"),
        CheckConstraint("(resolved_at IS NULL) = (ended_as IS NULL)", name="ended"),
        CheckConstraint(_one_of("ended_as", End), name="ended_as"),
        CheckConstraint(_one_of("policy", Policy), name="policy"),
        CheckConstraint("merchant_answer IN ('credit', 'return')", name="merchant_answer"),
        CheckConstraint(
            "(merchant_answer IS NULL) = (merchant_text IS NULL) AND (merchant_answer IS NULL) = (answered_by IS NULL)"
            " AND (merchant_answer IS NULL) = (answered_at IS NULL)",
            name="answered",
        ),
        Index("ix_cases_merchant", "merchant_id", "number"),
    )

    # The number that the customer gives on the telephone. It is short, and it does not show how many cases there are.
    number: Mapped[int] = mapped_column(BigInteger, Identity(always=True, start=1001), primary_key=True)
    invoice_id: Mapped[UUID] = mapped_column(ForeignKey("invoices.id"))
    merchant_id: Mapped[UUID]
    deal_id: Mapped[UUID] = mapped_column(ForeignKey("deals.id"))
    opened_at: Mapped[datetime]
    note: Mapped[str]
    policy: Mapped[str]
    answer_by: Mapped[datetime | None]
    line_id: Mapped[UUID | None]
    # A code over the values above, without the number, which the database gives.
    seal: Mapped[bytes]
    merchant_answer: Mapped[str | None]
    merchant_text: Mapped[str | None]
    answered_by: Mapped[str | None]
    answered_at: Mapped[datetime | None]
    resolved_at: Mapped[datetime | None]
    outcome: Mapped[str | None]
    actor: Mapped[str | None]
    ended_as: Mapped[str | None]


class CustomerPicture(Base):
    """A picture that a customer sent. In the database, not in a folder: it commits together with its step."""

    __tablename__ = "proofs"
    __table_args__ = (
        CheckConstraint(_one_of("kind", PictureKind), name="kind"),
        CheckConstraint(f"octet_length(content) BETWEEN 1 AND {PICTURE_MAX_BYTES}", name="content"),
    )

    deal_id: Mapped[UUID] = mapped_column(ForeignKey("deals.id"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    content_type: Mapped[str]
    content: Mapped[bytes]
    at: Mapped[datetime]


class Switch(Base):
    """An operator's switch: today one row, `deals`."""

    __tablename__ = "switches"

    name: Mapped[str] = mapped_column(primary_key=True)
    enabled: Mapped[bool]
    changed_at: Mapped[datetime]
    actor: Mapped[str]


class Outbox(OutboxColumns, Base):
    pass


class BusState(BusStateColumns, Base):
    pass
