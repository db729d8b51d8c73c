"""The sums of each day: how they are added up, page by page, and how a report reads them.

A report counts the events of the last minutes, which the worker has not summed yet, from their rows.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, cast
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from services.invoices.domain.spans import BOUNDS

_KEY: Final = "day, merchant_id, currency_code, method_code"
_NUMBERS: Final = (
    *("created", "opened", "replaced", "marked", "confirmed", "rejected"),
    *("turnover", "commission", "turnover_usdt", "credited_usdt"),
)
_COUNTS: Final = 6
"""So many of them are counts, the others amounts."""
_COLUMNS: Final = f"{_KEY}, {', '.join(_NUMBERS)}"

# A deal's history has one row for each event, and only the first one awaits the payment. The terms of a deal do not
# change, and a deal that has ended does not change at all.
_EVENTS_OF_DEALS: Final = """
SELECT CAST(taken.at AT TIME ZONE 'UTC' AS date) AS day, merchant_id, currency_code, method_code,
       0 AS created,
       count(*) FILTER (WHERE taken.sub_status = 'awaiting_payment') AS opened,
       count(*) FILTER (WHERE taken.sub_status = 'replaced') AS replaced,
       count(*) FILTER (WHERE taken.sub_status = 'awaiting_confirmation') AS marked,
       count(*) FILTER (WHERE taken.status = 'completed') AS confirmed,
       count(*) FILTER (WHERE taken.status = 'failed') AS rejected,
       coalesce(sum(amount_fiat) FILTER (WHERE taken.status = 'completed'), 0) AS turnover,
       coalesce(sum(amount_fiat - coalesce(adjusted_amount, invoice_amount) * (100 - merchant_percent) * 0.01)
                FILTER (WHERE taken.status = 'completed'), 0) AS commission,
       coalesce(sum(round(amount_fiat / conversion_rate, 6)) FILTER (WHERE taken.status = 'completed'), 0)
         AS turnover_usdt,
       coalesce(sum(merchant_usdt) FILTER (WHERE taken.status = 'completed'), 0) AS credited_usdt
FROM taken JOIN deals ON deals.id = taken.deal_id
"""
_TIMES_OF_DEALS: Final = """
SELECT CAST(taken.at AT TIME ZONE 'UTC' AS date) AS day, merchant_id, currency_code, method_code,
       width_bucket(CAST(floor(extract(epoch FROM taken.at - mark_paid_at)) AS integer), CAST(:bounds AS integer[]))
         AS span, count(*) AS deals
FROM taken JOIN deals ON deals.id = taken.deal_id
WHERE taken.status = 'completed' AND mark_paid_at IS NOT NULL
"""
_CREATIONS: Final = """
SELECT CAST(created_at AT TIME ZONE 'UTC' AS date) AS day, merchant_id, currency_code, '' AS method_code,
       count(*) AS created, 0 AS opened, 0 AS replaced, 0 AS marked, 0 AS confirmed, 0 AS rejected,
       0 AS turnover, 0 AS commission, 0 AS turnover_usdt, 0 AS credited_usdt
