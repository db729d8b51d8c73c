"""How many invoices a merchant has: counted once, a page at a time, by segment.

A segment is 1,000 consecutive invoices of one merchant in the order of time; 100 of them are a large one. For each
currency of a segment its first and last invoice are stored, the number created, and the number in each final status.
A final status never changes. An invoice that was pending when it was counted stands in `segment_pending` until it ends;
then the worker adds it to its segment. So what is stored is true at each moment, whatever other processes write, and a
create writes nothing here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast
from uuid import UUID

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.orm import Session

from services.invoices.domain.states import InvoiceStatus

SMALL = 1_000
"""The invoices of a segment: the most entries of an index that a page of a rare currency reads for each of its rows."""
LARGE = 100 * SMALL

Place = tuple[datetime, UUID]
"""A place in the order of invoices: time and id."""

_FINAL: Final = tuple(str(each) for each in InvoiceStatus if each is not InvoiceStatus.PENDING)
_NUMBERS: Final = ("created", *_FINAL)

# -- counting

_LOCK: Final = text("SELECT pg_try_advisory_xact_lock(hashtextextended('invoice_segments', 0))")
_SIZES: Final = "(VALUES (:small), (:large)) AS sizes (size)"
_BY_STATUS: Final = ", ".join(f"count(*) FILTER (WHERE status = '{each}') AS {each}" for each in _FINAL)
_ADDED: Final = ", ".join(f"{each} = kept.{each} + excluded.{each}" for each in _NUMBERS)
_COUNT: Final = text(f"""
WITH taken AS MATERIALIZED (
  SELECT id, created_at, merchant_id, currency_code, status FROM invoices
  WHERE (created_at, id) > (SELECT invoice_at, invoice_id FROM segment_place) AND created_at < :until
  ORDER BY created_at, id LIMIT :page
), counted AS MATERIALIZED (
  SELECT merchant_id, (SELECT coalesce(sum(created), 0) FROM invoice_segments
                       WHERE merchant_id = each.merchant_id AND size = :large)::bigint AS invoices
  FROM (SELECT DISTINCT merchant_id FROM taken) AS each
), numbered AS MATERIALIZED (
  SELECT taken.*, invoices + row_number() OVER (PARTITION BY merchant_id ORDER BY created_at, id) - 1 AS ordinal
  FROM taken JOIN counted USING (merchant_id)
), added AS (
  INSERT INTO invoice_segments AS kept
    (merchant_id, size, number, currency_code, first_at, first_id, last_at, last_id, {", ".join(_NUMBERS)})
  SELECT merchant_id, size, ordinal / size, currency_code,
         min(created_at), (array_agg(id ORDER BY ordinal))[1],
         max(created_at), (array_agg(id ORDER BY ordinal DESC))[1], count(*), {_BY_STATUS}
  FROM numbered CROSS JOIN {_SIZES} GROUP BY 1, 2, 3, 4
  ON CONFLICT (merchant_id, size, number, currency_code)
  DO UPDATE SET last_at = excluded.last_at, last_id = excluded.last_id, {_ADDED}
), waiting AS (
  INSERT INTO segment_pending (merchant_id, invoice_id, ordinal)
  SELECT merchant_id, id, ordinal FROM numbered WHERE status = 'pending'
), moved AS (
  UPDATE segment_place SET (invoice_at, invoice_id) = (SELECT created_at, id FROM taken ORDER BY 1 DESC, 2 DESC LIMIT 1)
  WHERE EXISTS (SELECT FROM taken)
)
SELECT count(*) FROM taken
""")  # noqa: S608  made of constants

# The lateral queries read the invoices by their key, one by one, however many rows PostgreSQL expects.
_MOVE_ENDED: Final = text(f"""
WITH ended AS MATERIALIZED (
  SELECT pending.*, invoice.status, invoice.currency_code FROM segment_pending AS pending CROSS JOIN LATERAL (
    SELECT status, currency_code FROM invoices WHERE id = pending.invoice_id AND status <> 'pending' LIMIT 1
  ) AS invoice LIMIT :page
), gone AS (
  DELETE FROM segment_pending USING ended
  WHERE segment_pending.merchant_id = ended.merchant_id AND segment_pending.invoice_id = ended.invoice_id
), added AS (
  UPDATE invoice_segments AS kept SET {", ".join(f"{each} = kept.{each} + ended.{each}" for each in _FINAL)}
  FROM (
    SELECT merchant_id, size, ordinal / size AS number, currency_code, {_BY_STATUS}
    FROM ended CROSS JOIN {_SIZES} GROUP BY 1, 2, 3, 4
  ) AS ended
  WHERE kept.merchant_id = ended.merchant_id AND kept.size = ended.size AND kept.number = ended.number
    AND kept.currency_code = ended.currency_code
)
SELECT count(*) FROM ended
""")  # noqa: S608  made of constants


def count_next(tx: Session, *, until: datetime, page: int) -> bool:
    """Counts the next invoices created before `until`, and those that have ended since they were counted: a page of
    each at most. Returns whether more may wait. Does nothing while another process does it.
    """
    if not tx.scalar(_LOCK):
        return False
    values = {"until": until, "page": page, **_sizes()}
    return page in (tx.scalar(_MOVE_ENDED, values), tx.scalar(_COUNT, values))


_BEHIND: Final = text("""
SELECT greatest(interval '0', :now - (
  SELECT created_at FROM invoices
  WHERE (created_at, id) > (SELECT invoice_at, invoice_id FROM segment_place) ORDER BY created_at, id LIMIT 1
))
""")


def time_behind(connection: Connection, now: datetime) -> timedelta:
    """Returns the age of the oldest invoice that is not counted yet; 0 when there is none."""
    return cast(timedelta, connection.scalar(_BEHIND, {"now": now}))


# -- reading: all of it in one transaction that reads the database at one moment


@dataclass(frozen=True)
class ListFilter:
    """Conditions on a merchant's invoices; a null one matches all."""

    merchant_id: UUID
    status: InvoiceStatus | None
    currency_code: str | None

    @property
    def values(self) -> Mapping[str, Any]:
        return {
            "merchant_id": self.merchant_id,
            "status": self.status,
            "currency_code": self.currency_code,
            **_sizes(),
        }


