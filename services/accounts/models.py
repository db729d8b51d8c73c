"""The tables of the accounts service, nothing else."""

import uuid
from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from kit.base.actors import MEMBER_ROLES, STAFF_ROLES
from kit.base.emails import EMAIL_CHARACTERS
from kit.db import database as db
from services.accounts.domain import (
    NAME_CHARACTERS,
    PASSKEY_NAME_CHARACTERS,
    USER_AGENT_CHARACTERS,
)

NO_ROLES = text("'{}'")


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
    roles: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=NO_ROLES)
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
    roles: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=NO_ROLES)
    merchant_id: Mapped[uuid.UUID | None]
    member_roles: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=NO_ROLES)
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