"""

# -- adding up

_LOCK: Final = text("SELECT pg_try_advisory_xact_lock(hashtextextended('daily_sums', 0))")
_TAKE_EVENTS: Final = """
WITH page AS MATERIALIZED (
  SELECT id, deal_id, at, status, sub_status FROM deal_transitions
  WHERE id > (SELECT transition_id FROM daily_place) ORDER BY id LIMIT :page
), taken AS MATERIALIZED (
  SELECT * FROM page WHERE id < coalesce((SELECT min(id) FROM page WHERE at >= :until), 9223372036854775807)
)
"""
_ADDED: Final = ", ".join(f"{each} = kept.{each} + excluded.{each}" for each in _NUMBERS)
_ADD_EVENTS: Final = text(f"""
{_TAKE_EVENTS}, summed AS (
  INSERT INTO daily_sums AS kept ({_COLUMNS}) {_EVENTS_OF_DEALS} GROUP BY 1, 2, 3, 4
  ON CONFLICT ({_KEY}) DO UPDATE SET {_ADDED}
), timed AS (
  INSERT INTO daily_times AS kept ({_KEY}, span, deals) {_TIMES_OF_DEALS} GROUP BY 1, 2, 3, 4, 5
  ON CONFLICT ({_KEY}, span) DO UPDATE SET deals = kept.deals + excluded.deals
), moved AS (
  UPDATE daily_place SET transition_id = (SELECT max(id) FROM taken) WHERE EXISTS (SELECT FROM taken)
)
SELECT count(*) FROM taken
""")  # noqa: S608  made of constants
_ADD_CREATIONS: Final = text(f"""
WITH taken AS MATERIALIZED (
  SELECT id, created_at, merchant_id, currency_code FROM invoices
  WHERE (created_at, id) > (SELECT invoice_at, invoice_id FROM daily_place) AND created_at < :until
  ORDER BY created_at, id LIMIT :page
), summed AS (
  INSERT INTO daily_sums AS kept ({_COLUMNS}) {_CREATIONS} FROM taken GROUP BY 1, 2, 3, 4
  ON CONFLICT ({_KEY}) DO UPDATE SET {_ADDED}
), moved AS (
  UPDATE daily_place SET (invoice_at, invoice_id) = (SELECT created_at, id FROM taken ORDER BY 1 DESC, 2 DESC LIMIT 1)
  WHERE EXISTS (SELECT FROM taken)
)
SELECT count(*) FROM taken
""")  # noqa: S608  made of constants
_SUMMED: Final = text("UPDATE daily_place SET summed_until = :until WHERE summed_until < :until")


def add_next(tx: Session, *, until: datetime, page: int) -> bool:
    """Adds the next events and creations before `until` to the sums of their days, a page of each at most. Returns
    whether more may wait. Does nothing while another process does it.
    """
    if not tx.scalar(_LOCK):
        return False
    values = {"until": until, "page": page, "bounds": list(BOUNDS)}
    events = tx.scalar(_ADD_EVENTS, values)
    creations = tx.scalar(_ADD_CREATIONS, values)
    if page in (events, creations):
        return True
    tx.execute(_SUMMED, values)
    return False


_BEHIND: Final = text("""
SELECT greatest(interval '0', :now - least(
  (SELECT min(at) FROM (
     SELECT at FROM deal_transitions WHERE id > (SELECT transition_id FROM daily_place) ORDER BY id LIMIT 1000
   ) AS events),
  (SELECT created_at FROM invoices
   WHERE (created_at, id) > (SELECT invoice_at, invoice_id FROM daily_place) ORDER BY created_at, id LIMIT 1)
))
""")


def time_behind(connection: Connection, now: datetime) -> timedelta:
    """Returns the age of the oldest event among the next ones to be summed; 0 when all are summed. An
    event with a time in the future holds up those behind it, so it is not the age of the first one.
    """
    return cast(timedelta, connection.scalar(_BEHIND, {"now": now}))


# -- reading


class By(StrEnum):
    """The key of a report's rows: a column of the sums."""

    DAY = "day"
    MERCHANT = "merchant_id"
    METHOD = "method_code"
    CURRENCY = "currency_code"


@dataclass(frozen=True, kw_only=True)
class ReportFilter:
    """The days of a report, both included, and conditions; a null or empty one matches all."""

    first_day: date
    last_day: date
    merchant_id: UUID | None = None
    method_code: str = ""
    currency_code: str = ""

    @property
    def days(self) -> int:
        """Returns the number of days."""
        return (self.last_day - self.first_day).days + 1


@dataclass(frozen=True)
class Sums:
    """The numbers of one key in one currency. `spans`: deals by span of time to the confirmation."""

    key: str
    currency_code: str
    created: int = 0
    opened: int = 0
    replaced: int = 0
    marked: int = 0
    confirmed: int = 0
    rejected: int = 0
    turnover: Decimal = Decimal(0)
    commission: Decimal = Decimal(0)
    turnover_usdt: Decimal = Decimal(0)
    credited_usdt: Decimal = Decimal(0)
    spans: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Summed:
    """All rows of a report, by key and currency. Not `complete`: so many events wait to be summed that they were not
    counted.
    """

    rows: Sequence[Sums]
    complete: bool


TAIL_ROWS: Final = 100_000
"""The most events, and the most creations, that a report counts from the rows."""

