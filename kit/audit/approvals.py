"""Requests for a second person: one actor requests a change, another one approves or rejects it.

A request is written in the caller's transaction, which changes nothing else. The approval does the change in the
transaction that marks the request approved. The database refuses an approval by the requester
(`ck_approvals_other_person`), a change of what was requested and the removal of a request: kit.db.migrations.approvals.

A request is believed only with the act that its call wrote with it (`requested_by_calls`): a row that was inserted by
SQL has none.

Locks are taken in one order everywhere: first the object of the request, then the request.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Column, DateTime, MetaData, Table, Text, Uuid, select, text, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.decisions import acts_on
from kit.base import actors
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.base.seals import canonical
from kit.db.database import refusing
from kit.db.rows import Rows

_DECISION: Final = ("state", "decided_by", "decided_person", "decided_as", "decided_at", "decision_note")
RIGHTS: Final = f"SELECT, INSERT, UPDATE ({', '.join(_DECISION)})"
"""The rights of a service's role on the table."""

_INSERT_ATTEMPTS: Final = 3

WAS: Final = "was"
"""The value in `request` that the object had at the request: shown, but a later request may have another one."""
NO_CALL: Final = "No call made this request: it was written into the database. Reject it"
"""Stands for the sentence of a request that is not believed."""

_TEXTS: Final = (
    *("act", "object", "summary", "requested_by", "requested_as", "note"),
    *("state", "decided_by", "decided_as", "decision_note"),
)
_approvals = Table(
    "approvals",
    MetaData(),
    *(Column(name, Uuid) for name in ("id", "merchant_id", "requested_person", "decided_person")),
    *(Column(name, DateTime(timezone=True)) for name in ("requested_at", "decided_at")),
    *(Column(name, Text) for name in _TEXTS),
    Column("request", JSONB),
)
ROW = _approvals.c


