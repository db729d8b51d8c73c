"""fiatgate.audit.v1.AuditService: the acts of a service and their verification, the same in every service."""

from dataclasses import replace
from typing import Any, Final

import grpc

from fiatgate.audit.v1 import audit_pb2 as pb
from fiatgate.audit.v1 import audit_pb2_grpc
from kit.audit import approvals, checking, heads, listing
from kit.audit.chain import EMPTY, Head, head
from kit.audit.listing import Act, Filter
from kit.base import actors
from kit.base.actors import THE_OPERATOR
from kit.base.clock import Clock, SystemClock
from kit.base.groups import masked
from kit.base.proto import datetime_from, most_of, optional_datetime, timestamp_from
from kit.base.services import SERVICES
from kit.db.database import Database
from kit.rpc import values
from kit.rpc.slots import Slots
from kit.rpc.turns import Share

# ruff: noqa: N802  methods are named by the proto


def _reader_of(request: Any) -> str:
    """Returns the merchant on the dashboard, however many of its members read; elsewhere the person."""
    actor = actors.current()
    return f"{actor.surface} {actor.merchant_id or actor}"


# One call at a time reads the acts. There are many threads because a call that waits for its turn occupies one.
SLOTS: Final = Slots(
    name="audit",
    threads=48,
    owner=_reader_of,
    share=Share(working=1, waiting=3, wait_seconds=3, in_all=1),
)

FILTER_MOST_CHARACTERS: Final = 300


class AuditServicer(audit_pb2_grpc.AuditServiceServicer):
    def __init__(self, db: Database, service: str, clock: Clock) -> None:
        self._db = db
        self._service = service
        self._clock = clock

    def ListActs(self, request: pb.ListActsRequest, context: grpc.ServicerContext) -> pb.ListActsResponse:
        found = listing.list_acts(
            self._db,
            filter_from_message(request),
            after=values.uuid("after_act_id", request.after_act_id) if request.after_act_id else None,
            limit=values.rows(request.limit),
        )
        if actors.current().surface == "dashboard":
            found = [_for_members(each) for each in found]
        return pb.ListActsResponse(acts=[act_to_message(each, self._service) for each in found])

    def CheckActs(self, request: pb.CheckActsRequest, context: grpc.ServicerContext) -> pb.CheckActsResponse:
        values.at_most("heads", request.heads, values.LIST_MOST_ROWS)
        report = checking.check_page(
            self._db,
            self._clock,
            after=values.whole_number("after", request.after, least=0),
            limit=values.rows(request.limit, default=values.LIST_MOST_ROWS),
            known=[
                Head(each.count, each.hash, datetime_from(each.at))
                for each in request.heads
                if each.service == self._service
            ],
        )
        return pb.CheckActsResponse(
            checked=report.checked,
            problems=report.problems,
            last=report.last,
            more=report.more,
            unchained=report.unchained,
            unreadable=report.unreadable[: checking.MAX_PROBLEMS],
        )

    def GetHead(self, request: pb.GetHeadRequest, context: grpc.ServicerContext) -> pb.GetHeadResponse:
        with self._db.transaction() as tx:
            own, kept = head(tx), heads.kept(tx)
        return pb.GetHeadResponse(
            head=None if own is None else _head_to_message(self._service, own),
            kept=[_head_to_message(service, each) for service, each in kept.items()],
        )

    def RestartHead(
        self, request: pb.RestartHeadRequest, context: grpc.ServicerContext
    ) -> pb.RestartHeadResponse:
        if request.service not in set(SERVICES) - {self._service}:
            raise values.invalid("service", "Expected the name of another service")
        if len(request.hash) != len(EMPTY):
            raise values.invalid("hash", f"Expected {len(EMPTY)} bytes")
        heads.restart(
            self._db,
            self._clock,
            service=request.service,
            count=values.whole_number("count", request.count, least=0),
            hash=request.hash,
            note=values.text("note", request.note, least=0, most=most_of(pb.RestartHeadRequest, "note")),
        )
        return pb.RestartHeadResponse()


def filter_from_message(request: pb.ListActsRequest) -> Filter:
    """Returns the filter of a request: members see no requests for a second person. Raises VALIDATION_ERROR."""
    by_member = actors.current().surface == "dashboard"
    texts = {
        name: values.text(name, getattr(request, name), least=0, most=FILTER_MOST_CHARACTERS)
        for name in ("author", "act", "object")
    }
    return Filter(
        **texts,
        authors_surface="dashboard" if texts["author"] and by_member else "",
        without=approvals.ACTS if by_member else (),
        merchant_id=values.uuid("merchant_id", request.merchant_id) if request.merchant_id else None,
        since=optional_datetime(request, "since"),
        until=optional_datetime(request, "until"),
    )


def _for_members(act: Act) -> Act:
    """Returns the act as members of its merchant see it: with masked accounts, and without what is internal: the
    operator's name and note.
    """
    act = replace(act, changes=[_masked(*each) for each in act.changes])
    if act.surface == "dashboard" or act.actor_kind in ("api", "process"):
        return act
    return replace(
        act,
        actor_kind="operator",
        actor_name=THE_OPERATOR,
        person_id=None,
        session_id=None,
        surface="",
        on_behalf_of="",
        note="",
        request_id="",
    )


def _masked(field: str, before: str, after: str) -> tuple[str, str, str]:
    return (
        (field, before and masked(before), after and masked(after))
        if field == "account"
        else (field, before, after)
    )


def act_to_message(act: Act, service: str) -> pb.Act:
    return pb.Act(
        act_id=str(act.id),
        at=timestamp_from(act.at),
        actor=pb.Actor(
            kind=act.actor_kind,
            person_id=str(act.person_id or ""),
            name=act.actor_name,
            session_id=str(act.session_id or ""),
            surface=act.surface,
            on_behalf_of=act.on_behalf_of,
        ),
        act=act.act,
        object=act.object,
        merchant_id=str(act.merchant_id or ""),
        changes=[pb.Change(field=field, before=before, after=after) for field, before, after in act.changes],
        note=act.note,
        request_id=act.request_id,
        refused=act.refused,
        service=service,
    )


def _head_to_message(service: str, head: Head) -> pb.Head:
    return pb.Head(service=service, count=head.count, hash=head.hash, at=timestamp_from(head.at))


def add_to(server: grpc.Server, db: Database, service: str, clock: Clock | None = None) -> None:
    servicer = AuditServicer(db, service, clock or SystemClock())
    audit_pb2_grpc.add_AuditServiceServicer_to_server(servicer, server)