_OF_ROWS: Final = """
taken AS MATERIALIZED (
  SELECT id, deal_id, at, status, sub_status FROM deal_transitions
  WHERE id > (SELECT transition_id FROM daily_place) ORDER BY id LIMIT {most}
), made AS MATERIALIZED (
  SELECT created_at, merchant_id, currency_code FROM invoices
  WHERE {of_merchant} (created_at, id) > (SELECT invoice_at, invoice_id FROM daily_place)
  ORDER BY created_at, id LIMIT {most}
)
"""
_CHOSEN: Final = """
(:method_code = '' OR method_code = :method_code) AND (:currency_code = '' OR currency_code = :currency_code)
"""
_OF_ALL: Final = "day BETWEEN :first_day AND :last_day"
_BEGIN: Final = text("SELECT CAST(invoice_at AS text) FROM daily_place")
# `begin` was the place a moment before, and places only move on: it changes no sum, and tells PostgreSQL that few rows
# come after it, where it would expect a third of the merchant's.
_NEW_OF_MERCHANT: Final = """
merchant_id = CAST(:merchant_id AS uuid) AND created_at >= CAST(:begin AS timestamptz) AND
"""
# Each day by itself: the primary keys have the day first, and between two days stand the rows of all merchants.
_OF_MERCHANT: Final = "day = ANY(CAST(:days AS date[])) AND merchant_id = CAST(:merchant_id AS uuid)"


def _report(by: By, *, of_merchant: bool) -> str:
    key = f'CAST({by} AS text) COLLATE "C" AS key, currency_code AS currency'
    numbers = ", ".join(f"sum({each}) AS {each}" for each in _NUMBERS)
    none = ", ".join("NULL" for _ in _NUMBERS)
    wanted = f"{_OF_MERCHANT if of_merchant else _OF_ALL} AND {_CHOSEN}"
    whose = _NEW_OF_MERCHANT if of_merchant else ""
    return f"""
WITH {_OF_ROWS.format(most=TAIL_ROWS, of_merchant=whose)}
SELECT {key}, {numbers}, NULL AS span, NULL AS deals FROM (
  SELECT {_COLUMNS} FROM daily_sums WHERE {wanted}
  UNION ALL SELECT * FROM ({_EVENTS_OF_DEALS} GROUP BY 1, 2, 3, 4) AS late WHERE {wanted}
  UNION ALL SELECT * FROM ({_CREATIONS} FROM made GROUP BY 1, 2, 3, 4) AS late WHERE {wanted}
) AS summed GROUP BY 1, 2
UNION ALL
SELECT {key}, {none}, span, sum(deals) FROM (
  SELECT {_KEY}, span, deals FROM daily_times WHERE {wanted}
  UNION ALL SELECT * FROM ({_TIMES_OF_DEALS} GROUP BY 1, 2, 3, 4, 5) AS late WHERE {wanted}
) AS timed GROUP BY 1, 2, span
UNION ALL
SELECT NULL, NULL, {none}, (SELECT count(*) FROM taken), (SELECT count(*) FROM made)
"""  # noqa: S608  made of constants


_REPORTS: Final = {
    (by, of_merchant): text(_report(by, of_merchant=of_merchant))
    for by in By
    for of_merchant in (False, True)
}


def report(connection: Connection, wanted: ReportFilter, by: By) -> Summed:
    """Returns the sums of these days at one moment: one statement reads them."""
    values: dict[str, Any] = {each: getattr(wanted, each) for each in wanted.__dataclass_fields__} | {
        "bounds": list(BOUNDS),
        "days": [wanted.first_day + timedelta(days=each) for each in range(wanted.days)],
    }
    if of_merchant := wanted.merchant_id is not None:
        values["begin"] = connection.scalar(_BEGIN)
    numbers: dict[tuple[str, str], Sequence[Decimal]] = {}
    spans: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    complete = True
    for key, currency, *found, span, deals in connection.execute(_REPORTS[by, of_merchant], values):
        if key is None:
            complete = max(span, deals) < TAIL_ROWS
        elif span is None:
            numbers[key, currency] = found
        else:
            spans[key, currency][span] += int(deals)
    return Summed([_sums(each, numbers[each], spans[each]) for each in sorted(numbers)], complete)


def _sums(key: tuple[str, str], numbers: Sequence[Decimal], spans: Mapping[int, int]) -> Sums:
    values: dict[str, Any] = dict(
        zip(_NUMBERS, [*map(int, numbers[:_COUNTS]), *numbers[_COUNTS:]], strict=True)
    )
    return Sums(*key, **values, spans=spans)
