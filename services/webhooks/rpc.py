"""fiatgate.webhooks.v1.WebhooksService: message, operation, message. kit's server translates errors."""

from collections.abc import Sequence
from typing import Final

import grpc

from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from fiatgate.webhooks.v1 import webhooks_pb2_grpc
from kit.base.proto import optional_datetime, timestamp_from
from kit.rpc import audit, books, find, parked, queues, values
from kit.rpc.slots import Slots, lists, of_people, proofs
from services.webhooks import workers
from services.webhooks.domain import AttemptStatus, EventStatus, NotSent, Trigger, headers_of, why_not_sent
from services.webhooks.events import finished_invoice_from_message
from services.webhooks.operations import desk, pruning, reading, resending, testing, verification
from services.webhooks.store import finding
from services.webhooks.store.books import PARTS
from services.webhooks.store.lists import EventFilter
from services.webhooks.store.queues import QUEUES
from services.webhooks.store.views import AttemptView, EventHistory, EventView
from services.webhooks.wiring import Deps

# ruff: noqa: N802  the proto names the methods

_EVENT_STATUSES = {
    EventStatus.PENDING: pb.EVENT_STATUS_PENDING,
    EventStatus.SUCCESS: pb.EVENT_STATUS_SUCCESS,
    EventStatus.DEAD: pb.EVENT_STATUS_DEAD,
}
_TRIGGERS = {Trigger.AUTO: pb.ATTEMPT_TRIGGER_AUTO, Trigger.MANUAL: pb.ATTEMPT_TRIGGER_MANUAL}
_ATTEMPT_STATUSES = {
    AttemptStatus.SUCCESS: pb.ATTEMPT_STATUS_SUCCESS,
    AttemptStatus.FAILURE: pb.ATTEMPT_STATUS_FAILURE,
}
_NOT_SENT = {
    None: pb.NOT_SENT_UNSPECIFIED,
    NotSent.NO_KEY: pb.NOT_SENT_NO_KEY,
    NotSent.HELD_BACK: pb.NOT_SENT_HELD_BACK,
    NotSent.ADDRESS: pb.NOT_SENT_ADDRESS,
    NotSent.INTERNAL: pb.NOT_SENT_INTERNAL,
}

SLOTS: Final = (
    # A resend and a test wait for their receiver; `resending.resend_latest` bounds those of one merchant.
    Slots(name="resends", waiting=16),
    lists(in_all=2),
    of_people("desk", working=2),
    proofs(),
)


def add_to(server: grpc.Server, deps: Deps) -> None:
    webhooks_pb2_grpc.add_WebhooksServiceServicer_to_server(WebhooksServicer(deps), server)
    parked.add_to(server, workers.consumer(deps))
    books.add_to(server, deps.db, PARTS)
    find.add_to(server, deps.db, {}, finding.SEARCHES, finding.OWN_SEARCHES)
    queues.add_to(server, deps, QUEUES)


