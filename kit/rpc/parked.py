"""fiatgate.parked.v1.ParkedService: the parked events of a consumer, for operators to list, retry and discard."""

import grpc

from fiatgate.parked.v1 import parked_pb2 as pb
from fiatgate.parked.v1 import parked_pb2_grpc
from kit.base.proto import datetime_from, optional, timestamp_from
from kit.events.consumer import Consumer
from kit.events.inbox import ParkedColumns
from kit.events.parked import MayBeTrue, Place
from kit.rpc import values

# ruff: noqa: N802  methods are named by the proto


class ParkedServicer(parked_pb2_grpc.ParkedServiceServicer):
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def ListParked(
        self, request: pb.ListParkedRequest, context: grpc.ServicerContext
    ) -> pb.ListParkedResponse:
        rows, total = self._consumer.list_parked(after=_place_of(request), limit=values.rows(request.limit))
        events = [_event_to_message(self._consumer, each) for each in rows]
        return pb.ListParkedResponse(events=events, total=total)

    def RetryParked(
        self, request: pb.RetryParkedRequest, context: grpc.ServicerContext
    ) -> pb.RetryParkedResponse:
        given = {name: optional(request, name) for name in ("event_id", "after_event_id")}
        ids = {name: None if text is None else values.uuid(name, text) for name, text in given.items()}
        retried = self._consumer.retry_parked(only=ids["event_id"], after=ids["after_event_id"])
        return pb.RetryParkedResponse(
            retried=retried.retried,
            mended=retried.mended,
            last_event_id=None if retried.last_id is None else str(retried.last_id),
            more=retried.more,
        )

    def DiscardParked(
        self, request: pb.DiscardParkedRequest, context: grpc.ServicerContext
    ) -> pb.DiscardParkedResponse:
        event_id = values.uuid("event_id", request.event_id)
        try:
            even_if_true = request.even_if_true
            discarded = self._consumer.discard_parked(event_id, even_if_true=even_if_true)
            return pb.DiscardParkedResponse(discarded=discarded)
        except MayBeTrue as doubt:
            raise values.invalid("event_id", f"The event is not discarded: {doubt.reason}") from None


def _place_of(request: pb.ListParkedRequest) -> Place | None:
    parked_at, event_id = (optional(request, name) for name in ("after_parked_at", "after_event_id"))
    if parked_at is None and event_id is None:
        return None
    if parked_at is None or event_id is None:
        raise values.invalid("after_event_id", "Expected after_parked_at with it, or none of the two")
    return datetime_from(parked_at), values.uuid("after_event_id", event_id)


def _event_to_message(consumer: Consumer, row: ParkedColumns) -> pb.ParkedEvent:
    return pb.ParkedEvent(
        consumer=consumer.name,
        event_id=str(row.event_id),
        subject=row.subject,
        attempts=row.attempts,
        error=row.error,
        failed_at=timestamp_from(row.failed_at),
        parked_at=timestamp_from(row.parked_at),
        request_id=row.request_id,
        claimed_event_id=None if row.claimed_id is None else str(row.claimed_id),
        invoice_id=consumer.ids_in(row.payload).get("invoice_id"),
    )


def add_to(server: grpc.Server, consumer: Consumer) -> None:
    """Adds the service. `consumer` need not run in this process: it shares its tables with those that do."""
    parked_pb2_grpc.add_ParkedServiceServicer_to_server(ParkedServicer(consumer), server)
