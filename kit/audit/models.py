"""The tables of acts. A service's models.py names them: `class Act(ActColumns, Base)`, and so on."""

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

_WORD = Text(collation="C")
"""Compared bytewise, so that an index finds every act whose name begins with `deal.`."""


class ActColumns:
    """An act: its author, the thing that changed and its fields before and after. Append-only."""

    __tablename__ = "acts"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    # The time in the id.
    at: Mapped[datetime]
    actor_kind: Mapped[str]
    actor_name: Mapped[str] = mapped_column(_WORD)
    person_id: Mapped[uuid.UUID | None]
    session_id: Mapped[uuid.UUID | None]
    surface: Mapped[str]
    on_behalf_of: Mapped[str] = mapped_column(_WORD)
    act: Mapped[str] = mapped_column(_WORD)
    object: Mapped[str] = mapped_column(_WORD)
    merchant_id: Mapped[uuid.UUID | None]
    # [[field, before, after], ...], all texts.
    changes: Mapped[list[Any]] = mapped_column(JSONB)
    note: Mapped[str]
    request_id: Mapped[str]
    # Empty: done.
    refused: Mapped[str]
    seal: Mapped[bytes]

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> Any:
        return (
            CheckConstraint("octet_length(seal) = 32", name="seal"),
            Index("ix_acts_actor_name", "actor_name", "id"),
            Index("ix_acts_on_behalf_of", "on_behalf_of", "id", postgresql_where=text("on_behalf_of <> ''")),
            Index("ix_acts_person_id", "person_id", "id", postgresql_where=text("person_id IS NOT NULL")),
            Index("ix_acts_act", "act", "id"),
            Index("ix_acts_object", "object", "id"),
            Index(
                "ix_acts_merchant_id", "merchant_id", "id", postgresql_where=text("merchant_id IS NOT NULL")
            ),
        )


class ActChainColumns:
    """An entry of the chain: the number of an act, and a hash of act, number and the hash before. Append-only."""

    __tablename__ = "act_chain"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    act_id: Mapped[uuid.UUID] = mapped_column(unique=True)
    hash: Mapped[bytes]
    chained_at: Mapped[datetime]

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> Any:
        return (
            CheckConstraint("number > 0", name="number"),
            CheckConstraint("octet_length(hash) = 32", name="hash"),
        )


class ActHeadColumns:
    """The head of another service's chain, at the time of its keeping. Append-only."""

    __tablename__ = "act_heads"

    number: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    service: Mapped[str]
    count: Mapped[int] = mapped_column(BigInteger)
    hash: Mapped[bytes]
    at: Mapped[datetime]
    seal: Mapped[bytes]

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> Any:
        return (
            CheckConstraint("count >= 0", name="count"),
            CheckConstraint("octet_length(hash) = 32", name="hash"),
            CheckConstraint("octet_length(seal) = 32", name="seal"),
            Index("ix_act_heads_service", "service", "number"),
        )
