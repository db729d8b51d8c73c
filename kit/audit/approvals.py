"""Requests for a second pair of eyes: one actor requests a change, another one approves or rejects it.

A request is written in the caller's transaction, which changes nothing else. The approval does the change in the
transaction that marks the request approved. The database refuses an approval by the requester
(`ck_approvals_other_person`), a change of what was requested and the removal of a request: kit.db.migrations.approvals.

Locks are taken in one order everywhere: first the object of the request, then the request.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Column, Connection, DateTime, MetaData, Table, Text, Uuid, func, select, text, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import Session

from kit.audit import acts
from kit.base import actors
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.db.database import refusing
from kit.db.finding import COMPLETED_MOST
from kit.db.rows import Rows
from kit.db.schema import NewTable, SchemaBehind

RIGHTS: Final = (
    "SELECT, INSERT, UPDATE (state, decided_by, decided_person, decided_as, decided_at, decision_note)"
)
"""The rights of a service's role on the table."""

TABLE: Final = NewTable("approvals")
_INSERT_ATTEMPTS: Final = 3

_approvals = Table(
    "approvals",
    MetaData(),
    Column("id", Uuid, primary_key=True),
    Column("act", Text),
    Column("object", Text),
    Column("merchant_id", Uuid),
    Column("summary", Text),
    Column("request", JSONB),
    Column("requested_by", Text),
    Column("requested_person", Uuid),
    Column("requested_as", Text),
    Column("requested_at", DateTime(timezone=True)),
    Column("note", Text),
    Column("state", Text),
    Column("decided_by", Text),
    Column("decided_person", Uuid),
    Column("decided_as", Text),
    Column("decided_at", DateTime(timezone=True)),
    Column("decision_note", Text),
)
_row = _approvals.c


