"""The loops of the service: timers, sums of days, counts of lists, the relay of the outbox, the copy of the catalog."""

from collections.abc import Callable, Sequence

from kit.events.relay import relay
from kit.rpc import approvals
from kit.rpc.status import Gauge
from kit.work.worker import Loop, Worker
from services.invoices.models import BusState, Outbox
from services.invoices.operations import reports, timers
from services.invoices.store import cases, daily, deals, invoices
from services.invoices.wiring import Deps

# How late a time-out may be noticed. A customer's own steps check the time themselves.
TIMER_SECONDS = 1.0
SUMS_SECONDS = 10.0
"""How often events are added to the sums of their days. Until then a report counts them from the rows."""
METHODS_SHOWN = 100
"""The number of methods with metrics of their own, the fullest ones: one series for each would have no bound."""
CROWDED_PERCENT = 80


def workers(deps: Deps) -> Sequence[Worker]:
    """Returns the timers, sums of days and counts of lists; any number of processes may run them side by side."""
    return [
        _timer("expire-invoices", deps, timers.expire_invoices),
        _timer("expire-deals", deps, timers.expire_deals),
        _timer("overdue-confirmations", deps, timers.open_overdue_appeals),
        Loop("daily-sums", lambda: reports.sum_days(deps), every_seconds=SUMS_SECONDS, required=False),
    ]


def companions(deps: Deps) -> Sequence[Worker]:
    """Returns the loops of every process: one keeps the catalog in memory, one relays the facts that the process
    commits.

    A relay wakes at once only in the process of the commit; in another one the fact would wait for the next poll.
    """
    return [
        deps.catalog.reloading(),
        relay(
            db=deps.db,
            bus=deps.bus,
            outbox=Outbox,
            bus_state=BusState,
            clock=deps.clock,
            announced=deps.announced,
        ),
    ]


def gauges(deps: Deps) -> Sequence[Gauge]:
    """Returns the numbers of everything that waits."""
    now, share_percent = deps.clock.now(), deps.settings.method_share_percent
    with deps.db.autocommit() as connection:
        waiting, oldest_seconds = invoices.outbox_lag(connection, now)
        counts = deals.open_deal_counts(connection, now)
        open_cases = cases.open_case_count(connection)
        loads = deals.method_loads(connection, METHODS_SHOWN)
        behind = daily.time_behind(connection, now)
    return [
        Gauge(
            "invoices_set_aside",
            deps.set_aside.count,
            "Invoices that a timer failed at and tries again later",
        ),
        Gauge("outbox_unpublished", waiting, "Facts that wait to be announced"),
        Gauge(
            "outbox_oldest_seconds", oldest_seconds, "Time that the oldest fact has waited to be announced"
        ),
        Gauge("deals_pending", counts.pending, "Open deals"),
        Gauge(
            "deals_awaiting_confirmation",
            counts.awaiting_confirmation,
            "Open deals that are marked paid and wait for the operator",
        ),
        Gauge("deals_in_appeal", counts.appeal, "Deals in appeal, which the operator has to decide"),
        Gauge(
            "oldest_confirmation_seconds",
            counts.oldest_confirmation.total_seconds(),
            "Time that the oldest deal that is marked paid has waited for the operator",
        ),
        Gauge(
            "oldest_appeal_seconds",
            counts.oldest_appeal.total_seconds(),
            "Time that the oldest deal in appeal has waited for the operator",
        ),
        Gauge("cases_open", open_cases, "Open cases of money that came for an invoice that was over"),
        Gauge(
            "methods_crowded",
            sum(load.is_crowded(CROWDED_PERCENT, share_percent=share_percent) for load in loads),
            "Payment methods of more than one place where four fifths are taken or one merchant holds its share",
        ),
        Gauge(
            "daily_sums_behind_seconds",
            behind.total_seconds(),
            "Age of the oldest event that is not summed into its day yet; usually five minutes",
        ),
        *(gauge for load in loads for gauge in _gauges_of_method(load)),
        *approvals.gauges(deps),
    ]


def _gauges_of_method(load: deals.MethodLoad) -> Sequence[Gauge]:
    label = ("method", load.method_code)
    return [
        Gauge("method_places", load.places, "Open deals that a method's accounts in use may hold", label),
        Gauge("method_places_taken", load.taken, "Open deals on a method's accounts in use", label),
        Gauge(
            "method_places_of_one_merchant",
            load.of_one_merchant,
            "Largest number of these open deals that one merchant holds",
            label,
        ),
    ]


def _timer(name: str, deps: Deps, step: Callable[[Deps], bool]) -> Loop:
    return Loop(name, lambda: step(deps), every_seconds=TIMER_SECONDS)
