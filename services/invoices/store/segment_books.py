"""The proof of the counts of merchants' invoices by segment (`store.segments`), from the invoices."""

from typing import Final

from kit.db.books import Part

SEGMENTS_AT_ONCE: Final = 50
"""The segments that are compared with their invoices in one statement: 50,000 invoices at most."""

# A segment has all invoices of its merchant from its own first one, or from the first of all, up to the next segment or
# to the place that the worker has reached. An invoice in `segment_pending` counts as pending, whatever it is by now; a
# pending one that is not there would never be counted.
_SIZE_OF_SMALL = "size = (SELECT min(size) FROM invoice_segments)"
_COUNTS_ARE_THOSE_OF_THE_ROWS = f"""
WITH small AS (
  SELECT DISTINCT merchant_id, number FROM invoice_segments
  WHERE {_SIZE_OF_SMALL} AND first_id > CAST(:first AS uuid) AND first_id <= CAST(:last AS uuid)
), found AS (
  SELECT segments.* FROM small JOIN invoice_segments AS segments USING (merchant_id, number) WHERE {_SIZE_OF_SMALL}
), spans AS (
  SELECT merchant_id, number, coalesce(own.at, '-infinity') AS first_at, own.id AS first_id,
         coalesce(next.at, 'infinity') AS next_at, next.id AS next_id
  FROM small
  LEFT JOIN LATERAL (
    SELECT first_at AS at, first_id AS id FROM found
    WHERE merchant_id = small.merchant_id AND number = small.number
      AND EXISTS (SELECT FROM invoice_segments AS before
                  WHERE before.merchant_id = small.merchant_id AND {_SIZE_OF_SMALL} AND before.number < small.number)
    ORDER BY first_at, first_id LIMIT 1
  ) AS own ON true
  LEFT JOIN LATERAL (
    SELECT first_at AS at, first_id AS id FROM invoice_segments AS after
    WHERE after.merchant_id = small.merchant_id AND {_SIZE_OF_SMALL} AND after.number > small.number
    ORDER BY number, first_at, first_id LIMIT 1
  ) AS next ON true
), due AS (
  SELECT merchant_id, number, currency_code, count(*) AS created,
         count(*) FILTER (WHERE status = 'success') AS success, count(*) FILTER (WHERE status = 'fail') AS fail,
         count(*) FILTER (WHERE status = 'expired') AS expired, count(*) FILTER (WHERE status = 'canceled') AS canceled,
         (array_agg(id ORDER BY created_at, id))[1] AS first_id,
         (array_agg(id ORDER BY created_at DESC, id DESC))[1] AS last_id,
         count(*) FILTER (WHERE status = 'pending' AND NOT waits) AS lost
  FROM (
    SELECT spans.merchant_id, number, currency_code, created_at, id, waits.invoice_id IS NOT NULL AS waits,
           CASE WHEN waits.invoice_id IS NULL THEN status ELSE 'pending' END AS status
    FROM spans CROSS JOIN LATERAL (
      SELECT id, created_at, currency_code, status FROM invoices
      WHERE merchant_id = spans.merchant_id AND created_at >= first_at AND created_at <= next_at
        AND (first_id IS NULL OR (created_at, id) >= (first_at, first_id))
        AND (next_id IS NULL OR (created_at, id) < (next_at, next_id))
        AND (created_at, id) <= (SELECT invoice_at, invoice_id FROM segment_place) OFFSET 0
    ) AS invoice
    LEFT JOIN segment_pending AS waits ON waits.merchant_id = spans.merchant_id AND waits.invoice_id = invoice.id
  ) AS invoice GROUP BY 1, 2, 3
)
SELECT merchant_id AS id, concat_ws(' ', 'segment', number, currency_code, each.field) AS field,
       coalesce(each.found, '0') AS found, coalesce(each.due, '0') AS due
FROM found FULL JOIN due USING (merchant_id, number, currency_code)
CROSS JOIN LATERAL (VALUES
  ('created', found.created::text, due.created::text), ('success', found.success::text, due.success::text),
  ('fail', found.fail::text, due.fail::text), ('expired', found.expired::text, due.expired::text),
  ('canceled', found.canceled::text, due.canceled::text), ('first', found.first_id::text, due.first_id::text),
  ('last', found.last_id::text, due.last_id::text), ('pending and not noted', '0', due.lost::text)
) AS each (field, found, due)
WHERE coalesce(each.found, '0') <> coalesce(each.due, '0')
ORDER BY 1, 2 LIMIT 100
"""  # noqa: S608  made of constants

_LARGE_COUNTS_ARE_THOSE_OF_THE_SMALL = """
WITH sizes AS (
  SELECT min(size) AS small, max(size) AS large FROM invoice_segments
), wanted AS (
  SELECT DISTINCT merchant_id, number * small / large AS number FROM invoice_segments CROSS JOIN sizes
  WHERE size = small AND first_id > CAST(:first AS uuid) AND first_id <= CAST(:last AS uuid)
), due AS (
  SELECT merchant_id, wanted.number, currency_code, sum(created) AS created, sum(success) AS success, sum(fail) AS fail,
         sum(expired) AS expired, sum(canceled) AS canceled
  FROM wanted CROSS JOIN sizes JOIN invoice_segments AS each USING (merchant_id)
  WHERE each.size = small AND each.number >= wanted.number * large / small
    AND each.number < (wanted.number + 1) * large / small
  GROUP BY 1, 2, 3
), found AS (
  SELECT each.* FROM wanted CROSS JOIN sizes JOIN invoice_segments AS each USING (merchant_id, number)
  WHERE each.size = large
)
SELECT merchant_id AS id, concat_ws(' ', 'large segment', number, currency_code) AS field,
       concat_ws(' ', found.created, found.success, found.fail, found.expired, found.canceled) AS found,
       concat_ws(' ', due.created, due.success, due.fail, due.expired, due.canceled) AS due
FROM found FULL JOIN due USING (merchant_id, number, currency_code)
WHERE (found.created, found.success, found.fail, found.expired, found.canceled)
  IS DISTINCT FROM (due.created, due.success, due.fail, due.expired, due.canceled)
ORDER BY 1, 2 LIMIT 100
"""

# Once, with the first page.
_EACH_MERCHANT_HAS_SEGMENTS = """
WITH RECURSIVE merchants AS (
  (SELECT merchant_id AS id FROM invoices
   WHERE CAST(:first AS uuid) = '00000000-0000-0000-0000-000000000000' ORDER BY merchant_id LIMIT 1)
  UNION ALL
  SELECT (SELECT merchant_id FROM invoices WHERE merchant_id > merchants.id ORDER BY merchant_id LIMIT 1)
  FROM merchants WHERE id IS NOT NULL
)
SELECT id, 'segments' AS field, 'none' AS found, 'those of its invoices' AS due FROM merchants
WHERE NOT EXISTS (SELECT FROM invoice_segments WHERE merchant_id = merchants.id)
  AND EXISTS (SELECT FROM invoices
              WHERE merchant_id = merchants.id AND CAST(:last AS uuid) IS NOT NULL
                AND (created_at, invoices.id) <= (SELECT invoice_at, invoice_id FROM segment_place))
LIMIT 100
"""

COUNTS: Final = Part(
    name="counts of invoices",
    one="counts of merchant",
    table="invoice_segments",
    key="first_id",
    page_most=SEGMENTS_AT_ONCE,
    follows=(
        _COUNTS_ARE_THOSE_OF_THE_ROWS,
        _LARGE_COUNTS_ARE_THOSE_OF_THE_SMALL,
        _EACH_MERCHANT_HAS_SEGMENTS,
    ),
)
