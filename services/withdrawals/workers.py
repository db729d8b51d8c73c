"""Background work: the consumer that credits finished invoices, and the verification of the ledger."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2
from kit.db.database import DatabaseBusy
from kit.events.bus.messages import Incoming
from kit.events.consumer import Consumer
from kit.events.ids import ids_of
from kit.events.subjects import durable_of
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.rpc import approvals
from kit.rpc.status import Gauge
from kit.work.worker import Loop, Worker
from services.withdrawals.clients import IdentityClient
from services.withdrawals.events import invoice_paid_from_message, is_unpaid
from services.withdrawals.models import Inbox, Parked
from services.withdrawals.operations import addresses, days, ledger, simulation
from services.withdrawals.wiring import Deps

_log = get_logger()

LEDGER_PROBLEMS = metrics.gauge(
    "ledger_problems", "Faults that this process found when it last verified the ledger"
)
LEDGER_CHECKED_AT = metrics.gauge(
    "ledger_checked_timestamp_seconds", "Time at which this process last verified the ledger"
)

BALANCES_SECONDS = 60.0
NOTICES_SECONDS = 5.0
SIMULATION_SECONDS = 5.0

CONSUMER = durable_of(invoices_pb2.InvoiceFinished, "withdrawals")
"""The durable consumer's name on the stream: it must not change."""


def consumer(deps: Deps) -> Consumer:
    """Credits each successful invoice once."""

    def handle(tx: Session, event: Incoming) -> None:
        paid = invoice_paid_from_message(invoices_pb2.InvoiceFinished.FromString(event.payload))
        if paid is not None:
            ledger.credit_invoice(deps, tx, paid)

    def merchant_of(event: Incoming) -> str:
        return invoices_pb2.InvoiceFinished.FromString(event.payload).merchant_id

    return Consumer(
        CONSUMER,
        handle,
        has_no_effect=lambda event: is_unpaid(event.payload),
        lock_order=merchant_of,  # a credit changes this merchant's balance
        ids_in=ids_of(invoices_pb2.InvoiceFinished, "invoice_id"),
        db=deps.db,
        bus=deps.bus,
        inbox=Inbox,
        parked=Parked,
        verifier=deps.verifier,
        clock=deps.clock,
    )


def daily_balances(deps: Deps) -> Loop:
    """Keeps the balance of each account at the end of each day. Without it old statements are slower, not wrong."""
    at = days.Pass()
    return Loop(
        "daily-balances", lambda: days.close_days(deps, at), every_seconds=BALANCES_SECONDS, required=False
    )


def address_notices(deps: Deps, identity: IdentityClient) -> Loop:
    """Has owners told of new addresses by e-mail. The start page of the dashboard shows them without it."""
    return Loop(
        "address-notices",
        lambda: addresses.tell_of_new_address(deps, identity),
        every_seconds=NOTICES_SECONDS,
        required=False,
    )


def ledger_check(deps: Deps) -> Loop:
    """Verifies the ledger at the start and then regularly: finds a wrong balance before a merchant does."""

    def step() -> bool:
        try:
            report = ledger.check_ledger(deps)
        # The ledger is too large for one statement: try again in the next round, not at once.
        except DatabaseBusy as error:
            _log.warning("ledger_not_checked", error=str(error))
            return False
        for problem in report.problems:
            _log.error("ledger_fault_found", problem=problem)
        LEDGER_PROBLEMS.set(len(report.problems))
        LEDGER_CHECKED_AT.set(deps.clock.now().timestamp())
        return False

    every_seconds = deps.settings.ledger_check_minutes * 60
    return Loop("ledger-check", step, every_seconds=every_seconds, clock=deps.clock)


def simulation_loop(deps: Deps) -> Loop:
    return Loop(
        "simulation",
        lambda: simulation.end_withdrawals(deps),
        every_seconds=SIMULATION_SECONDS,
        required=False,
    )


def workers(deps: Deps) -> Sequence[Worker]:
    is_simulated = deps.settings.is_test and deps.settings.test_withdrawal_seconds
    return [
        consumer(deps),
        daily_balances(deps),
        *([address_notices(deps, deps.identity)] if deps.identity is not None else []),
        *([simulation_loop(deps)] if is_simulated else []),
        *([ledger_check(deps)] if deps.settings.ledger_check_minutes else []),
    ]


def gauges(deps: Deps) -> Sequence[Gauge]:
    """Returns the numbers that `fiatgate status` shows of everything that waits for an operator."""
    backlog = ledger.backlog(deps)
    return [
        Gauge("withdrawals_pending", backlog.pending, "Withdrawals that no operator has begun to send"),
        Gauge("withdrawals_processing", backlog.processing, "Withdrawals that are being sent"),
        Gauge("refunds_ready", backlog.refunds_ready, "Refunds that no operator has sent"),
        Gauge("refunds_sent", backlog.refunds_sent, "Refunds that are sent and not known to have arrived"),
        Gauge("parked", backlog.parked, "Events that could not take effect and were parked"),
        *approvals.gauges(deps),
    ]
