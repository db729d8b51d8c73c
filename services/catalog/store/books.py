"""Invariants of the rates (kit.db.books), computed a second time, apart from the code that records them."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Final

from kit.db.books import Part
from services.catalog.domain import RATE_BEFORE, SOURCES_REMEMBERED

# The last days only: older rates are not in force any more, and MAX_JUMP may have been different then.
_RECENT: Final = """
rates.id > CAST(:first AS bigint) AND rates.id <= CAST(:last AS bigint) AND rates.taken_at > now() - interval '2 days'
"""

_BEFORE: Final = """
JOIN LATERAL (
  SELECT source_rate, taken_at FROM rates AS earlier
  WHERE earlier.currency_code = rates.currency_code AND earlier.id < rates.id {condition}
  ORDER BY earlier.id DESC LIMIT 1
) AS before ON true
"""

# A rate is compared with the newest rate, the operator's that was in force, and the sources' last one for a day. For
# each rate that an operator set with --anyway it is also compared with the rate before, which that one names.
_NO_RATE_JUMPS: Final = """
SELECT rates.id, rates.currency_code || ' source_rate' AS field, trim_scale(rates.source_rate) AS found,
       'within {max_jump} of a rate before, ' || before.numbers || ', or accepted by an operator' AS due
FROM rates CROSS JOIN LATERAL (
  SELECT string_agg(DISTINCT trim_scale(number)::text, ' or ') AS numbers,
         bool_or(abs(rates.source_rate - number) <= number * {max_jump}) AS is_near,
         bool_or(EXISTS (
           SELECT FROM jsonb_to_recordset(rates.document -> 'quotes') AS quote (source text, rate numeric)
           WHERE quote.source = '{marked}' AND coalesce(quote.rate = number, true)
         )) AS is_named
  FROM (
    (SELECT * FROM rates AS earlier WHERE {earlier} ORDER BY id DESC LIMIT 1)
    UNION
    (SELECT * FROM (
       SELECT * FROM rates AS earlier WHERE {earlier} AND origin <> 'sources' ORDER BY id DESC LIMIT 1
     ) AS decided WHERE origin = 'operator' AND taken_at >= rates.taken_at - interval '{max_age}')
    UNION
    (SELECT * FROM (
       SELECT * FROM rates AS earlier WHERE {earlier} AND origin <> 'operator' ORDER BY id DESC LIMIT 1
     ) AS sourced WHERE taken_at >= rates.taken_at - interval '{remembered}')
  ) AS known CROSS JOIN LATERAL (
    SELECT known.source_rate
    UNION
    SELECT rate FROM jsonb_to_recordset(known.document -> 'quotes') AS quote (source text, rate numeric)
    WHERE known.origin = 'operator' AND source = '{marked}' AND rate IS NOT NULL
  ) AS numbers (number)
) AS before
WHERE {recent} AND NOT (before.is_near OR rates.origin = 'accepted' OR rates.origin = 'operator' AND before.is_named)
"""

_POLLED_RATES_FOLLOW_THE_SOURCES: Final = """
SELECT rates.id, rates.currency_code || ' source_rate' AS field, trim_scale(rates.source_rate) AS found,
       'between the rates of its sources, ' || coalesce(quoted.least || ' and ' || quoted.most, 'which are none') AS due
FROM rates CROSS JOIN LATERAL (
  SELECT trim_scale(min(rate)) AS least, trim_scale(max(rate)) AS most
  FROM jsonb_to_recordset(rates.document -> 'quotes') AS quote (rate numeric)
) AS quoted
WHERE {recent} AND rates.origin <> 'operator'
  AND NOT coalesce(rates.source_rate BETWEEN trunc(quoted.least, 8) AND quoted.most, false)
"""

_TIMES_GO_ON: Final = """
SELECT rates.id, rates.currency_code || ' taken_at' AS field, rates.taken_at AS found,
       'not in the future, and not before ' || before.taken_at || ' of the rate before' AS due
FROM rates {before}
WHERE {recent} AND rates.origin <> 'accepted'
  AND NOT rates.taken_at BETWEEN before.taken_at - interval '60 seconds' AND now() + interval '60 seconds'
"""


def parts(max_jump: Decimal, max_age: timedelta) -> Sequence[Part]:
    """Returns the invariants of rates. A forged row that keeps them can't be distinguished from one that the
    service made.
    """
    values = {
        "recent": _RECENT,
        "max_jump": f"{max_jump:f}",
        "max_age": f"{max_age.total_seconds():.0f} seconds",
        "remembered": f"{SOURCES_REMEMBERED.total_seconds():.0f} seconds",
        "marked": RATE_BEFORE,
        "earlier": "earlier.currency_code = rates.currency_code AND earlier.id < rates.id",
        "before": _BEFORE.format(condition=""),
    }
    polled = values | {"before": _BEFORE.format(condition="AND earlier.origin <> 'accepted'")}
    return [
        Part(
            name="rates",
            one="rate",
            table="(SELECT id FROM rates WHERE taken_at > now() - interval '2 days') AS recent",
            key_type="bigint",
            follows=(
                _NO_RATE_JUMPS.format(**values),
                _POLLED_RATES_FOLLOW_THE_SOURCES.format(**values),
                _TIMES_GO_ON.format(**polled),
            ),
        )
    ]
