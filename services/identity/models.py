"""The tables of the identity service, nothing else."""

import uuid
from datetime import datetime
from decimal import Decimal

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    LargeBinary,
    Numeric,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from kit.base.actors import MEMBER_ROLES, STAFF_ROLES
from kit.base.emails import EMAIL_CHARACTERS
from kit.db import database as db
from kit.egress.address import URL_MAX_CHARACTERS
from services.identity.domain.merchants import CATEGORY_CODE, KEY_NAME_CHARACTERS
from services.identity.domain.people import (
    NAME_CHARACTERS,
    PASSKEY_NAME_CHARACTERS,
    USER_AGENT_CHARACTERS,
)

FRACTION = Numeric(7, 6)  # 0..1 with at most six decimals
EMPTY = text("'{}'")


def _of(roles: tuple[str, ...]) -> str:
    return f"ARRAY[{', '.join(repr(role) for role in roles)}]"


def _email(column: str) -> str:
    # Lower case of ASCII letters only: for other alphabets the database and Python may differ.
    return f'{column} = lower({column} COLLATE "C") AND char_length({column}) <= {EMAIL_CHARACTERS}'


class Base(DeclarativeBase):
    metadata = db.metadata()
    type_annotation_map = db.TYPES


class Person(Base):
    """A person, known by an e-mail address in lower case. `roles` are those of the staff."""

    __tablename__ = "people"
    __table_args__ = (
        CheckConstraint(_email("email"), name="email"),
        CheckConstraint(f"char_length(name) BETWEEN 1 AND {NAME_CHARACTERS}", name="name"),
        CheckConstraint(f"roles <@ {_of(STAFF_ROLES)}", name="roles"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    roles: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=EMPTY)
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    last_seen_at: Mapped[datetime | None]
    password_hash: Mapped[str | None]
    password_set_at: Mapped[datetime | None]
    password_seal: Mapped[bytes | None]


class Membership(Base):
    """The roles of a person at a merchant. Without a role there is no row."""

    __tablename__ = "memberships"
    __table_args__ = (
        CheckConstraint(f"roles <@ {_of(MEMBER_ROLES)} AND cardinality(roles) > 0", name="roles"),
        Index("ix_memberships_merchant_id", "merchant_id"),
    )

    person_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("people.id"), primary_key=True)
    merchant_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    roles: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[datetime]


class Invitation(Base):
    """A link for one use: for the staff, or for one merchant. It ends by its use, its withdrawal or its age."""

    __tablename__ = "invitations"
    __table_args__ = (
        CheckConstraint("octet_length(token_hash) = 32", name="token_hash"),
        CheckConstraint(_email("email"), name="email"),
        CheckConstraint(f"char_length(name) BETWEEN 1 AND {NAME_CHARACTERS}", name="name"),
        CheckConstraint(
            f"CASE WHEN merchant_id IS NULL THEN roles <@ {_of(STAFF_ROLES)} AND cardinality(roles) > 0"
            f" AND cardinality(member_roles) = 0 ELSE member_roles <@ {_of(MEMBER_ROLES)}"
            " AND cardinality(member_roles) > 0 AND cardinality(roles) = 0 END",
            name="roles",
        ),
        CheckConstraint("used_at IS NULL OR withdrawn_at IS NULL", name="one_end"),
        Index("ix_invitations_merchant_id", "merchant_id"),
        Index("ix_invitations_expires_at", "expires_at"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    email: Mapped[str]
    name: Mapped[str]
    roles: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=EMPTY)
    merchant_id: Mapped[uuid.UUID | None]
    member_roles: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=EMPTY)
    invited_by: Mapped[str]
    # Whether an operator made it: one of a merchant's member reaches no account that has other roles too.
    by_operator: Mapped[bool]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    withdrawn_at: Mapped[datetime | None]


class Passkey(Base):
    """A WebAuthn credential for one host name. `cloned_at` is set once its counter went back."""

    __tablename__ = "passkeys"
    __table_args__ = (
        CheckConstraint(f"char_length(name) BETWEEN 1 AND {PASSKEY_NAME_CHARACTERS}", name="name"),
        CheckConstraint("octet_length(credential_id) BETWEEN 1 AND 1023", name="credential_id"),
        Index("ix_passkeys_person_id", "person_id"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    person_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("people.id"))
    rp_id: Mapped[str]
    credential_id: Mapped[bytes] = mapped_column(unique=True)
    credential: Mapped[bytes]  # AttestedCredentialData: the credential's id and public key
    sign_count: Mapped[int] = mapped_column(BigInteger)
    name: Mapped[str]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    cloned_at: Mapped[datetime | None]
    seal: Mapped[bytes]


class Totp(Base):
    """The TOTP secret of a person, encrypted, and a new one that no code has confirmed yet.

    `last_step` is the newest time step that was used: neither it nor an earlier one counts again.
    """

    __tablename__ = "totps"
    __table_args__ = (CheckConstraint("last_step BETWEEN 0 AND 1100000000", name="last_step"),)

    person_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("people.id"), primary_key=True)
    sealed_secret: Mapped[bytes | None]
    last_step: Mapped[int] = mapped_column(BigInteger)
    confirmed_at: Mapped[datetime | None]
    sealed_new_secret: Mapped[bytes | None]
    started_at: Mapped[datetime | None]