class State(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


TERMS_SHA256: Final = "terms_sha256"
DECISION_SHA256: Final = "decision_sha256"
REQUESTED: Final = "approval.request"
_DECIDING: Final = {State.APPROVED: "approval.approve", State.REJECTED: "approval.reject"}
ACTS: Final = (REQUESTED, *_DECIDING.values())
"""The acts on requests. They belong to operators: members of the merchant see the act of an approved change."""


class NotFound(Exception):
    """There is no such request."""


class AlreadyDecided(Exception):
    """The request is approved or rejected already, as its decision says."""

    def __init__(self, decided: "Approval") -> None:
        super().__init__(decided.state)
        self.decided = decided


class SameAuthor(Exception):
    """The requester can't approve, nor can a command line without a name what a person requested."""


class NoPerson(Exception):
    """A program can neither request nor approve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A change that needs a second person.

    All of it is computed from `request`, when it is made and again when it is shown or approved.

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
        same = self.act == terms.act and self.object == terms.object
        return same and _wanted(self.request) == _wanted(terms.request)

    def has(self, terms: Terms) -> bool:
        """Returns whether these are the terms, with sentence and merchant."""
        return self.asks_for(terms) and (self.summary, self.merchant_id) == (terms.summary, terms.merchant_id)


@dataclass(frozen=True, slots=True)
class Approved:
    """A request that is approved and done.

    link  that of the invitation which the change made, for the checker to pass on; empty for any other change, and for
          an approval that is repeated
    """

    approval: Approval
    link: str = ""


APPROVALS: Final = Rows(Approval, _approvals)


def _wanted(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != WAS}


def identity(actor: Actor) -> str:
    """Returns the text by which two actors are one: the e-mail address of a person, also when the command line named
    the person with --as; `cli:USER@HOST` for a command without a name.
    """
    email = actor.name if actor.kind == "person" else actor.on_behalf_of
    return email.strip().casefold() if email else str(actor)


def _person_in_charge() -> Actor:
    """Returns the current actor. Raises NoPerson for a program."""
    actor = actors.current()
    if actor.kind not in ("person", "cli"):
        raise NoPerson(str(actor))
    return actor


# -- the requester


def request(tx: Session, terms: Terms, *, at: datetime, note: str = "") -> Approval:
    """Returns the pending request of the object: the one made here, or the earlier one, whose terms may differ.

    The caller has locked the object, changes nothing, and refuses the call after the commit. Raises NoPerson.
    """
    actor = _person_in_charge()
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
    once = new.on_conflict_do_nothing(index_elements=[ROW.object], index_where=text("state = 'pending'"))
    for _ in range(_INSERT_ATTEMPTS):  # the pending one may be decided between the two statements
        if made := APPROVALS.one_or_none(tx.execute(once.returning(*APPROVALS.columns))):
            _record(tx, REQUESTED, made, note, **{TERMS_SHA256: _terms_sha256(made)})
            return made
        if pending := pending_of(tx, terms.object):
            return pending
    raise LookupError(f"{terms.object} has a pending request that can't be read")


def pending_of(tx: Session, object: str) -> Approval | None:
    """Returns the pending request of the object."""
    wanted = select(*APPROVALS.columns).where(ROW.object == object, ROW.state == State.PENDING)
    return APPROVALS.one_or_none(tx.execute(wanted))


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
        return Approved(_repeated(tx, asked, actor, State.APPROVED))
    if not is_another(actor, asked):
        raise SameAuthor(asked.requested_as)
    link = change(asked)
    tx.flush()
    return Approved(_decide(tx, approval_id, _decision(actor, State.APPROVED, at=at, note=note)), link or "")


def is_another(actor: Actor, asked: Approval) -> bool:
    """Returns whether the actor is another person than the requester, as far as can be known."""
    same_person = actor.person_id is not None and actor.person_id == asked.requested_person
    # A command line without a name could be the requester's own.
    unnamed = actor.kind == "cli" and not actor.on_behalf_of and asked.requested_by_person
    return not (same_person or unnamed or identity(actor) == asked.requested_by)


def reject(tx: Session, approval_id: UUID, *, at: datetime, note: str) -> Approval:
    """Marks the request rejected; the requester withdraws it so. Raises NotFound, AlreadyDecided."""
    actor = actors.current()
    asked = get(tx, approval_id)
    if asked.state is not State.PENDING:
        return _repeated(tx, asked, actor, State.REJECTED)
    return _decide(tx, approval_id, _decision(actor, State.REJECTED, at=at, note=note))


def _decide(tx: Session, approval_id: UUID, decision: Mapping[str, Any]) -> Approval:
    pending = (ROW.id == approval_id, ROW.state == State.PENDING)
    decided = update(_approvals).where(*pending).values(decision).returning(*APPROVALS.columns)
    with refusing({"ck_approvals_other_person": lambda: SameAuthor(decision["decided_by"])}):
        made = APPROVALS.one_or_none(tx.execute(decided))
    if made is None:
        raise AlreadyDecided(get(tx, approval_id))
    believed = made if requested_by_calls(tx, [made]) else replace(made, summary=NO_CALL)
    _record(
        tx, _DECIDING[made.state], believed, made.decision_note, **{DECISION_SHA256: decision_sha256(made)}
    )
    return made


def _record(tx: Session, act: str, approval: Approval, note: str, **more: str) -> None:
    now = {"approval": approval.id, "state": approval.state, "summary": approval.summary, **more}
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


def _repeated(tx: Session, decided: Approval, actor: Actor, state: State) -> Approval:
    """Returns a decision that the same actor repeats, because the answer was lost for example. One that SQL wrote has
    no act, and was never done.
    """
    is_own = decided.state is state and decided.decided_by == identity(actor)
    if is_own and decided_by_calls(tx, [decided]).get(decided.id) == (state, decision_sha256(decided)):
        return decided
    raise AlreadyDecided(decided)


# -- the proof of a request


def requested_by_calls(tx: Session, asked: Sequence[Approval]) -> Set[UUID]:
    """Returns the ids of those whose call wrote an act with them, in which a hash of the terms stands."""
    hashes = {_terms_sha256(each): each.id for each in asked}
    found = acts_on(tx, {each.object for each in asked}, (REQUESTED,))
    return {
        hashes[now]
        for act in found
        for field, _, now in act["changes"]
        if field == TERMS_SHA256 and now in hashes
    }


def decided_by_calls(tx: Session, asked: Sequence[Approval]) -> dict[UUID, tuple[State, str]]:
    """Returns the decision about each of them that an act records, and its hash (`decision_sha256`)."""
    states = {act: state for state, act in _DECIDING.items()}
    ids = {str(each.id): each.id for each in asked}
    found = {}
    for act in acts_on(tx, {each.object for each in asked}, states):
        now = {field: now for field, _, now in act["changes"]}
        if (id := ids.get(now.get("approval", ""))) is not None:
            found[id] = (states[act["act"]], now.get(DECISION_SHA256, ""))
    return found


def is_approved(tx: Session, approval_id: UUID, *, act: str) -> bool:
    """Returns whether another person approved this request of the act; the decision has its act."""
    asked = APPROVALS.one_or_none(tx.execute(select(*APPROVALS.columns).where(ROW.id == approval_id)))
    if asked is None or (asked.act, asked.state) != (act, State.APPROVED):
        return False
    return decided_by_calls(tx, [asked]).get(asked.id) == (State.APPROVED, decision_sha256(asked))


def _terms_sha256(asked: Approval) -> str:
    """Returns a hash of the request without its decision."""
    return _sha256_of(asked, [each.name for each in _approvals.columns if each.name not in _DECISION])


def decision_sha256(asked: Approval) -> str:
    """Returns a hash of the decision: who made it, when, and with which note."""
    return _sha256_of(asked, _DECISION)


def _sha256_of(asked: Approval, names: Sequence[str]) -> str:
    return hashlib.sha256(canonical([getattr(asked, name) for name in names])).hexdigest()


# -- lists


def get(tx: Session, approval_id: UUID) -> Approval:
    """Returns the request as it is committed, or changed here. Raises NotFound."""
    found = APPROVALS.one_or_none(tx.execute(select(*APPROVALS.columns).where(ROW.id == approval_id)))
    if found is None:
        raise NotFound
    return found
