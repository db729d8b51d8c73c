"""Background work: the consumer of finished invoices, the delivery engine, the deletion of old attempts."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2
from kit.events.bus.messages import Incoming
from kit.events.consumer import Consumer
from kit.events.ids import ids_of
from kit.events.subjects import durable_of
from kit.rpc.status import Gauge
from kit.work.worker import Loop, Worker
from services.webhooks.delivery.engine import Engine, EngineParts
from services.webhooks.domain import FinishedInvoice
from services.webhooks.events import finished_invoice_from_message
from services.webhooks.models import Inbox, Parked
from services.webhooks.operations import desk, pruning, queueing
from services.webhooks.wiring import Deps

CONSUMER = durable_of(invoices_pb2.InvoiceFinished, "webhooks")
"""The durable consumer's name on the stream: it must not change."""

RETENTION_SECONDS = 1.0
RETENTION_REST = timedelta(hours=1)
"""Pause between two rounds over all old attempts."""


def consumer(deps: Deps) -> Consumer:
    """Makes one webhook event per finished invoice with a callback URL."""

    def invoice_of(event: Incoming) -> FinishedInvoice:
        return finished_invoice_from_message(invoices_pb2.InvoiceFinished.FromString(event.payload))

    def handle(tx: Session, event: Incoming) -> None:
        queueing.queue_webhook(deps, tx, invoice_of(event))

    def handle_many(tx: Session, events: Sequence[Incoming]) -> None:
        queueing.queue_webhooks(
            deps,
            tx,
            [queueing.Cause(invoice=invoice_of(event), request_id=event.request_id) for event in events],
        )

    return Consumer(
        CONSUMER,
        handle,
        many=handle_many,
        ids_in=ids_of(invoices_pb2.InvoiceFinished, "invoice_id"),
        db=deps.db,
        bus=deps.bus,
        inbox=Inbox,
        parked=Parked,
        verifier=deps.verifier,
        clock=deps.clock,
    )


def engine(deps: Deps) -> Engine:
    return Engine(
        EngineParts(
            db=deps.db,
            clock=deps.clock,
            courier=deps.courier,
            identity=deps.identity,
            recorder=deps.recorder,
            wake=deps.wake,
            fresh=deps.fresh,
            timeout_seconds=deps.settings.webhook_timeout_seconds,
            lease_seconds=deps.settings.lease_seconds,
            stop_seconds=deps.settings.stop_seconds,
        )
    )


class _Retention:
    """Turns the months of attempts, deletes old ones of other times in the small batches of `pruning.prune_attempts`,
    then pauses.
    """

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._after = 0
        self._rows_until: datetime | None = None
        self._rests_until: datetime | None = None

    def step(self) -> bool:
        now = self._deps.clock.now()
        if self._rests_until is not None and now < self._rests_until:
            return False
        days = self._deps.settings.webhook_retention_days
        if self._after == 0:
            self._rows_until = pruning.turn_months(self._deps, older_than_days=days)
        more = False
        if self._rows_until is not None:
            pruned = pruning.prune_attempts(
                self._deps, older_than_days=days, after=self._after, rows_until=self._rows_until
            )
            self._after, more = pruned.last_id, pruned.more
        if not more:
            self._after, self._rests_until = 0, now + RETENTION_REST
        return more


def retention(deps: Deps) -> Loop:
    return Loop("retention", _Retention(deps).step, every_seconds=RETENTION_SECONDS, clock=deps.clock)


def workers(deps: Deps) -> Sequence[Worker]:
    return [consumer(deps), engine(deps), retention(deps)]


def gauges(deps: Deps) -> Sequence[Gauge]:
    """Returns the numbers that `fiatgate status` shows of the queue and of the months of attempts."""
    backlog, months = desk.backlog(deps), pruning.months_ahead(deps)
    return [
        Gauge("webhooks_due", backlog.due, "Webhooks with a due attempt"),
        Gauge(
            "oldest_due_seconds",
            backlog.oldest_due.total_seconds(),
            "Longest time that a due attempt has waited",
        ),
        Gauge(
            "oldest_undelivered_seconds",
            backlog.oldest_undelivered.total_seconds(),
            "Age of the oldest webhook that is still to be delivered",
        ),
        Gauge("inflight", backlog.in_flight, "Attempts to deliver a webhook that are under way"),
        Gauge(
            "webhooks_dead", backlog.dead, "Webhooks of the last 7 days that no further attempt is made for"
        ),
        Gauge("parked", backlog.parked, "Events that could not take effect and were parked"),
        Gauge("attempt_months_ahead", months, "Coming months that have a partition for their attempts"),
    ]