@dataclass(frozen=True)
class Counted:
    """The number of invoices under a filter in each large segment, without those that have ended since they were
    counted. The invoices behind `place` are not counted.
    """

    place: Place
    by_large: Mapping[int, int]


NOTHING_COUNTED: Final = Counted((datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0)), {})


@dataclass
class Segment:
    """The invoices of a small segment under a filter: their number, and a first and a last place that they stand
    between.
    """

    number: int
    first: Place
    last: Place
    count: int


_COUNTED: Final = """
SELECT invoice_at, invoice_id, number, CAST(sum({column}) AS bigint) AS invoices
FROM segment_place LEFT JOIN invoice_segments
  ON merchant_id = :merchant_id AND size = :large AND (:currency_code IS NULL OR currency_code = :currency_code)
GROUP BY 1, 2, 3 ORDER BY 3
"""
_ENDED: Final = text("""
SELECT ordinal / :small AS number, count(*) AS invoices FROM segment_pending AS pending CROSS JOIN LATERAL (
  SELECT FROM invoices
  WHERE id = pending.invoice_id AND status = :status AND (:currency_code IS NULL OR currency_code = :currency_code)
  LIMIT 1
) AS ended WHERE merchant_id = :merchant_id GROUP BY 1
""")
_OF_LARGE: Final = """
SELECT number, first_at, first_id, last_at, last_id, {column} AS invoices
FROM unnest(CAST(:numbers AS bigint[])) AS wanted (large) CROSS JOIN LATERAL (
  SELECT * FROM invoice_segments
  WHERE merchant_id = :merchant_id AND size = :small
    AND number >= large * :large / :small AND number < (large + 1) * :large / :small
    AND (:currency_code IS NULL OR currency_code = :currency_code)
    AND ({column} > 0 OR number = ANY(CAST(:ended AS bigint[]))) OFFSET 0
) AS segment ORDER BY number
"""


def _sizes() -> Mapping[str, int]:
    return {"small": SMALL, "large": LARGE}


def _of_status(statement: str, status: InvoiceStatus | None) -> TextClause:
    return text(statement.format(column=status or "created"))


def counted(connection: Connection, wanted: ListFilter) -> Counted:
    """Returns what is counted. Pending invoices are not: they are few, and an index has them."""
    if wanted.status is InvoiceStatus.PENDING:
        return NOTHING_COUNTED
    rows = connection.execute(_of_status(_COUNTED, wanted.status), wanted.values).all()
    place = (rows[0].invoice_at, rows[0].invoice_id)
    return Counted(place, {row.number: row.invoices for row in rows if row.number is not None})


def ended_since(connection: Connection, wanted: ListFilter) -> Counter[int]:
    """Returns the numbers of invoices of a final status that have ended since they were counted, by small segment."""
    rows = connection.execute(_ENDED, wanted.values)
    return Counter({row.number: row.invoices for row in rows})


def of_large(
    connection: Connection, wanted: ListFilter, large: Sequence[int], ended: Counter[int]
) -> list[Segment]:
    """Returns the small segments of the given large ones that have any invoices under the filter, in their order: those
    that were counted, and those that have ended since.
    """
    if not large:
        return []
    found: dict[int, Segment] = {}
    values = {**wanted.values, "numbers": list(large), "ended": list(ended)}
    for row in connection.execute(_of_status(_OF_LARGE, wanted.status), values):
        first, last = (row.first_at, row.first_id), (row.last_at, row.last_id)
        segment = found.setdefault(row.number, Segment(row.number, first, last, ended[row.number]))
        segment.first, segment.last = min(segment.first, first), max(segment.last, last)
        segment.count += row.invoices
    return list(found.values())
