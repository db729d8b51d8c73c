"""Tables of bank, nothing else. The constraints guard every invariant here, whatever the code does."""

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, Numeric, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import kit.db.database
from services.bank.domain.lines import Direction, Status
from services.bank.domain.proposals import ImportState, LineState, Tier

FIAT = Numeric(22, 2)
LINE_DAY: Final = "coalesce(booked_on, valued_on, (created_at AT TIME ZONE 'UTC')::date)"
"""The day of a line: as the bank booked it, else as it counts it."""


def _one_of(column: str, words: type[StrEnum]) -> str:
    return f"{column} IN ({', '.join(repr(str(word)) for word in words)})"


class Base(DeclarativeBase):
    metadata = kit.db.database.metadata()
    type_annotation_map = kit.db.database.TYPES


class Import(Base):
    __tablename__ = "imports"
    __table_args__ = (
        UniqueConstraint("digest", "profile", name="uq_imports_digest"),
        CheckConstraint("octet_length(digest) = 32", name="digest"),
        CheckConstraint("octet_length(content) BETWEEN 1 AND 8388608", name="content"),
        CheckConstraint(_one_of("state", ImportState), name="state"),
        CheckConstraint("(state = 'refused') = (problem IS NOT NULL)", name="problem"),
        CheckConstraint("octet_length(seal) = 32", name="seal"),
        Index("ix_imports_waiting", "id", postgresql_where=text("state = 'waiting'")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    digest: Mapped[bytes]
    file_name: Mapped[str]
    profile: Mapped[str]
    content: Mapped[bytes]
    state: Mapped[str]
    format: Mapped[str | None]
    problem: Mapped[str | None]
    lines: Mapped[int]
    new_lines: Mapped[int]
    imported_at: Mapped[datetime]
    seal: Mapped[bytes]


class Statement(Base):
    __tablename__ = "statements"
    __table_args__ = (
        CheckConstraint("account ~ '^[0-9A-Z]{1,64}$'", name="account"),
        CheckConstraint("currency_code ~ '^[A-Z]{3}$'", name="currency_code"),
        CheckConstraint("octet_length(seal) = 32", name="seal"),
        Index("ix_statements_import", "import_id"),
        Index("ix_statements_account", "account", "currency_code", "closed_on", "opened_on"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    import_id: Mapped[UUID] = mapped_column(ForeignKey("imports.id"))
    account: Mapped[str]
    currency_code: Mapped[str]
    number: Mapped[str]
    opening: Mapped[Decimal | None] = mapped_column(FIAT)
    closing: Mapped[Decimal | None] = mapped_column(FIAT)
    opened_on: Mapped[date | None]
    closed_on: Mapped[date | None]
    seal: Mapped[bytes]


class Line(Base):
    __tablename__ = "lines"
    __table_args__ = (
        UniqueConstraint("account", "identity", name="uq_lines_account_identity"),
        CheckConstraint(_one_of("direction", Direction), name="direction"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint(_one_of("status", Status), name="status"),
        CheckConstraint(_one_of("state", LineState), name="state"),
        CheckConstraint(_one_of("tier", Tier), name="tier"),
        CheckConstraint(
            "(deal_id IS NULL) = (invoice_id IS NULL) AND (deal_id IS NULL) = (deal_amount IS NULL)"
            " AND (state <> 'proposed' OR deal_id IS NOT NULL)",
            name="proposal",
        ),
        CheckConstraint("(state = 'ignored') = (reason IS NOT NULL)", name="reason"),
        CheckConstraint(
            "(import_id IS NULL) = (statement_id IS NULL) AND (import_id IS NULL) = (connector_id IS NOT NULL)",
            name="source",
        ),
        CheckConstraint("refund_id IS NULL OR direction = 'debit'", name="refund"),
        CheckConstraint("octet_length(seal) = 32", name="seal"),
        Index("uq_lines_refund", "refund_id", unique=True, postgresql_where=text("refund_id IS NOT NULL")),
        CheckConstraint("used_for ~ '^(correction|refund):[0-9a-f-]{36}$'", name="used_for"),
        Index("ix_lines_state", "state", "id"),
        Index("ix_lines_deal", "deal_id", postgresql_where=text("deal_id IS NOT NULL")),
        Index("ix_lines_account", "account", "id"),
        Index("uq_lines_posted", "identity", unique=True, postgresql_where=text("connector_id IS NOT NULL")),
        Index("ix_lines_connector", "connector_id", "id", postgresql_where=text("connector_id IS NOT NULL")),
        Index("ix_lines_day", text(f"({LINE_DAY})"), "account", "currency_code"),
        Index("ix_lines_waiting", "id", postgresql_where=text("state = 'waiting' AND status = 'booked'")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    # A line came by a file or by a connector.
    import_id: Mapped[UUID | None] = mapped_column(ForeignKey("imports.id"))
    statement_id: Mapped[UUID | None] = mapped_column(ForeignKey("statements.id"))
    connector_id: Mapped[UUID | None] = mapped_column(ForeignKey("connectors.id"))
    account: Mapped[str]
    # Unique within the account (domain.lines.identities).
    identity: Mapped[str]
    direction: Mapped[str]
    amount: Mapped[Decimal] = mapped_column(FIAT)
    currency_code: Mapped[str]
    status: Mapped[str]
    booked_on: Mapped[date | None]
    valued_on: Mapped[date | None]
    counterparty_name: Mapped[str]
    counterparty_account: Mapped[str]
    text: Mapped[str]
    reference_texts: Mapped[str]
    created_at: Mapped[datetime]
    state: Mapped[str]
    tier: Mapped[str | None]
    deal_id: Mapped[UUID | None]
    invoice_id: Mapped[UUID | None]
    deal_amount: Mapped[Decimal | None] = mapped_column(FIAT)
    reason: Mapped[str | None]
    # The refund of withdrawals that a line that went out is.
    refund_id: Mapped[UUID | None]
    seal: Mapped[bytes]
    # `tried_at` is when a worker or a person claimed it; `held` is why people have to confirm by it.
    tried_at: Mapped[datetime | None]
    held: Mapped[str | None]
    # The correction or refund that is made of its money (bank.proto).
    used_for: Mapped[str | None]


class Connector(Base):
    """A key of a program that posts lines. `accounts` are those that it may post for, each as ACCOUNT:CURRENCY."""

    __tablename__ = "connectors"
    __table_args__ = (
        UniqueConstraint("key_hash", name="uq_connectors_key_hash"),
        CheckConstraint("name ~ '^[0-9A-Za-z_-]{1,64}$'", name="name"),
        CheckConstraint("octet_length(key_hash) = 32", name="key_hash"),
        CheckConstraint("silence_seconds BETWEEN 60 AND 2592000", name="silence_seconds"),
        Index("ix_connectors_name", "name"),
        Index(
            "ix_connectors_heard",
            text("(coalesce(heard_at, created_at))"),
            postgresql_where=text("revoked_at IS NULL AND silence_seconds IS NOT NULL"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    hint: Mapped[str]
    key_hash: Mapped[bytes]
    accounts: Mapped[list[str]] = mapped_column(ARRAY(Text))
    # None: it may be silent for ever.
    silence_seconds: Mapped[int | None]
    created_at: Mapped[datetime]
    heard_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class CsvProfile(Base):
    """The form of a bank's CSV files, as JSON. `profile` is None once it is deleted."""

    __tablename__ = "csv_profiles"
    __table_args__ = (CheckConstraint("name ~ '^[0-9A-Za-z_-]{1,64}$'", name="name"),)

    name: Mapped[str] = mapped_column(primary_key=True)
    profile: Mapped[str | None]
    actor: Mapped[str]
    changed_at: Mapped[datetime]


class LineMatch(Base):
    """A payment by a part of a line, as invoices recorded it. It has no foreign key: a restored database may have
    forgotten the line.
    """

    __tablename__ = "line_matches"
    __table_args__ = (
        CheckConstraint("amount > 0", name="amount"),
        Index("ix_line_matches_number", "number"),
        Index("ix_line_matches_deal", "deal_id"),
    )

    # In the order of the commits in invoices, which gives lost numbers anew after a restore.
    number: Mapped[int] = mapped_column(BigInteger)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    deal_id: Mapped[UUID] = mapped_column(primary_key=True)
    invoice_id: Mapped[UUID]
    amount: Mapped[Decimal] = mapped_column(FIAT)
    paid_at: Mapped[datetime]
