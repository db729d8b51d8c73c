"""The history of a currency's rates, for operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from kit.audit.listing import Act, Filter, list_acts
from kit.rpc import values
from services.catalog import errors
from services.catalog.operations import fields
from services.catalog.store import rates
from services.catalog.store.rates import NumberedRate, RateStep
from services.catalog.wiring import Deps

SPAN: Final = timedelta(days=1)
SPAN_MOST: Final = timedelta(days=93)
STEPS: Final = 96
STEPS_MOST: Final = 500
STEP_LEAST_SECONDS: Final = 60
ACTS_MOST: Final = 50


@dataclass(frozen=True, slots=True)
class RateHistory:
    """The course of a rate from `since` until before `until`, and the newest acts on the currency, of any time."""

    steps: Sequence[RateStep]
    step_seconds: int
    since: datetime
    until: datetime
    acts: Sequence[Act]


def get_rate_history(
    deps: Deps, *, currency_code: str, since: datetime | None, until: datetime | None, step_seconds: int
) -> RateHistory:
    """Returns the history of a span, by default of the last day. Raises VALIDATION_ERROR, CURRENCY_NOT_FOUND."""
    code = fields.currency_code("currency_code", currency_code)
    end = until or deps.clock.now()
    start = since or end - SPAN
    if not timedelta() < end - start <= SPAN_MOST:
        raise values.invalid("since", f"Expected a span of at most {SPAN_MOST.days} days")
    seconds = step_seconds or max(STEP_LEAST_SECONDS, int((end - start).total_seconds() / STEPS))
    values.whole_number("step_seconds", seconds, least=STEP_LEAST_SECONDS)
    if (end - start) / timedelta(seconds=seconds) > STEPS_MOST:
        raise values.invalid("step_seconds", f"The span would have more than {STEPS_MOST} steps")
    with deps.db.autocommit() as connection:
        _require_currency(connection, code)
        steps = rates.rate_steps(connection, code, since=start, until=end, step_seconds=seconds)
    acts = list_acts(deps.db, Filter(object=f"currency:{code}"), after=None, limit=ACTS_MOST)
    return RateHistory(steps, seconds, start, end, acts)


def list_accepted_rates(
    deps: Deps, *, currency_code: str, by_operators: bool, after_number: int, limit: int
) -> Sequence[NumberedRate]:
    """Returns accepted rates, newest first. Raises VALIDATION_ERROR, CURRENCY_NOT_FOUND."""
    code = fields.currency_code("currency_code", currency_code)
    after = values.whole_number("after_number", after_number, least=0)
    with deps.db.autocommit() as connection:
        _require_currency(connection, code)
        return rates.rates_accepted(
            connection, code, by_operators=by_operators, after_number=after, limit=values.rows(limit)
        )


def _require_currency(connection: Connection, code: str) -> None:
    if not rates.has_currency(connection, code):
        raise errors.currency_not_found(code)
