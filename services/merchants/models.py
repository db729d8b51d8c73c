"""The tables of the merchants service, nothing else."""

import uuid
from datetime import datetime
from decimal import Decimal

from sqlalchemy import ARRAY, CheckConstraint, ForeignKey, Index, Numeric, SmallInteger, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from kit.base.emails import EMAIL_CHARACTERS
from kit.db import database as db
from kit.egress.address import URL_MAX_CHARACTERS
from services.merchants.domain import CATEGORY_CODE, KEY_NAME_CHARACTERS, NAME_CHARACTERS

FRACTION = Numeric(7, 6)  # 0..1 with at most six decimals
NO_CODES = text("'{}'")


class Base(DeclarativeBase):
    metadata = db.metadata()
    type_annotation_map = db.TYPES


class Owner(Base):
    """A person or company, known by an e-mail address in lower case; blocked while `blocked_at` is set."""

    __tablename__ = "owners"
    __table_args__ = (
        # Lower case of ASCII letters only: for other alphabets the database and Python may differ.
        CheckConstraint(
            f'email = lower(email COLLATE "C") AND char_length(email) <= {EMAIL_CHARACTERS}', name="email"
        ),
        Index("ix_owners_blocked", "id", postgresql_where=text("blocked_at IS NOT NULL")),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    blocked_at: Mapped[datetime | None]
    created_at: Mapped[datetime]


class Merchant(Base):
    """A shop of an owner. Two instants make its status: it is banned while `banned_at` is set; else active if
    `activated_at` is set, or inactive. So the end of a ban restores the earlier state.
    """

    __tablename__ = "merchants"
    __table_args__ = (
        CheckConstraint(f"char_length(name) BETWEEN 1 AND {NAME_CHARACTERS}", name="name"),
        CheckConstraint("client_share BETWEEN 0 AND 1", name="client_share"),
        CheckConstraint(f"char_length(callback_url) <= {URL_MAX_CHARACTERS}", name="callback_url"),
        CheckConstraint(f"char_length(success_url) <= {URL_MAX_CHARACTERS}", name="success_url"),
        CheckConstraint(f"char_length(fail_url) <= {URL_MAX_CHARACTERS}", name="fail_url"),
        Index("ix_merchants_words", text("to_tsvector('simple'::regconfig, name)"), postgresql_using="gin"),
        # Most merchants are active: a page of those needs no index.
        Index("ix_merchants_banned", "id", postgresql_where=text("banned_at IS NOT NULL")),
        Index(
            "ix_merchants_inactive",
            "id",
            postgresql_where=text("activated_at IS NULL AND banned_at IS NULL"),
        ),
        Index("ix_merchants_category_code", "category_code", "id"),
        Index("ix_merchants_created_at", "created_at"),
        CheckConstraint("colour ~ '^#[0-9a-f]{6}$'", name="colour"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    owner_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("owners.id"), index=True)
    name: Mapped[str]
    activated_at: Mapped[datetime | None]
    banned_at: Mapped[datetime | None]
    # No foreign key: payment-methods answers MERCHANT_CATEGORY_NOT_FOUND for a category that is gone
    # (docs/api.md#error-MERCHANT_CATEGORY_NOT_FOUND).
    category_code: Mapped[str | None]
    client_share: Mapped[Decimal] = mapped_column(FRACTION)
    callback_url: Mapped[str | None]
    success_url: Mapped[str | None]
    fail_url: Mapped[str | None]
    allowed_currencies: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=NO_CODES)  # empty: all
    allowed_methods: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=NO_CODES)
    colour: Mapped[str | None]
    logo: Mapped[str | None] = mapped_column(ForeignKey("logos.digest"))
    frame_origins: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=NO_CODES)  # empty: none
    created_at: Mapped[datetime]


class Logo(Base):
    """A picture, named by its content. A replaced one stays: pages that are already open still show it."""

    __tablename__ = "logos"
    __table_args__ = (
        CheckConstraint("digest = encode(sha256(content), 'hex')", name="digest"),
        CheckConstraint("content_type IN ('image/jpeg', 'image/png', 'image/webp')", name="content_type"),
        CheckConstraint("octet_length(content) BETWEEN 1 AND 32768", name="content"),
        Index("ix_logos_kept_for", "kept_for", "created_at", postgresql_where=text("kept_for IS NOT NULL")),
    )

    digest: Mapped[str] = mapped_column(primary_key=True)
    content_type: Mapped[str]
    content: Mapped[bytes]
    created_at: Mapped[datetime]
    # The merchant whose member chose it first. NULL: an operator did.
    kept_for: Mapped[uuid.UUID | None]


class Category(Base):
    """A line of business and its commission, a fraction."""

    __tablename__ = "categories"
    __table_args__ = (
        CheckConstraint(f"code ~ '^{CATEGORY_CODE}$'", name="code"),
        CheckConstraint("commission BETWEEN 0 AND 1", name="commission"),
    )

    code: Mapped[str] = mapped_column(primary_key=True)
    commission: Mapped[Decimal] = mapped_column(FRACTION)
    updated_at: Mapped[datetime]


class ApiKey(Base):
    """One key of a merchant: a keyed hash of the key, and its encrypted signing secret (credentials.py)."""

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint("octet_length(key_hash) = 32", name="key_hash"),
        CheckConstraint(f"char_length(name) <= {KEY_NAME_CHARACTERS}", name="name"),
        Index("ix_api_keys_merchant_id", "merchant_id", "id"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    merchant_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("merchants.id"))
    name: Mapped[str]
    hint: Mapped[str]
    key_hash: Mapped[bytes] = mapped_column(unique=True)
    sealed_secret: Mapped[bytes]
    created_at: Mapped[datetime]
    deactivated_at: Mapped[datetime | None]
    replaced_by: Mapped[uuid.UUID | None]
    last_used_at: Mapped[datetime | None]


class LookupKey(Base):
    """The one key under which all API keys are hashed, encrypted. Made with the first API key and never changed."""

    __tablename__ = "lookup_key"
    __table_args__ = (CheckConstraint("id = 1", name="only_one"),)

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    sealed: Mapped[bytes]
    created_at: Mapped[datetime]
