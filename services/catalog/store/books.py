"""The rows of the catalog whose values acts decide, and the seals of rates (kit.db.books)."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy.orm import Session

from kit.audit import approval_books
from kit.audit.decisions import follow_acts
from kit.db.books import Difference, Part
from kit.db.database import seals_of
from kit.db.described import schema_part
from services.catalog.store.decisions import CURRENCY, METHOD
from services.catalog.store.rates import is_rate_sealed, numbered_rates


def _rates_are_sealed(tx: Session, first: str, last: str) -> Iterator[Difference]:
    seals = seals_of(tx)
    for number, code, rate in numbered_rates(tx, after_number=int(first), up_to=int(last)):
        if not is_rate_sealed(seals, code, rate):
            yield number, f"{code} rate", rate.source_rate, "one that catalog put in force"


# The times as acts write them. An act of rate.set names the validity too.
_RATES_OF_OPERATORS_STAY: Final = """
SELECT substr(object, 10) AS id, 'rate of ' || taken_at AS field, 'deleted, or valid for another time' AS found,
       'there: it has an act ' || concat_ws(', ', act, changed.validity) AS due
FROM acts CROSS JOIN LATERAL (
  SELECT max(change ->> 2) FILTER (WHERE change ->> 0 = 'taken_at') AS taken_at,
         max(change ->> 2) FILTER (WHERE change ->> 0 = 'validity') AS validity
  FROM jsonb_array_elements(changes) AS change
) AS changed
WHERE act IN ('rate.set', 'rate.accept') AND refused = ''
  AND object COLLATE "C" > 'currency:' || :first AND object COLLATE "C" <= 'currency:' || :last
  AND NOT EXISTS (
    SELECT FROM rates WHERE currency_code = substr(object, 10) AND origin <> 'sources'
      AND to_char(rates.taken_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"') = changed.taken_at
      AND validity = coalesce(changed.validity, 'as_polled')
  )
"""

# "Newest" goes by the number of a row, which no seal covers.
_NEWEST_IS_OF_THE_LAST_ACT: Final = """
SELECT code, 'newest decided rate', newest.taken_at, decided.taken_at || ', by the last act about it'
FROM currencies
CROSS JOIN LATERAL (
  SELECT to_char(taken_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"') AS taken_at FROM rates
  WHERE currency_code = code AND origin <> 'sources' ORDER BY id DESC LIMIT 1
) AS newest
CROSS JOIN LATERAL (
  SELECT change ->> 2 AS taken_at FROM acts, jsonb_array_elements(changes) AS change
  WHERE object = 'currency:' || code AND act IN ('rate.set', 'rate.accept') AND refused = ''
    AND change ->> 0 = 'taken_at'
  ORDER BY id DESC LIMIT 1
) AS decided
WHERE code COLLATE "C" > :first AND code COLLATE "C" <= :last AND newest.taken_at <> decided.taken_at
"""
_POLLED_RATES_ARE_IN_ORDER: Final = """
SELECT rates.id, 'taken_at', rates.taken_at, 'not before ' || earlier.taken_at || ', that of the rate before'
FROM rates CROSS JOIN LATERAL (
  SELECT taken_at FROM rates AS other
  WHERE other.currency_code = rates.currency_code AND other.id < rates.id AND origin = 'sources'
  ORDER BY id DESC LIMIT 1
) AS earlier
WHERE rates.id > CAST(:first AS bigint) AND rates.id <= CAST(:last AS bigint) AND origin = 'sources'
  AND earlier.taken_at > rates.taken_at + interval '5 seconds'
"""

PARTS: Final = (
    schema_part("catalog"),
    Part(
        name="currencies",
        one="currency",
        table="currencies",
        key="code",
        key_type="text",
        follows=(
            follow_acts(CURRENCY, table="currencies", id="code", key_type="text", made_by=CURRENCY.acts),
            _RATES_OF_OPERATORS_STAY,
            _NEWEST_IS_OF_THE_LAST_ACT,
        ),
    ),
    Part(
        name="payment methods",
        one="payment method",
        table="payment_methods",
        key="code",
        key_type="text",
        follows=(
            follow_acts(METHOD, table="payment_methods", id="code", key_type="text", made_by=METHOD.acts),
        ),
    ),
    Part(
        name="rates",
        one="rate",
        table="rates",
        key_type="bigint",
        follows=(_rates_are_sealed, _POLLED_RATES_ARE_IN_ORDER),
    ),
    approval_books.PART,
)
