"""Tables of the withdrawals service, nothing else. The constraints guard every invariant here, whatever the code does.

Triggers guard the rest: only the insert of a transfer moves the two balances, and a transfer is never
changed or deleted.
"""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    Numeric,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import kit.db.database
from kit.events.inbox import InboxColumns, ParkedColumns
from services.withdrawals.addresses import NETWORKS
from services.withdrawals.domain import DEBITS, MERCHANT_KINDS, REACHED_FROM, AccountKind, CorrectionKind

USDT = Numeric(38, 6)
FIAT = Numeric(20, 2)
REFERENCE_KEY = "translate(lower({}), ' -./_:', '')"
"""The part of a reference that all its spellings share."""


def _texts(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


_STATES = ", ".join(f"('{state.status}', '{state.substatus or 'none'}')" for state in REACHED_FROM)
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_REFERENCE = (
    "^(invoice:ID|withdrawal:ID:(reserve|pay|fee|release)|correction:ID|correction:ID:owed"
    "|refund:ID:(reserve|pay|release)|debt:(invoice:ID|correction:ID|(withdrawal|refund):ID:release))$"
)
NO_CREDIT = "reference < 'invoice:' OR reference >= 'invoice;'"
"""The condition of the index of debits, SQL: the transfers of no invoice."""


class Base(DeclarativeBase):
    metadata = kit.db.database.metadata()
    type_annotation_map = kit.db.database.TYPES


class Account(Base):
    """One account of the ledger.

    Only merchants' accounts keep a running balance; those of the system are the sums of their transfers. Every
    credit leaves `settlement`: with a balance there each credit would wait for the commit of the one before it
    (measured with 8 connections on 2 cores: 1,800 credits a second instead of 4,100).
    """

    __tablename__ = "accounts"
    __table_args__ = (
        # The merchant first, because accounts are searched by merchant.
        UniqueConstraint("merchant_id", "kind", postgresql_nulls_not_distinct=True),
        CheckConstraint(f"kind IN ({_texts(AccountKind)})", name="kind"),
        CheckConstraint(
            f"(kind IN ({_texts(MERCHANT_KINDS)})) = (merchant_id IS NOT NULL)", name="merchant_id"
        ),
        CheckConstraint("(merchant_id IS NULL) = (balance IS NULL)", name="balance"),
        CheckConstraint("balance >= 0", name="balance_not_negative"),
        Index("ix_accounts_owed", "balance", postgresql_where=text("kind = 'merchant_owed' AND balance > 0")),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    kind: Mapped[str]
    merchant_id: Mapped[UUID | None]
    balance: Mapped[Decimal | None] = mapped_column(USDT)


class Transfer(Base):
    """An amount that left `debit_account` and arrived at `credit_account`: append-only, one row per reference."""

    __tablename__ = "transfers"
    __table_args__ = (
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("debit_account <> credit_account", name="accounts"),
        CheckConstraint(f"reference ~ replace('{_REFERENCE}', 'ID', '{_UUID}')", name="reference"),
        # A merchant's statement: what arrived at its accounts, and what left them. A credit writes into the first index
        # only. Both hold the amount, so that the sum of many transfers reads no row.
        Index("ix_transfers_credit", "credit_account", "created_at", "id", postgresql_include=["amount"]),
        Index(
            "ix_transfers_debit",
            "debit_account",
            "created_at",
            "id",
            postgresql_include=["amount"],
            postgresql_where=text(NO_CREDIT),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    # Compared bytewise, so that the references of invoices are in the order of their ids.
    reference: Mapped[str] = mapped_column(Text(collation="C"), unique=True)
    debit_account: Mapped[int] = mapped_column(ForeignKey("accounts.id"))
    credit_account: Mapped[int] = mapped_column(ForeignKey("accounts.id"))
    amount: Mapped[Decimal] = mapped_column(USDT)
    created_at: Mapped[datetime]


class WithdrawalMethod(Base):
    """A way to withdraw: token and network, its fee and its least amount."""

    __tablename__ = "withdrawal_methods"
    __table_args__ = (
        UniqueConstraint("code"),
        CheckConstraint(f"network IN ({_texts(sorted(NETWORKS))})", name="network"),
        CheckConstraint("network_fee >= 0 AND min_amount > network_fee", name="min_amount"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    code: Mapped[str]
    network: Mapped[str]
    name: Mapped[str]
    network_fee: Mapped[Decimal] = mapped_column(USDT)
    min_amount: Mapped[Decimal] = mapped_column(USDT)
    memo_allowed: Mapped[bool]
    enabled: Mapped[bool]


class Withdrawal(Base):
    """A merchant's withdrawal; network and fee are those of its creation."""

    __tablename__ = "withdrawals"
    __table_args__ = (
        UniqueConstraint("request_key"),
        # One transaction pays one withdrawal; transaction ids are unique per network only.
        # Hashes are stored in one normal form (transactions.py), other marks as typed; the index finds both.
        UniqueConstraint("network", "external_tx_id"),
        Index("ix_withdrawals_transaction", "network", text("lower(external_tx_id)")),
        CheckConstraint(f"(status, coalesce(substatus, 'none')) IN ({_STATES})", name="status"),
        CheckConstraint("(status = 'success') = (external_tx_id IS NOT NULL)", name="external_tx_id"),
        CheckConstraint("(status = 'pending') = (processed_at IS NULL)", name="processed_at"),
        CheckConstraint("network_fee >= 0 AND amount > network_fee", name="amount"),
        Index("ix_withdrawals_list", "merchant_id", "created_at", "id"),
        Index("ix_withdrawals_list_status", "merchant_id", "status", "created_at", "id"),
        # For operators: newest first, all merchants.
        Index("ix_withdrawals_status", "status", "id"),
        Index("ix_withdrawals_all", "created_at", "id"),
        Index("ix_withdrawals_all_status", "status", "created_at", "id"),
        Index("ix_withdrawals_method", "method_id", "created_at", "id"),
        Index("ix_withdrawals_address", text("lower(address)"), "created_at", "id"),
        Index("ix_withdrawals_amount", "amount", "created_at", "id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    merchant_id: Mapped[UUID]
    request_key: Mapped[UUID]
    method_id: Mapped[int] = mapped_column(ForeignKey("withdrawal_methods.id"))
    network: Mapped[str]
    address: Mapped[str]
    address_memo: Mapped[str | None]
    amount: Mapped[Decimal] = mapped_column(USDT)
    network_fee: Mapped[Decimal] = mapped_column(USDT)
    status: Mapped[str]
    substatus: Mapped[str | None]
    external_tx_id: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    processed_at: Mapped[datetime | None]


class Correction(Base):
    """A change of a merchant's money beside invoices and withdrawals. Append-only; its transfers have its id."""

    __tablename__ = "corrections"
    __table_args__ = (
        UniqueConstraint("request_key"),
        CheckConstraint(f"kind IN ({_texts(CorrectionKind)})", name="kind"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint(
            f"owed BETWEEN 0 AND amount AND (owed = 0 OR kind IN ({_texts(sorted(DEBITS, reverse=True))}))",
            name="owed",
        ),
        CheckConstraint("(kind LIKE 'manual%') = (invoice_id IS NULL)", name="invoice_id"),
        CheckConstraint(
            "CASE WHEN kind IN ('late_credit', 'surplus') THEN"
            " received_amount > 0 AND conversion_rate > 0 AND currency_code IS NOT NULL"
            " ELSE num_nonnulls(received_amount, conversion_rate, currency_code) = 0 END",
            name="received_amount",
        ),
        CheckConstraint("case_number IS NULL OR kind = 'late_credit'", name="case_number"),
        Index("ix_corrections_list", "created_at", "id"),
        Index("ix_corrections_merchant", "merchant_id", "created_at", "id"),
        Index("ix_corrections_invoice", "invoice_id"),
        Index("ix_corrections_evidence", text(REFERENCE_KEY.format("evidence"))),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    merchant_id: Mapped[UUID]
    invoice_id: Mapped[UUID | None]
    case_number: Mapped[int | None] = mapped_column(BigInteger)
    amount: Mapped[Decimal] = mapped_column(USDT)
    # The part of a debit that was not available.
    owed: Mapped[Decimal] = mapped_column(USDT)
    # Fiat that came, and fiat per USDT, of a late credit and a surplus.
    received_amount: Mapped[Decimal | None] = mapped_column(FIAT)
    currency_code: Mapped[str | None]
    conversion_rate: Mapped[Decimal | None] = mapped_column(FIAT)
    reason: Mapped[str]
    evidence: Mapped[str]
    request_key: Mapped[UUID]
    created_at: Mapped[datetime]


class Refund(Base):
    """Fiat that goes back to a customer. `amount` is the merchant's USDT that it takes, zero for money that was never
    credited.
    """

    __tablename__ = "refunds"
    __table_args__ = (
        UniqueConstraint("merchant_id", "external_id", name="uq_refunds_external_id"),
        CheckConstraint("origin IN ('credited', 'late', 'surplus')", name="origin"),
        CheckConstraint(
            "refund_amount > 0 AND (amount > 0) = (origin = 'credited') AND amount >= 0", name="amount"
        ),
        CheckConstraint(
            "status IN ('waiting_for_account', 'ready', 'sent', 'succeeded', 'failed', 'canceled')",
            name="status",
        ),
        CheckConstraint(
            "num_nonnulls(account_kind, account, holder) IN (0, 3)"
            " AND (status NOT IN ('ready', 'sent', 'succeeded') OR account IS NOT NULL)"
            " AND (status <> 'waiting_for_account' OR account IS NULL)",
            name="account",
        ),
        CheckConstraint(
            "(status <> 'succeeded' OR bank_reference IS NOT NULL)"
            " AND (bank_reference IS NULL OR status IN ('sent', 'succeeded', 'failed'))",
            name="bank_reference",
        ),
        CheckConstraint("(status = 'failed') = (failure IS NOT NULL)", name="failure"),
        CheckConstraint(
            "(status IN ('succeeded', 'failed', 'canceled')) = (finished_at IS NOT NULL)", name="finished_at"
        ),
        Index("ix_refunds_list", "created_at", "id"),
        Index("ix_refunds_status", "status", "created_at", "id"),
        Index("ix_refunds_merchant", "merchant_id", "created_at", "id"),
        Index("ix_refunds_invoice", "invoice_id"),
        # For the search.
        Index("ix_refunds_external_id", "external_id"),
        Index("ix_refunds_bank_reference", text(REFERENCE_KEY.format("bank_reference"))),
        # One payment of the bank pays one refund. That of a failed one is free again: a mistyped one can be mended.
        Index(
            "uq_refunds_bank_reference",
            text(REFERENCE_KEY.format("bank_reference")),
            unique=True,
            postgresql_where=text("status IN ('sent', 'succeeded')"),
        ),
        # The queues.
        Index(
            "ix_refunds_open",
            "status",
            "updated_at",
            postgresql_where=text("status IN ('waiting_for_account', 'ready', 'sent')"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    merchant_id: Mapped[UUID]
    invoice_id: Mapped[UUID]
    external_id: Mapped[str]
    origin: Mapped[str]
    case_number: Mapped[int | None] = mapped_column(BigInteger)
    refund_amount: Mapped[Decimal] = mapped_column(FIAT)
    currency_code: Mapped[str]
    amount: Mapped[Decimal] = mapped_column(USDT)
    conversion_rate: Mapped[Decimal] = mapped_column(FIAT)
    reason: Mapped[str]
    status: Mapped[str]
    account_kind: Mapped[str | None]
    account: Mapped[str | None]
    holder: Mapped[str | None]
    bank: Mapped[str | None]
    account_by_customer: Mapped[bool]
    bank_reference: Mapped[str | None]
    failure: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class Inbox(InboxColumns, Base):
    pass


class Parked(ParkedColumns, Base):
    pass