class RecoveryCode(Base):
    """A code for one use, hashed: it has 120 random bits."""

    __tablename__ = "recovery_codes"
    __table_args__ = (CheckConstraint("octet_length(code_hash) = 32", name="code_hash"),)

    person_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("people.id"), primary_key=True)
    code_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    seal: Mapped[bytes]


class Challenge(Base):
    """A challenge that a passkey has answered, kept until it expires: it counts once."""

    __tablename__ = "challenges"
    __table_args__ = (
        CheckConstraint("kind IN ('sign_in', 'step_up', 'register')", name="kind"),
        Index("ix_challenges_expires_at", "expires_at"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    surface: Mapped[str]
    session_id: Mapped[uuid.UUID | None]
    challenge: Mapped[bytes]
    expires_at: Mapped[datetime]


class Session(Base):
    """A browser that is signed in. Only the SHA-256 of its token is kept; a step-up gives it a new token."""

    __tablename__ = "sessions"
    __table_args__ = (
        CheckConstraint("octet_length(token_hash) = 32", name="token_hash"),
        CheckConstraint("surface IN ('desk', 'dashboard')", name="surface"),
        CheckConstraint("way IN ('passkey', 'password', 'recovery_code', 'invitation')", name="way"),
        CheckConstraint(f"char_length(user_agent) <= {USER_AGENT_CHARACTERS}", name="user_agent"),
        Index("ix_sessions_person_id", "person_id", "id"),
        Index("ix_sessions_last_seen_at", "last_seen_at"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    person_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("people.id"))
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    surface: Mapped[str]
    way: Mapped[str]
    address: Mapped[str]
    user_agent: Mapped[str]
    started_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    stepped_up_at: Mapped[datetime | None]
    merchant_id: Mapped[uuid.UUID | None]
    ended_at: Mapped[datetime | None]
    seal: Mapped[bytes]


class Guess(Base):
    """Failures by person or by network on a surface, and the time until which further guesses are not checked.
    `last_at` is `since` of domain.Failures.
    """

    __tablename__ = "guesses"
    __table_args__ = (
        CheckConstraint("kind IN ('network', 'person', 'step_up')", name="kind"),
        CheckConstraint("failures >= 0", name="failures"),
        Index("ix_guesses_last_at", "last_at"),
    )

    kind: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    failures: Mapped[int]
    last_at: Mapped[datetime]
    delayed_until: Mapped[datetime]


class SigningKey(Base):
    """An Ed25519 key of actor tokens, the private part encrypted. The newest that all services know signs."""

    __tablename__ = "signing_keys"
    __table_args__ = (CheckConstraint("octet_length(public_key) = 32", name="public_key"),)

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    public_key: Mapped[bytes]
    sealed_private_key: Mapped[bytes]
    created_at: Mapped[datetime]
    replaced_at: Mapped[datetime | None]
    seal: Mapped[bytes]


class Mail(Base):
    """An e-mail with the link of an invitation, encrypted, that is still to be sent. Sent or expired, it goes."""

    __tablename__ = "mails"
    __table_args__ = (Index("ix_mails_due_at", "due_at"),)

    invitation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("invitations.id"), primary_key=True)
    sealed_link: Mapped[bytes]
    attempts: Mapped[int]
    due_at: Mapped[datetime]
    last_error: Mapped[str]


class Owner(Base):
    """A person or company, known by an e-mail address in lower case; blocked while `blocked_at` is set."""

    __tablename__ = "owners"
    __table_args__ = (
        CheckConstraint(_email("email"), name="email"),
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
        CheckConstraint("late_money IN ('credit', 'return', 'ask_credit', 'ask_return')", name="late_money"),
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
    allowed_currencies: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=EMPTY)  # empty: all
    allowed_methods: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=EMPTY)
    colour: Mapped[str | None]
    logo: Mapped[str | None] = mapped_column(ForeignKey("logos.digest"))
    frame_origins: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=EMPTY)  # empty: none
    late_money: Mapped[str] = mapped_column(server_default="ask_credit")
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
    """A line of business with its commission, a fraction, and its rule of refunds."""

    __tablename__ = "categories"
    __table_args__ = (
        CheckConstraint(f"code ~ '^{CATEGORY_CODE}$'", name="code"),
        CheckConstraint("commission BETWEEN 0 AND 1", name="commission"),
    )

    code: Mapped[str] = mapped_column(primary_key=True)
    commission: Mapped[Decimal] = mapped_column(FRACTION)
    refunds_return_commission: Mapped[bool] = mapped_column(server_default=text("false"))
    updated_at: Mapped[datetime]


class ApiKey(Base):
    """One key of a merchant: a keyed hash of the key, and its encrypted signing secret (credentials/api_keys.py)."""

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
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=EMPTY)  # empty: all
    # A code over merchant and scopes. SQL wrote a row without one.
    seal: Mapped[bytes | None]


class LookupKey(Base):
    """The one key under which all API keys are hashed, encrypted. Made with the first API key and never changed."""

    __tablename__ = "lookup_key"
    __table_args__ = (CheckConstraint("id = 1", name="only_one"),)

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    sealed: Mapped[bytes]
    created_at: Mapped[datetime]
