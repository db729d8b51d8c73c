"""What works without being asked: the consumer of finished invoices and the delivery engine."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2
from kit.bus import Incoming
from kit.consumer import Consumer
from kit.rpc.status import Gauge
from kit.worker import Worker
from services.webhooks import operations
from services.webhooks.delivery.engine import Engine, EngineParts
from services.webhooks.events import INVOICE_FINISHED_SUBJECT, finished_invoice_from_message
from services.webhooks.models import Inbox, Parked
from services.webhooks.wiring import Deps

CONSUMER = "webhooks-invoices-finished"
"""The durable consumer's name on the stream: it must not change."""


def consumer(deps: Deps) -> Consumer:
    """One webhook event per finished invoice with a callback URL."""

    def handle(tx: Session, event: Incoming) -> None:
        message = invoices_pb2.InvoiceFinished.FromString(event.payload)
        operations.queue_webhook(deps, tx, finished_invoice_from_message(message))

    return Consumer(
        CONSUMER,
        handle,
        subject=INVOICE_FINISHED_SUBJECT,
        db=deps.db,
        bus=deps.bus,
        inbox=Inbox,
        parked=Parked,
        clock=deps.clock,
    )


def engine(deps: Deps) -> Engine:
    return Engine(
        EngineParts(
            db=deps.db,
            clock=deps.clock,
            courier=deps.courier,
            merchants=deps.merchants,
            recorder=deps.recorder,
            wake=deps.wake,
            timeout_seconds=deps.settings.webhook_timeout_seconds,
            lease_seconds=deps.settings.lease_seconds,
        )
    )


def workers(deps: Deps) -> Sequence[Worker]:
    return [consumer(deps), engine(deps)]


def gauges(deps: Deps) -> Sequence[Gauge]:
    """What `fiatgate status` shows of the queue."""
    backlog = operations.backlog(deps)
    return [
        Gauge("webhooks_due", backlog.due),
        Gauge("oldest_due_seconds", backlog.oldest_due.total_seconds(), "seconds"),
        Gauge("oldest_undelivered_seconds", backlog.oldest_undelivered.total_seconds(), "seconds"),
        Gauge("inflight", backlog.in_flight),
        Gauge("parked", backlog.parked),
    ]
