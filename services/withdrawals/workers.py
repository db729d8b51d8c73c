"""What works without being asked: the consumer that credits finished invoices."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2
from kit.bus import Incoming
from kit.consumer import Consumer
from kit.rpc.status import Gauge
from kit.worker import Worker
from services.withdrawals import operations
from services.withdrawals.events import INVOICE_FINISHED, invoice_paid_from_message
from services.withdrawals.models import Inbox, Parked
from services.withdrawals.wiring import Deps

CONSUMER = "withdrawals-invoices-finished"
"""The durable consumer's name on the stream: it must not change."""


def consumer(deps: Deps) -> Consumer:
    """One credit per successful invoice."""

    def handle(tx: Session, event: Incoming) -> None:
        paid = invoice_paid_from_message(invoices_pb2.InvoiceFinished.FromString(event.payload))
        if paid is not None:
            operations.credit_invoice(deps, tx, paid)

    def merchant_of(event: Incoming) -> str:
        return invoices_pb2.InvoiceFinished.FromString(event.payload).merchant_id

    return Consumer(
        CONSUMER,
        handle,
        lock_order=merchant_of,  # whose balance a credit changes
        subject=INVOICE_FINISHED,
        db=deps.db,
        bus=deps.bus,
        inbox=Inbox,
        parked=Parked,
        clock=deps.clock,
    )


def workers(deps: Deps) -> Sequence[Worker]:
    return [consumer(deps)]


def gauges(deps: Deps) -> Sequence[Gauge]:
    """What `fiatgate status` shows of what waits for people."""
    backlog = operations.backlog(deps)
    return [
        Gauge("withdrawals_pending", backlog.pending),
        Gauge("withdrawals_processing", backlog.processing),
        Gauge("parked", backlog.parked),
    ]
