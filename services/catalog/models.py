"""Tables of the catalog, nothing else. The constraints guard every invariant here, whatever the code does."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    Numeric,
    SmallInteger,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import kit.db.database
from kit.base.money import FIAT_PLACES, FRACTION_PLACES
from services.catalog.domain import (
    CURRENCY_CODE,
    PAYMENT_MOST_MINUTES,
    RATE_WHOLE_DIGITS,
    SOURCE_RATE_PLACES,
    AccountKind,
    Origin,
    Validity,
)

FIAT = Numeric(20, FIAT_PLACES)
FRACTION = Numeric(1 + FRACTION_PLACES, FRACTION_PLACES)
SOURCE_RATE = Numeric(RATE_WHOLE_DIGITS + SOURCE_RATE_PLACES, SOURCE_RATE_PLACES)

_QUOTES = """
jsonb_typeof(document) = 'object' AND octet_length(CAST(document AS text)) <= 65536
AND jsonb_typeof(coalesce(document -> 'quotes', 'null')) = 'array'
AND NOT jsonb_path_exists(document, 'strict $.quotes[*] ? (!exists (@ ? (
  @.source.type() == "string"
  && (@.rate.type() == "null" || @.rate.type() == "number" || @.rate like_regex "^[0-9]{1,40}([.][0-9]{1,40})?$")
)))', silent => true)
"""
_KINDS = ", ".join(repr(str(kind)) for kind in AccountKind)
_ORIGINS = ", ".join(repr(str(origin)) for origin in Origin)
_VALIDITIES = ", ".join(repr(str(validity)) for validity in Validity)


class Base(DeclarativeBase):
    metadata = kit.db.database.metadata()
    type_annotation_map = kit.db.database.TYPES


class Currency(Base):
    __tablename__ = "currencies"
    __table_args__ = (
        CheckConstraint(f"code ~ '^{CURRENCY_CODE}$'", name="code"),
        CheckConstraint(f"decimals BETWEEN 0 AND {FIAT_PLACES}", name="decimals"),
        CheckConstraint("min_amount > 0 AND min_amount <= max_amount", name="amounts"),
        CheckConstraint("markup BETWEEN 0 AND 1", name="markup"),
    )

    code: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    symbol: Mapped[str]
    decimals: Mapped[int] = mapped_column(SmallInteger)
    min_amount: Mapped[Decimal] = mapped_column(FIAT)
    max_amount: Mapped[Decimal] = mapped_column(FIAT)
    markup: Mapped[Decimal] = mapped_column(FRACTION)
    enabled: Mapped[bool]


class PaymentMethod(Base):
    __tablename__ = "payment_methods"
    __table_args__ = (
        CheckConstraint("min_sum > 0 AND min_sum <= max_sum", name="sums"),
        CheckConstraint(f"payment_minutes BETWEEN 1 AND {PAYMENT_MOST_MINUTES}", name="payment_minutes"),
        CheckConstraint("commission BETWEEN 0 AND 1", name="commission"),
        CheckConstraint(f"account_kind IN ({_KINDS})", name="account_kind"),
    )

    code: Mapped[str] = mapped_column(primary_key=True)
    currency_code: Mapped[str] = mapped_column(ForeignKey("currencies.code"), index=True)
    name: Mapped[str]
    min_sum: Mapped[Decimal] = mapped_column(FIAT)
    max_sum: Mapped[Decimal] = mapped_column(FIAT)
    payment_minutes: Mapped[int] = mapped_column(SmallInteger)
    commission: Mapped[Decimal] = mapped_column(FRACTION)
    logo_url: Mapped[str | None]
    active: Mapped[bool]
    logo: Mapped[str | None] = mapped_column(ForeignKey("logos.digest"))
    takes_reference: Mapped[bool] = mapped_column(server_default=text("false"))
    account_kind: Mapped[str] = mapped_column(server_default=text("'free'"))


class Logo(Base):
    """A picture, named by its content. A replaced one stays: pages that are already open still show it."""

    __tablename__ = "logos"
    __table_args__ = (
        CheckConstraint("digest = encode(sha256(content), 'hex')", name="digest"),
        CheckConstraint("content_type IN ('image/jpeg', 'image/png', 'image/webp')", name="content_type"),
        CheckConstraint("octet_length(content) BETWEEN 1 AND 32768", name="content"),
    )

    digest: Mapped[str] = mapped_column(primary_key=True)
    content_type: Mapped[str]
    content: Mapped[bytes]
    created_at: Mapped[datetime]


class Rate(Base):
    """Every rate that was ever accepted, in that order. Append-only: a trigger refuses every other change."""

    __tablename__ = "rates"
    __table_args__ = (
        CheckConstraint(f"origin IN ({_ORIGINS})", name="origin"),
        CheckConstraint("source_rate > 0", name="source_rate"),
        CheckConstraint("octet_length(seal) = 32", name="seal"),
        CheckConstraint(f"validity IN ({_VALIDITIES})", name="validity"),
        CheckConstraint("origin = 'operator' OR validity = 'as_polled'", name="origin_of_validity"),
        # SQL can copy a replaced rate with its seal: it must not be the newest again.
        UniqueConstraint("seal"),
        CheckConstraint(_QUOTES, name="document"),
        # The newest, and the newest that an operator decided: domain.in_force chooses between the two.
        Index("ix_rates_newest", "currency_code", "id"),
        Index("ix_rates_decided", "currency_code", "id", postgresql_where=text("origin <> 'sources'")),
        # For the history of a span of time.
        Index("ix_rates_taken", "currency_code", "taken_at"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    currency_code: Mapped[str] = mapped_column(ForeignKey("currencies.code"))
    source_rate: Mapped[Decimal] = mapped_column(SOURCE_RATE)
    origin: Mapped[str]
    # The time at which it was set or polled; an accepted one keeps the time of its poll.
    taken_at: Mapped[datetime]
    # {"quotes": [{"source", "rate", "error"}, ...]}: the origin of the number, failed sources included.
    document: Mapped[dict[str, Any]]
    validity: Mapped[str] = mapped_column(server_default="as_polled")
    seal: Mapped[bytes]


class HeldRate(Base):
    """The rate that moved too far and waits for an operator: one per currency, replaced by newer polls."""

    __tablename__ = "held_rates"
    __table_args__ = (
        CheckConstraint("source_rate > 0", name="source_rate"),
        CheckConstraint(_QUOTES, name="document"),
    )

    currency_code: Mapped[str] = mapped_column(ForeignKey("currencies.code"), primary_key=True)
    source_rate: Mapped[Decimal] = mapped_column(SOURCE_RATE)
    taken_at: Mapped[datetime]
    document: Mapped[dict[str, Any]]


class PollTurn(Base):
    """One row: when a process last polled the sources. A process that updates the row makes the next poll."""

    __tablename__ = "poll_turns"
    __table_args__ = (CheckConstraint("id = 1", name="id"),)

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    started_at: Mapped[datetime]