class WebhooksServicer(webhooks_pb2_grpc.WebhooksServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ListInvoiceEvents(
        self, request: pb.ListInvoiceEventsRequest, context: grpc.ServicerContext
    ) -> pb.ListInvoiceEventsResponse:
        histories = reading.list_invoice_events(
            self._deps, merchant_id=request.merchant_id, invoice_id=request.invoice_id
        )
        events = [history_to_message(each) for each in histories]
        if not request.with_acts:
            return pb.ListInvoiceEventsResponse(events=events)
        if request.merchant_id:
            raise values.invalid("with_acts", "Only without merchant_id: acts name operators")
        acts = reading.acts_on(self._deps, histories)
        service = self._deps.settings.service
        return pb.ListInvoiceEventsResponse(
            events=events, acts=[audit.act_to_message(each, service) for each in acts]
        )

    def ListEvents(
        self, request: pb.ListEventsRequest, context: grpc.ServicerContext
    ) -> pb.ListEventsResponse:
        wanted = event_filter_from_message(request)
        page = desk.list_events(
            self._deps, wanted, after_event_id=request.after_event_id, limit=request.limit
        )
        return pb.ListEventsResponse(
            events=[event_to_message(each) for each in page.events],
            continue_after_event_id=page.continue_after,
        )

    def FollowEvents(
        self, request: pb.FollowEventsRequest, context: grpc.ServicerContext
    ) -> pb.FollowEventsResponse:
        followed = reading.follow_events(
            self._deps,
            merchant_id=request.merchant_id,
            after_event_id=request.after_event_id,
            limit=request.limit,
        )
        return pb.FollowEventsResponse(
            events=[
                pb.FollowedEvent(event=event_to_message(each.event), headers=each.headers)
                for each in followed
            ]
        )

    def GetEvent(self, request: pb.GetEventRequest, context: grpc.ServicerContext) -> pb.GetEventResponse:
        history = reading.get_event(self._deps, event_id=request.event_id)
        return pb.GetEventResponse(event=history_to_message(history))

    def ResendLatest(
        self, request: pb.ResendLatestRequest, context: grpc.ServicerContext
    ) -> pb.ResendLatestResponse:
        resent = resending.resend_latest(
            self._deps, merchant_id=request.merchant_id, invoice_id=request.invoice_id
        )
        return pb.ResendLatestResponse(
            event_id=resent.outcome.claimed.event_id,
            ok=resent.outcome.succeeded,
            http_status=resent.outcome.http_status,
            duration_ms=resent.outcome.duration_ms,
            attempt_id=resent.attempt_id,
            not_sent=_NOT_SENT[why_not_sent(resent.outcome.error)],
        )

    def SendTest(self, request: pb.SendTestRequest, context: grpc.ServicerContext) -> pb.SendTestResponse:
        tested = testing.send_test(
            self._deps,
            merchant_id=request.merchant_id,
            event_id=request.event_id,
            wrong_signature=request.wrong_signature,
        )
        answer = tested.answer
        return pb.SendTestResponse(
            ok=tested.ok,
            url=tested.url,
            request_headers=tested.headers,
            request_body=tested.body,
            http_status=None if answer is None else answer.http_status,
            response_headers={} if answer is None else answer.headers,
            response_body=None if answer is None else answer.body,
            error_message=tested.error,
            duration_ms=tested.duration_ms,
            cooldown_seconds=tested.cooldown_seconds,
        )

    def GetSignatureCheck(
        self, request: pb.GetSignatureCheckRequest, context: grpc.ServicerContext
    ) -> pb.GetSignatureCheckResponse:
        refuses = testing.get_signature_check(self._deps, merchant_id=request.merchant_id)
        return pb.GetSignatureCheckResponse(refuses=refuses)

    def CheckInvoices(
        self, request: pb.CheckInvoicesRequest, context: grpc.ServicerContext
    ) -> pb.CheckInvoicesResponse:
        facts = [values.parsed("facts", each, finished_invoice_from_message) for each in request.facts]
        found = verification.check_invoices(self._deps, invoice_ids=request.invoice_ids, facts=facts)
        return pb.CheckInvoicesResponse(
            invoices=[
                pb.InvoiceEvents(
                    invoice_id=str(each.invoice_id),
                    events=each.events,
                    payload_event_id=str(each.payload_event_id),
                    differences=[
                        pb.EventDifference(field=one.field, found=one.found, due=one.due)
                        for one in each.differences
                    ],
                )
                for each in found
            ]
        )

    def ListEventInvoices(
        self, request: pb.ListEventInvoicesRequest, context: grpc.ServicerContext
    ) -> pb.ListEventInvoicesResponse:
        found = verification.list_event_invoices(
            self._deps, after_invoice_id=request.after_invoice_id, limit=request.limit
        )
        return pb.ListEventInvoicesResponse(invoice_ids=[str(each) for each in found])

    def ListStuckEvents(
        self, request: pb.ListStuckEventsRequest, context: grpc.ServicerContext
    ) -> pb.ListStuckEventsResponse:
        stuck = desk.list_stuck_events(
            self._deps, overdue_seconds=request.overdue_seconds, limit=request.limit
        )
        return pb.ListStuckEventsResponse(events=[event_to_message(each) for each in stuck])

    def RescheduleStuckEvents(
        self, request: pb.RescheduleStuckEventsRequest, context: grpc.ServicerContext
    ) -> pb.RescheduleStuckEventsResponse:
        rescheduled = desk.reschedule_stuck_events(self._deps, overdue_seconds=request.overdue_seconds)
        return pb.RescheduleStuckEventsResponse(rescheduled=rescheduled)

    def PruneAttempts(
        self, request: pb.PruneAttemptsRequest, context: grpc.ServicerContext
    ) -> pb.PruneAttemptsResponse:
        pruned = pruning.prune_attempts(
            self._deps, older_than_days=request.older_than_days, after=request.after_attempt_id
        )
        return pb.PruneAttemptsResponse(
            deleted=pruned.deleted, last_attempt_id=pruned.last_id, more=pruned.more
        )


# -- converters


def event_status_from_message(value: int) -> EventStatus | None:
    """Returns the status; None for UNSPECIFIED, which means all. Raises VALIDATION_ERROR for an unknown one."""
    if value == pb.EVENT_STATUS_UNSPECIFIED:
        return None
    for known, number in _EVENT_STATUSES.items():
        if number == value:
            return known
    raise values.invalid("status", "Unknown status")


def event_filter_from_message(request: pb.ListEventsRequest) -> EventFilter:
    """Raises VALIDATION_ERROR for an id that is none, a long type, and an unknown status."""
    return EventFilter(
        status=event_status_from_message(request.status),
        created_from=optional_datetime(request, "created_from"),
        created_before=optional_datetime(request, "created_before"),
        merchant_id=values.uuid("merchant_id", request.merchant_id) if request.merchant_id else None,
        event_type=values.text("event_type", request.event_type, least=0, most=64) or None,
        invoice_id=values.uuid("invoice_id", request.invoice_id) if request.invoice_id else None,
        attempted=request.attempted if request.HasField("attempted") else None,
    )


def history_to_message(history: EventHistory) -> pb.WebhookEvent:
    return event_to_message(history.event, history.attempts)


def event_to_message(event: EventView, attempts: Sequence[AttemptView] = ()) -> pb.WebhookEvent:
    return pb.WebhookEvent(
        event_id=event.id,
        event_type=event.event_type,
        invoice_id=str(event.invoice_id),
        merchant_id=str(event.merchant_id),
        status=_EVENT_STATUSES[event.status],
        callback_url=event.callback_url,
        auto_attempts=event.auto_attempts,
        manual_attempts=event.manual_attempts,
        next_retry_at=timestamp_from(event.next_retry_at),
        locked_at=timestamp_from(event.locked_at),
        locked_by=event.locked_by,
        request_payload=event.payload,
        created_at=timestamp_from(event.created_at),
        updated_at=timestamp_from(event.updated_at),
        attempts=[attempt_to_message(each, event) for each in attempts],
    )


def attempt_to_message(attempt: AttemptView, event: EventView) -> pb.Attempt:
    not_sent = why_not_sent(attempt.error_message)
    return pb.Attempt(
        request_headers={} if not_sent else headers_of(event.payload_event_id, attempt.created_at),
        not_sent=_NOT_SENT[not_sent],
        attempt_id=attempt.id,
        try_number=attempt.try_number,
        trigger=_TRIGGERS[attempt.trigger],
        status=_ATTEMPT_STATUSES[attempt.status],
        http_status=attempt.http_status,
        response_headers=attempt.response_headers,
        response_body=attempt.response_body,
        error_message=attempt.error_message,
        duration_ms=attempt.duration_ms,
        created_at=timestamp_from(attempt.created_at),
    )