class State(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


_DECIDING: Final = {State.APPROVED: "approval.approve", State.REJECTED: "approval.reject"}


class NotFound(Exception):
    """There is no such request."""


class AlreadyDecided(Exception):
    """Another actor has approved or rejected the request."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.state = state


class SameAuthor(Exception):
    """The requester can't approve, nor can a command line without a name what a person requested."""


class NoPerson(Exception):
    """A program can neither request nor approve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A change that needs a second pair of eyes.

    act          its name, as in the acts: withdrawal.process
    object       the object of the change; it has one pending request at most: withdrawal:0197…
    request      the values from which the approval does the change, and those that must not have changed by then (JSON)
    summary      one sentence: exactly what the approval will do
    merchant_id  the merchant that the change concerns, if any
    """

    act: str
    object: str
    request: Mapping[str, Any]
    summary: str
    merchant_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """A request and its decision.

    requested_by, decided_by  the identities that must differ (see `identity`)
    requested_as, decided_as  the actors as people read them
    """

    id: UUID
    act: str
    object: str
    merchant_id: UUID | None
    summary: str
    request: dict[str, Any]
    requested_by: str
    requested_person: UUID | None
    requested_as: str
    requested_at: datetime
    note: str
    state: State
    decided_by: str | None
    decided_person: UUID | None
    decided_as: str | None
    decided_at: datetime | None
    decision_note: str

    @property
    def requested_by_person(self) -> bool:
        """Whether the requester is known as a person, signed in or named with --as."""
        return not self.requested_by.startswith("cli:")

    def asks_for(self, terms: Terms) -> bool:
        """Returns whether this is a request of the same change."""
        return self.act == terms.act and self.object == terms.object and self.request == dict(terms.request)


@dataclass(frozen=True, slots=True)
class Approved:
    """A request that is approved and done.

    link  that of the invitation which the change made, for the checker to pass on; empty for any other change, and for
          an approval that is repeated
    """

    approval: Approval
    link: str = ""


_APPROVALS: Final = Rows(Approval, _approvals)


def identity(actor: Actor) -> str:
    """Returns the text by which two actors are one: the e-mail address of a person, also when the command line named
    the person with --as; `cli:USER@HOST` for a command without a name.
    """
    if actor.kind == "person":
        return _address(actor.name)
    return _address(actor.on_behalf_of) if actor.on_behalf_of else str(actor)


def _address(email: str) -> str:
    return email.strip().casefold()


def _person_in_charge() -> Actor:
    """Returns the current actor. Raises NoPerson for a program."""
    actor = actors.current()
    if actor.kind not in ("person", "cli"):
        raise NoPerson(str(actor))
    return actor


# -- the requester


def request(tx: Session, terms: Terms, *, at: datetime, note: str = "") -> Approval:
    """Returns the pending request of the object: the one made here, or the earlier one, whose terms may differ.

    The caller has locked the object, changes nothing, and refuses the call after the commit. Raises NoPerson, and
    SchemaBehind while `migrate` has not made the table yet: without it nothing that needs a second person goes on.
    """
    actor = _person_in_charge()
    require_table(tx)
    values = {
        "id": new_id(),
        "act": terms.act,
        "object": terms.object,
        "merchant_id": terms.merchant_id,
        "summary": terms.summary,
        "request": dict(terms.request),
        "requested_by": identity(actor),
        "requested_person": actor.person_id,
        "requested_as": str(actor),
        "requested_at": at,
        "note": note,
        "state": State.PENDING,
    }
    new = insert(_approvals).values(values)
    once = new.on_conflict_do_nothing(index_elements=[_row.object], index_where=text("state = 'pending'"))
    for _ in range(_INSERT_ATTEMPTS):  # the pending one may be decided between the two statements
        if made := _APPROVALS.one_or_none(tx.execute(once.returning(*_APPROVALS.columns))):
            _record(tx, "approval.request", made, note)
            return made
        if pending := pending_of(tx, terms.object):
            return pending
    raise LookupError(f"{terms.object} has a pending request that can't be read")


def pending_of(tx: Session, object: str) -> Approval | None:
    """Returns the pending request of the object."""
    if not TABLE.is_usable(tx):
        return None
    wanted = select(*_APPROVALS.columns).where(_row.object == object, _row.state == State.PENDING)
    return _APPROVALS.one_or_none(tx.execute(wanted))


def close(tx: Session, object: str, *, at: datetime, note: str, act: str = "") -> None:
    """Rejects the pending request of an object that has changed so that the request makes no sense any more. With `act`
    only a request of that act.
    """
    pending = pending_of(tx, object)
    if pending is not None and act in ("", pending.act):
        decision = _decision(actors.current(), State.REJECTED, at=at, note=note)
        with suppress(AlreadyDecided):
            _decide(tx, pending.id, decision)


# -- the checker


def approve(
    tx: Session, approval_id: UUID, *, at: datetime, note: str, change: Callable[[Approval], str | None]
) -> Approved:
    """Makes the requested change and marks the request approved; of several concurrent checkers one does.

    `change` checks again that the change is possible, raises when it is not, and returns the link that it made, if any.
    An approval that the same actor repeats changes nothing. Raises NotFound, AlreadyDecided, SameAuthor, NoPerson.
    """
    actor = _person_in_charge()
    asked = get(tx, approval_id)
    if asked.state is not State.PENDING:
        return Approved(_repeated(asked, actor, State.APPROVED))
    same_person = actor.person_id is not None and actor.person_id == asked.requested_person
    # A command line without a name could be the requester's own.
    unnamed = actor.kind == "cli" and not actor.on_behalf_of and asked.requested_by_person
    if same_person or unnamed or identity(actor) == asked.requested_by:
        raise SameAuthor(asked.requested_as)
    link = change(asked)
    tx.flush()
    return Approved(_decide(tx, approval_id, _decision(actor, State.APPROVED, at=at, note=note)), link or "")


def reject(tx: Session, approval_id: UUID, *, at: datetime, note: str) -> Approval:
    """Marks the request rejected; the requester withdraws it so. Raises NotFound, AlreadyDecided."""
    actor = actors.current()
    asked = get(tx, approval_id)
    if asked.state is not State.PENDING:
        return _repeated(asked, actor, State.REJECTED)
    return _decide(tx, approval_id, _decision(actor, State.REJECTED, at=at, note=note))


def _decide(tx: Session, approval_id: UUID, decision: Mapping[str, Any]) -> Approval:
    pending = (_row.id == approval_id, _row.state == State.PENDING)
    decided = update(_approvals).where(*pending).values(decision).returning(*_APPROVALS.columns)
    with refusing({"ck_approvals_other_person": lambda: SameAuthor(decision["decided_by"])}):
        made = _APPROVALS.one_or_none(tx.execute(decided))
    if made is None:
        raise AlreadyDecided(get(tx, approval_id).state)
    _record(tx, _DECIDING[made.state], made, made.decision_note)
    return made


def _record(tx: Session, act: str, approval: Approval, note: str) -> None:
    now = {"approval": approval.id, "state": approval.state, "summary": approval.summary}
    acts.record(tx, act, approval.object, merchant_id=approval.merchant_id, after=now, note=note)


def _decision(actor: Actor, state: State, *, at: datetime, note: str) -> dict[str, Any]:
    return {
        "state": state,
        "decided_by": identity(actor),
        "decided_person": actor.person_id,
        "decided_as": str(actor),
        "decided_at": at,
        "decision_note": note,
    }


def _repeated(decided: Approval, actor: Actor, state: State) -> Approval:
    """Returns a decision that the same actor repeats, because the answer was lost for example."""
    if decided.state is state and decided.decided_by == identity(actor):
        return decided
    raise AlreadyDecided(decided.state)


# -- lists


def get(tx: Session, approval_id: UUID) -> Approval:
    """Returns the request as it is committed, or changed here. Raises NotFound."""
    found = None
    if TABLE.is_usable(tx):
        found = _APPROVALS.one_or_none(tx.execute(select(*_APPROVALS.columns).where(_row.id == approval_id)))
    if found is None:
        raise NotFound
    return found


def newest(tx: Session, *, state: State | None, object: str, limit: int) -> Sequence[Approval]:
    """Returns requests, newest first, in any state for None, of any object for ""."""
    if not TABLE.is_usable(tx):
        return []
    wanted = select(*_APPROVALS.columns).order_by(_row.id.desc()).limit(limit)
    if state is not None:
        wanted = wanted.where(_row.state == state)
    if object:
        wanted = wanted.where(_row.object == object)
    return _APPROVALS.all(tx.execute(wanted))


def between(tx: Session, least: UUID, greatest: UUID) -> Sequence[Approval]:
    """Returns the requests with an id from the least to the greatest, the first COMPLETED_MOST of them."""
    if not TABLE.is_usable(tx):
        return []
    wanted = select(*_APPROVALS.columns).where(_row.id.between(least, greatest)).order_by(_row.id)
    return _APPROVALS.all(tx.execute(wanted.limit(COMPLETED_MOST)))


@dataclass(frozen=True, slots=True)
class Waiting:
    """The number of pending requests, and the time of the oldest one."""

    count: int
    oldest: datetime | None


def waiting(connection: Connection) -> Waiting:
    if not TABLE.is_usable(connection):
        return Waiting(0, None)
    pending = select(func.count(), func.min(_row.requested_at)).where(_row.state == State.PENDING)
    return Waiting(*connection.execute(pending).one())


def require_table(tx: Session) -> None:
    """Raises SchemaBehind, an outage, while `migrate` has not made the table and granted the rights on it."""
    if not TABLE.is_usable(tx):
        raise SchemaBehind("the table approvals is missing: run migrate")
