"""fiatgate.approvals.v1.ApprovalsService: requests for a second person, for operators to read and to decide; and
the refusals of the calls that need one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeVar
from uuid import UUID

import grpc
from sqlalchemy.orm import Session

from fiatgate.approvals.v1 import approvals_pb2 as pb
from fiatgate.approvals.v1 import approvals_pb2_grpc
from kit.audit import approval_lists, approvals
from kit.audit.approval_lists import Filter
from kit.audit.approvals import (
    AlreadyDecided,
    Approval,
    Approved,
    NoPerson,
    NotFound,
    SameAuthor,
    State,
    Terms,
)
from kit.base import actors
from kit.base.clock import Clock
from kit.base.ids import BEGINNING_DIGITS, ids_beginning_with
from kit.base.proto import most_of, timestamp_from
from kit.db.database import Database, retry_conflicts
from kit.observe.log import get_logger
from kit.rpc import values
from kit.rpc.errors import Refused, denied, not_found, precondition
from kit.rpc.status import Gauge

# ruff: noqa: N802  methods are named by the proto

NOTE_MAX_CHARACTERS: Final = most_of(pb.ApproveRequest, "note")

_log = get_logger()

_STATES: Final = {
    State.PENDING: pb.APPROVAL_STATE_PENDING,
    State.APPROVED: pb.APPROVAL_STATE_APPROVED,
    State.REJECTED: pb.APPROVAL_STATE_REJECTED,
}
_STATE_FILTERS: Final[Mapping[int, Sequence[State]]] = {pb.APPROVAL_STATE_UNSPECIFIED: ()} | {
    number: (state,) for state, number in _STATES.items()
}
_DECIDED: Final = (State.APPROVED, State.REJECTED)
OBJECT_MAX_CHARACTERS: Final = 200


class Parts(Protocol):
    """The parts of a service that a request needs: those of its `Deps`."""

    @property
    def db(self) -> Database: ...

    @property
    def clock(self) -> Clock: ...


D = TypeVar("D", bound=Parts)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Approvable(Generic[D]):
    """A change that a service lets request.

    change  makes it in the given transaction, all its rules checked again. Raises the refusals of the requested call,
            and `changed_since` when the object is no longer as the checker saw it. Returns a link for the checker to
            pass on, if it made one.
    terms   computes the terms of a request from its values alone, so that its sentence says what `change` does
    role    the role of the staff that may decide about it, beside `admin`: that of the requested call
    before  asks other services, outside of the transaction; raises the refusals of the requested call
    """

    change: Callable[[D, Session, Approval], str | None]
    terms: Callable[[Mapping[str, Any]], Terms]
    role: str
    before: Callable[[D, Approval], None] = lambda parts, asked: None


# -- the call that needs a second person


def request(tx: Session, terms: Terms, parts: Parts, *, note: str = "") -> Approval:
    """Writes the request, unless the object has a pending one; returns the pending one. The operation returns it out of
    its transaction, to `done`. Raises ACTOR_INVALID for a program, and APPROVAL_STATE_CONFLICT when the pending request
    is for another change of the object.
    """
    try:
        pending = approvals.request(tx, terms, at=parts.clock.now(), note=note)
    except NoPerson:
        raise denied("ACTOR_INVALID", "A program can't request a second person") from None
    if not pending.asks_for(terms):
        raise precondition(
            "APPROVAL_STATE_CONFLICT",
            f"Another request waits for this object, {pending.id}: {pending.summary}",
            state=pending.state,
            approval_id=str(pending.id),
        )
    return pending


def done(outcome: T | Approval) -> T:
    """Returns the outcome of an operation. Raises APPROVAL_REQUIRED when it is a request, which is committed by now."""
    if isinstance(outcome, Approval):
        raise required([outcome])
    return outcome


def required(requests: Sequence[Approval]) -> Refused:
    """Returns APPROVAL_REQUIRED for at least one request; `approval_id` has the ids, separated by spaces, and
    `requested_by` the requester when the actor is the other person.
    """
    others = f", and {len(requests) - 1} more" if len(requests) > 1 else ""
    ids, summary = " ".join(str(each.id) for each in requests), f"{requests[0].summary}{others}"
    if all(approvals.is_another(actors.current(), each) for each in requests):
        requester = requests[0].requested_as
        message = f"{requester} requested this, and you can approve it: {summary}"
        return precondition("APPROVAL_REQUIRED", message, approval_id=ids, requested_by=requester)
    return precondition("APPROVAL_REQUIRED", f"Another person must approve this: {summary}", approval_id=ids)


def changed_since() -> Refused:
    """Returns the refusal of an approval whose object is no longer as the checker saw it."""
    message = "What was requested has changed since; reject the request, and make a new one"
    return precondition("APPROVAL_STATE_CONFLICT", message, state=State.PENDING)


# -- the service


class ApprovalsServicer(approvals_pb2_grpc.ApprovalsServiceServicer, Generic[D]):
    def __init__(self, service: str, parts: D, approvable: Mapping[str, Approvable[D]]) -> None:
        self._service = service
        self._parts = parts
        self._approvable = approvable

    def ListApprovals(
        self, request: pb.ListApprovalsRequest, context: grpc.ServicerContext
    ) -> pb.ListApprovalsResponse:
        filter, limit = filter_from_message(request), values.rows(request.limit)
        with self._parts.db.transaction() as tx:
            found = self._believed(tx, approval_lists.page(tx, filter, limit=limit))
        return pb.ListApprovalsResponse(approvals=[self._to_message(each) for each in found])

    def GetApproval(
        self, request: pb.GetApprovalRequest, context: grpc.ServicerContext
    ) -> pb.GetApprovalResponse:
        bounds = ids_beginning_with(request.approval_id)
        if bounds is None:
            raise values.invalid(
                "approval_id", f"Expected a UUID, or {BEGINNING_DIGITS} or more digits of its beginning"
            )
        with self._parts.db.transaction() as tx:
            found = self._believed(tx, approval_lists.between(tx, *bounds))
        if not found:
            raise _not_found()
        if len(found) > 1:
            ids = ", ".join(str(each.id) for each in found)
            raise values.invalid("approval_id", f"Several requests begin like this, give more of it: {ids}")
        return pb.GetApprovalResponse(approval=self._to_message(found[0]))

    def Approve(self, request: pb.ApproveRequest, context: grpc.ServicerContext) -> pb.ApproveResponse:
        approval_id, note = values.uuid("approval_id", request.approval_id), _note(request.note)
        self._require_role(approval_id)
        try:
            self._ask_others(approval_id)
            approved = self._decided(lambda tx: self._approve(tx, approval_id, note))
        except Refused:
            self._require_pending(approval_id)  # another checker may have been faster
            raise
        _log_decision(approved.approval)
        return pb.ApproveResponse(approval=self._to_message(approved.approval), link=approved.link)

    def Reject(self, request: pb.RejectRequest, context: grpc.ServicerContext) -> pb.RejectResponse:
        approval_id, note = values.uuid("approval_id", request.approval_id), _note(request.note)
        self._require_role(approval_id)
        at = self._parts.clock.now()
        rejected = self._decided(lambda tx: approvals.reject(tx, approval_id, at=at, note=note))
        _log_decision(rejected)
        return pb.RejectResponse(approval=self._to_message(rejected))

    def _require_role(self, approval_id: UUID) -> None:
        """Raises NOT_PERMITTED for a person without the role that the requested call needs, APPROVAL_NOT_FOUND."""
        actor = actors.current()
        if actor.kind != "person":
            return
        known = self._approvable.get(self._get(approval_id).act)
        needed = {"admin", known.role} if known else {"admin"}
        if actor.roles.isdisjoint(needed):
            raise denied("NOT_PERMITTED", "Your roles do not allow this", needed=", ".join(sorted(needed)))

    def _ask_others(self, approval_id: UUID) -> None:
        asked = self._get(approval_id)
        if asked.act in self._approvable:
            self._approvable[asked.act].before(self._parts, asked)

    def _approve(self, tx: Session, approval_id: UUID, note: str) -> Approved:
        def change(asked: Approval) -> str | None:
            if not (approvals.requested_by_calls(tx, [asked]) and self._follows(asked)):
                raise precondition("APPROVAL_STATE_CONFLICT", approvals.NO_CALL, state=asked.state)
            return self._approvable[asked.act].change(self._parts, tx, asked)

        return approvals.approve(tx, approval_id, at=self._parts.clock.now(), note=note, change=change)

    @retry_conflicts
    def _decided(self, decide: Callable[[Session], T]) -> T:
        """Returns the committed decision. Raises APPROVAL_NOT_FOUND, APPROVAL_STATE_CONFLICT, OTHER_PERSON_REQUIRED,
        ACTOR_INVALID.
        """
        with _refusing(), self._parts.db.transaction() as tx:
            return decide(tx)

    def _require_pending(self, approval_id: UUID) -> None:
        """Raises APPROVAL_STATE_CONFLICT when the request is decided."""
        now = self._get(approval_id)
        if now.state is not State.PENDING:
            raise _decided_before(now)

    def _get(self, approval_id: UUID) -> Approval:
        """Returns the request. Raises APPROVAL_NOT_FOUND."""
        with _refusing(), self._parts.db.transaction() as tx:
            return approvals.get(tx, approval_id)

    def _believed(self, tx: Session, asked: Sequence[Approval]) -> list[Approval]:
        """Returns the requests; those that no call made, with a sentence that says so in place of their own.

        The service's role may insert rows, and the checker decides by the sentence. So it must follow from the values,
        as object and merchant must, and the request must have its act.
        """
        requested = approvals.requested_by_calls(tx, asked)
        return [
            each if each.id in requested and self._follows(each) else replace(each, summary=approvals.NO_CALL)
            for each in asked
        ]

    def _follows(self, asked: Approval) -> bool:
        try:
            return asked.has(self._approvable[asked.act].terms(asked.request))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return False  # values that no call writes

    def _to_message(self, approval: Approval) -> pb.Approval:
        return pb.Approval(
            approval_id=str(approval.id),
            state=_STATES[approval.state],
            act=approval.act,
            object=approval.object,
            merchant_id=str(approval.merchant_id or ""),
            summary=approval.summary,
            requested_by=approval.requested_as,
            requested_at=timestamp_from(approval.requested_at),
            note=approval.note,
            decided_by=approval.decided_as,
            decided_at=timestamp_from(approval.decided_at),
            decision_note=approval.decision_note,
            service=self._service,
            role=self._role(approval),
            is_of_another=approvals.is_another(actors.current(), approval),
        )

    def _role(self, approval: Approval) -> str:
        known = self._approvable.get(approval.act)
        return known.role if known else ""


def filter_from_message(request: pb.ListApprovalsRequest) -> Filter:
    """Returns the filter of a request. Raises VALIDATION_ERROR."""
    if request.state not in _STATE_FILTERS:
        raise values.invalid("state", "Expected pending, approved or rejected")
    after, merchant = request.after_approval_id, request.merchant_id
    if merchant and request.state != pb.APPROVAL_STATE_PENDING:
        raise values.invalid("merchant_id", "Only requests that are pending are found by their merchant")
    return Filter(
        states=_STATE_FILTERS[request.state] or (_DECIDED if request.decided else ()),
        object=values.text("object", request.object, least=0, most=OBJECT_MAX_CHARACTERS),
        merchant_id=values.uuid("merchant_id", merchant) if merchant else None,
        after=values.uuid("after_approval_id", after) if after else None,
        oldest_first=request.oldest_first,
    )


@contextmanager
def _refusing() -> Iterator[None]:
    """Raises the reason of each refusal of kit.audit.approvals in its place."""
    try:
        yield
    except NotFound:
        raise _not_found() from None
    except AlreadyDecided as decided:
        raise _decided_before(decided.decided) from None
    except SameAuthor:
        message = (
            "The requester can't approve the request, and a command must name the other person with --as"
        )
        raise denied("OTHER_PERSON_REQUIRED", message) from None
    except NoPerson:
        raise denied("ACTOR_INVALID", "A program can't approve a request") from None


def _log_decision(decided: Approval) -> None:
    _log.info("approval_decided", approval_id=str(decided.id), act=decided.act, state=decided.state)


def _note(text: str) -> str:
    return values.text("note", text, least=0, most=NOTE_MAX_CHARACTERS)


def _not_found() -> Refused:
    return not_found("APPROVAL_NOT_FOUND", "No such request")


def _decided_before(decided: Approval) -> Refused:
    """Returns the refusal of a second decision, with the author and the time of the first one."""
    by, at = decided.decided_as or "", decided.decided_at
    message = f"The request is {decided.state} already, by {by}"
    metadata = {"state": decided.state, "decided_by": by, "decided_at": at.isoformat() if at else ""}
    return precondition("APPROVAL_STATE_CONFLICT", message, **metadata)


def gauges(parts: Parts) -> Sequence[Gauge]:
    """Returns the numbers of requests that wait for a second person, for `fiatgate status` and Prometheus."""
    with parts.db.autocommit() as connection:
        waiting = approval_lists.waiting(connection)
    age = (parts.clock.now() - waiting.oldest).total_seconds() if waiting.oldest else 0.0
    return [
        Gauge("approvals_pending", waiting.count, "Requests that wait for a second person"),
        Gauge(
            "approvals_oldest_seconds",
            max(0.0, age),
            "Age of the oldest request that waits for a second person",
        ),
    ]


def add_to(server: grpc.Server, service: str, parts: D, approvable: Mapping[str, Approvable[D]]) -> None:
    """Adds the service. `approvable` has the change of each act that this service lets request."""
    servicer = ApprovalsServicer(service, parts, approvable)
    approvals_pb2_grpc.add_ApprovalsServiceServicer_to_server(servicer, server)
