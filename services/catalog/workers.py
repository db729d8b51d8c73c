"""The one loop of the catalog: the rate poller."""

from collections.abc import Sequence
from typing import Final

from kit.rpc import approvals
from kit.rpc.status import Gauge
from kit.work.worker import Loop, Worker
from services.catalog.operations import rates
from services.catalog.store.rates import all_currencies_with_rates
from services.catalog.wiring import Deps

CHECK_SECONDS: Final = 5
"""How often a process checks whether a poll is due. The check is one statement. With one check per period, a check
that comes a moment too early would skip a whole period.
"""


def workers(deps: Deps) -> Sequence[Worker]:
    """Returns the rate poller, or nothing when no sources are configured. Any number of processes may run it."""
    if not deps.settings.rate_sources:
        return ()
    every_seconds = min(CHECK_SECONDS, deps.settings.rates_poll_seconds)

    def step() -> bool:
        rates.poll_when_due(deps)
        return False

    return (Loop("rates", step, every_seconds=every_seconds, clock=deps.clock),)


def gauges(deps: Deps) -> Sequence[Gauge]:
    """Returns the numbers of held rates, which wait for an operator, of currencies without a fresh rate, which can't be
    paid with, and of rates set by hand that end soon.
    """
    with deps.db.autocommit() as connection:
        rated = all_currencies_with_rates(connection)
    now, max_age = deps.clock.now(), deps.settings.rates_max_age
    in_force = [each.rates.in_force(now, max_age) for each in rated if each.currency.enabled]
    fresh = sum(rate is not None and rate.is_fresh(now, max_age) for rate in in_force)
    return (
        Gauge(
            "rates_held",
            sum(each.held is not None for each in rated),
            "Rates that moved too far and wait for an operator to accept them",
        ),
        Gauge(
            "currencies_without_fresh_rate",
            len(in_force) - fresh,
            "Enabled currencies that can't be paid with because they have no fresh rate",
            step="Set their rate by hand, or mend the sources: fiatgate rates list names them.",
        ),
        Gauge(
            "rates_end_soon",
            sum(rate is not None and rate.ends_soon(now, max_age) for rate in in_force),
            "Rates set by hand that end soon",
            step="Set the rate again, unless the sources shall count again: fiatgate rates list names it.",
        ),
        *approvals.gauges(deps),
    )
