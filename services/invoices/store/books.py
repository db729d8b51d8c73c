"""Invariants of invoices, deals, their history and requisites (kit.db.books), computed a second time, apart from
the code that writes them.
"""

from typing import Final

from kit.db.books import Part
from services.invoices.domain.states import TRANSITIONS
from services.invoices.store import segment_books

DAYS_AT_ONCE: Final = 7
"""The days whose sums are compared in one statement: of a busy year, some seconds of the 50 that it may take."""
# -- invoices

_STATUS_FOLLOWS_THE_DEAL = """
SELECT invoices.id, 'status' AS field, invoices.status AS found, follows.status || ', for its deal is ' || deals.status
  AS due
FROM invoices JOIN deals ON deals.id = invoices.deal_id
JOIN (VALUES ('pending', 'pending'), ('appeal', 'pending'), ('completed', 'success'), ('failed', 'fail'),
             ('expired', 'expired'), ('canceled', 'canceled')) AS follows (deal, status) ON follows.deal = deals.status
WHERE invoices.id > CAST(:first AS uuid) AND invoices.id <= CAST(:last AS uuid)
  AND invoices.status <> follows.status
"""

_NO_SUCCESS_WITHOUT_A_DEAL = """
SELECT id, 'status' AS field, status AS found, 'pending, expired or canceled, for it has no deal' AS due
FROM invoices
WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
  AND deal_id IS NULL AND status IN ('success', 'fail')
"""

# Every deal of an invoice except its newest was replaced by another deal.
_DEAL_IS_THE_NEWEST = """
SELECT invoices.id, 'deal_id' AS field, coalesce(invoices.deal_id::text, 'nothing') AS found,
       coalesce(newest.ids, 'nothing') AS due
FROM invoices CROSS JOIN LATERAL (
  SELECT string_agg(id::text, ' or ') AS ids FROM deals WHERE invoice_id = invoices.id AND sub_status <> 'replaced'
) AS newest
WHERE invoices.id > CAST(:first AS uuid) AND invoices.id <= CAST(:last AS uuid)
  AND invoices.deal_id::text IS DISTINCT FROM newest.ids
"""

_ENDS_WITH_ITS_DEAL = """
SELECT invoices.id, 'finished_at' AS field, invoices.finished_at AS found, deals.finished_at AS due
FROM invoices JOIN deals ON deals.id = invoices.deal_id
WHERE invoices.id > CAST(:first AS uuid) AND invoices.id <= CAST(:last AS uuid)
  AND invoices.finished_at <> deals.finished_at
"""

# -- deals

_DEAL_IS_OF_ITS_INVOICE = """
SELECT deals.id, compared.field, compared.found, coalesce(compared.due, 'nothing: there is no such invoice') AS due
FROM deals LEFT JOIN invoices ON invoices.id = deals.invoice_id
CROSS JOIN LATERAL (VALUES
  ('invoice_amount', deals.invoice_amount::text, invoices.amount::text),
  ('currency_code', deals.currency_code, invoices.currency_code),
  ('merchant_id', deals.merchant_id::text, invoices.merchant_id::text)
) AS compared (field, found, due)
WHERE deals.id > CAST(:first AS uuid) AND deals.id <= CAST(:last AS uuid)
  AND compared.found IS DISTINCT FROM compared.due
"""

# The customer sends the amount plus the client's part of the commission, rounded up. The merchant is credited the
# amount less the merchant's part, at the locked rate, rounded down to 6 decimals. Exact: products and div() only.
_AMOUNTS_FOLLOW_THE_TERMS = """
SELECT deals.id, compared.field, coalesce(trim_scale(compared.found)::text, 'nothing') AS found,
       coalesce(trim_scale(compared.due)::text, 'nothing') AS due
FROM deals
CROSS JOIN LATERAL (
  SELECT coalesce(adjusted_amount, invoice_amount) AS paid, power(10::numeric, currency_decimals) AS unit
) AS base
CROSS JOIN LATERAL (VALUES
  ('amount_fiat', amount_fiat, ceil(paid * (100 + client_percent) * 0.01 * unit) / unit),
  ('merchant_usdt', merchant_usdt, CASE WHEN deals.status = 'completed'
     THEN div(paid * (100 - merchant_percent) * 1000000, conversion_rate * 100) * 0.000001 END)
) AS compared (field, found, due)
WHERE deals.id > CAST(:first AS uuid) AND deals.id <= CAST(:last AS uuid)
  AND compared.found IS DISTINCT FROM compared.due
"""

_STATE_IS_THE_LAST_STEP = """
SELECT deals.id, 'status' AS field, deals.status || ' (' || deals.sub_status || ')' AS found,
       coalesce(step.status || ' (' || step.sub_status || '), its last step', 'a step of its history') AS due
FROM deals LEFT JOIN LATERAL (
  SELECT status, sub_status, at FROM deal_transitions WHERE deal_id = deals.id ORDER BY id DESC LIMIT 1
) AS step ON true
WHERE deals.id > CAST(:first AS uuid) AND deals.id <= CAST(:last AS uuid)
  AND (deals.status, deals.sub_status) IS DISTINCT FROM (step.status, step.sub_status)
"""

_TIMES_ARE_THOSE_OF_THE_STEPS = """
SELECT deals.id, compared.field, compared.found, compared.due
FROM deals CROSS JOIN LATERAL (
  SELECT (SELECT at FROM deal_transitions WHERE deal_id = deals.id ORDER BY id LIMIT 1) AS began,
         (SELECT at FROM deal_transitions WHERE deal_id = deals.id ORDER BY id DESC LIMIT 1) AS ended
) AS steps
CROSS JOIN LATERAL (VALUES ('created_at', created_at, began), ('finished_at', finished_at, ended))
  AS compared (field, found, due)
WHERE deals.id > CAST(:first AS uuid) AND deals.id <= CAST(:last AS uuid)
  AND compared.found <> compared.due
"""

_STEPS: Final = ", ".join(
    sorted(
        {
            f"('{source.status}', '{source.sub_status}', '{step.target.status}', '{step.target.sub_status}')"
            for (source, _), step in TRANSITIONS.items()
        }
    )
)

_EACH_STEP_IS_ALLOWED = f"""
SELECT deal_id AS id, 'transition ' || id AS field, status || ' (' || sub_status || ')' AS found,
       CASE WHEN before IS NULL THEN 'pending (awaiting_payment), the first one'
            ELSE 'a step from ' || before || ' (' || before_sub || ')' END AS due
FROM (
  SELECT deal_id, id, status, sub_status, lag(status) OVER steps AS before, lag(sub_status) OVER steps AS before_sub
  FROM deal_transitions
  WHERE deal_id > CAST(:first AS uuid) AND deal_id <= CAST(:last AS uuid)
  WINDOW steps AS (PARTITION BY deal_id ORDER BY id)
) AS step
WHERE CASE WHEN before IS NULL THEN (status, sub_status) <> ('pending', 'awaiting_payment')
           ELSE (before, before_sub, status, sub_status) NOT IN ({_STEPS}) END
"""  # noqa: S608  made of the domain's constants

_ACCOUNT_IS_OF_ITS_METHOD = """
SELECT deals.id, 'requisite_id' AS field, deals.requisite_id AS found,
       'an account of ' || deals.method_code || ', not ' || coalesce(requisites.method_code, 'one that is not there')
         AS due
FROM deals LEFT JOIN requisites ON requisites.id = deals.requisite_id
WHERE deals.id > CAST(:first AS uuid) AND deals.id <= CAST(:last AS uuid)
  AND deals.method_code IS DISTINCT FROM requisites.method_code
"""

# The schema of the version before has no references: there all deals are alone.
_ALONE_OR_WITH_REFERENCE = """
SELECT deals.id, 'amount_fiat' AS field, deals.amount_fiat AS found,
       'an amount without another open deal on its account, for its transfer has no reference' AS due
FROM deals
WHERE deals.id > CAST(:first AS uuid) AND deals.id <= CAST(:last AS uuid) AND deals.status IN ('pending', 'appeal')
  AND NOT coalesce(CAST(to_jsonb(deals) ->> 'takes_reference' AS boolean), false)
  AND EXISTS (
    SELECT FROM deals AS other
    WHERE other.requisite_id = deals.requisite_id AND other.amount_fiat = deals.amount_fiat AND other.id <> deals.id
      AND other.status IN ('pending', 'appeal')
  )
"""

# -- requisites and cases

_OPEN_DEALS_ARE_COUNTED = """
SELECT requisites.id, 'open_deals' AS field, open_deals AS found, counted.deals AS due
FROM requisites CROSS JOIN LATERAL (
  SELECT count(*) AS deals FROM deals WHERE requisite_id = requisites.id AND status IN ('pending', 'appeal')
) AS counted
WHERE requisites.id > CAST(:first AS uuid) AND requisites.id <= CAST(:last AS uuid)
  AND open_deals <> counted.deals
"""

_CASE_IS_OF_ITS_INVOICE = """
SELECT cases.number AS id, compared.field, compared.found,
       coalesce(compared.due, 'nothing: there is no such invoice') AS due
FROM cases LEFT JOIN invoices ON invoices.id = cases.invoice_id
CROSS JOIN LATERAL (VALUES
  ('deal_id', cases.deal_id::text, invoices.deal_id::text),
  ('merchant_id', cases.merchant_id::text, invoices.merchant_id::text)
) AS compared (field, found, due)
WHERE cases.invoice_id > CAST(:first AS uuid) AND cases.invoice_id <= CAST(:last AS uuid)
  AND compared.found IS DISTINCT FROM compared.due
"""

# -- the sums of days that are over, computed from the invoices and deals instead of from the events

# An event has a row in its deal's history, so the deals of some days are found there. The last day that is compared has
# ended five minutes before the place of the sums: until then a row may stand behind a later one (operations/reports).
_DAYS = """
span AS (
  SELECT CAST(CAST(:first AS date) + 1 AS timestamp) AT TIME ZONE 'UTC' AS since,
         least(CAST(CAST(:last AS date) + 1 AS timestamp),
               date_trunc('day', (summed_until - interval '5 minutes') AT TIME ZONE 'UTC')) AT TIME ZONE 'UTC' AS until
  FROM daily_place WHERE summed_until > '-infinity'
), of_these_days AS (
  SELECT * FROM deals WHERE id IN (
    SELECT deal_id FROM deal_transitions WHERE at >= (SELECT since FROM span) AND at < (SELECT until FROM span)
  )
)
"""
_IS_SUMMED = "day > CAST(:first AS date) AND day < (SELECT CAST(until AT TIME ZONE 'UTC' AS date) FROM span)"

_SUMS_ARE_THOSE_OF_THE_ROWS = f"""
WITH {_DAYS}, events AS (
  SELECT created_at AS at, merchant_id, currency_code, '' AS method_code, 'created' AS field, 1.0 AS value
  FROM invoices WHERE created_at >= (SELECT since FROM span) AND created_at < (SELECT until FROM span)
  UNION ALL
  SELECT event.at, merchant_id, currency_code, method_code, event.field, event.value
  FROM of_these_days
  CROSS JOIN LATERAL (SELECT coalesce(adjusted_amount, invoice_amount) AS paid) AS base
  CROSS JOIN LATERAL (VALUES
    ('opened', created_at, 1.0),
    ('marked', mark_paid_at, 1.0),
    ('replaced', finished_at, CASE WHEN sub_status = 'replaced' THEN 1.0 END),
    ('rejected', finished_at, CASE WHEN status = 'failed' THEN 1.0 END),
    ('confirmed', finished_at, CASE WHEN status = 'completed' THEN 1.0 END),
    ('turnover', finished_at, CASE WHEN status = 'completed' THEN amount_fiat END),
    ('commission', finished_at, CASE WHEN status = 'completed'
       THEN amount_fiat - paid + paid * merchant_percent / 100 END),
    ('turnover_usdt', finished_at, CASE WHEN status = 'completed' THEN round(amount_fiat / conversion_rate, 6) END),
    ('credited_usdt', finished_at, CASE WHEN status = 'completed' THEN merchant_usdt END)
  ) AS event (field, at, value)
  WHERE event.at >= (SELECT since FROM span) AND event.at < (SELECT until FROM span)
), due AS (
  SELECT CAST(at AT TIME ZONE 'UTC' AS date) AS day, merchant_id, currency_code, method_code, field, sum(value) AS value
  FROM events WHERE value IS NOT NULL
  GROUP BY 1, 2, 3, 4, 5
), found AS (
  SELECT day, merchant_id, currency_code, method_code, each.field, each.value
  FROM daily_sums CROSS JOIN LATERAL (VALUES
    ('created', created), ('opened', opened), ('replaced', replaced), ('marked', marked), ('confirmed', confirmed),
    ('rejected', rejected), ('turnover', turnover), ('commission', commission), ('turnover_usdt', turnover_usdt),
    ('credited_usdt', credited_usdt)
  ) AS each (field, value)
  WHERE each.value <> 0 AND {_IS_SUMMED}
)
SELECT merchant_id AS id, concat_ws(' ', day, currency_code, nullif(method_code, ''), field) AS field,
       trim_scale(coalesce(found.value, 0)) AS found, trim_scale(coalesce(due.value, 0)) AS due
FROM due FULL JOIN found USING (day, merchant_id, currency_code, method_code, field)
WHERE coalesce(due.value, 0) <> coalesce(found.value, 0)
ORDER BY 1, 2 LIMIT 100
"""  # noqa: S608  made of constants

# A deal that was not marked paid has no time; so the spans are fewer than the confirmed deals.
_TIMES_ARE_THOSE_OF_THE_DEALS = f"""
WITH {_DAYS}, due AS (
  SELECT CAST(finished_at AT TIME ZONE 'UTC' AS date) AS day, merchant_id, currency_code, method_code, count(*) AS deals
  FROM of_these_days
  WHERE status = 'completed' AND mark_paid_at IS NOT NULL
    AND finished_at >= (SELECT since FROM span) AND finished_at < (SELECT until FROM span)
  GROUP BY 1, 2, 3, 4
), found AS (
  SELECT day, merchant_id, currency_code, method_code, sum(deals) AS deals
  FROM daily_times
  WHERE {_IS_SUMMED}
  GROUP BY 1, 2, 3, 4
)
SELECT merchant_id AS id, concat_ws(' ', day, currency_code, method_code, 'times') AS field,
       coalesce(found.deals, 0) AS found, coalesce(due.deals, 0) AS due
FROM due FULL JOIN found USING (day, merchant_id, currency_code, method_code)
WHERE coalesce(due.deals, 0) <> coalesce(found.deals, 0)
ORDER BY 1, 2 LIMIT 100
"""  # noqa: S608  made of constants


PARTS: Final = (
    Part(
        name="invoices",
        one="invoice",
        table="invoices",
        kind="invoice",
        kept=("merchant_id", "key_id", "external_id", "amount", "currency_code", "callback_url"),
        follows=(
            _STATUS_FOLLOWS_THE_DEAL,
            _NO_SUCCESS_WITHOUT_A_DEAL,
            _DEAL_IS_THE_NEWEST,
            _ENDS_WITH_ITS_DEAL,
        ),
    ),
    Part(
        name="deals",
        one="deal",
        table="deals",
        kind="deal",
        kept=(
            "invoice_id",
            "merchant_id",
            "currency_code",
            "currency_decimals",
            "invoice_amount",
            "conversion_rate",
            "client_percent",
            "merchant_percent",
            "requisite_id",
            "reference",
            "takes_reference",
        ),
        follows=(
            _DEAL_IS_OF_ITS_INVOICE,
            _AMOUNTS_FOLLOW_THE_TERMS,
            _STATE_IS_THE_LAST_STEP,
            _TIMES_ARE_THOSE_OF_THE_STEPS,
            _EACH_STEP_IS_ALLOWED,
            _ACCOUNT_IS_OF_ITS_METHOD,
            _ALONE_OR_WITH_REFERENCE,
        ),
    ),
    Part(
        name="histories of deals",
        one="deal",
        table="deal_transitions",
        key="deal_id",
        kind="transition",
        row="id",
        made_at="at",
    ),
    Part(
        name="requisites",
        one="requisite",
        table="requisites",
        kind="requisite",
        kept=("method_code", "holder", "account", "bank"),
        follows=(_OPEN_DEALS_ARE_COUNTED,),
    ),
    Part(
        name="cases",
        one="case",
        table="cases",
        key="invoice_id",
        kind="case",
        subject="number",
        made_at="opened_at",
        kept=("number", "deal_id", "merchant_id", "note"),
        follows=(_CASE_IS_OF_ITS_INVOICE,),
    ),
    Part(
        name="sums of days",
        one="sums of merchant",
        table="daily_sums",
        key="day",
        key_type="date",
        page_most=DAYS_AT_ONCE,
        follows=(_SUMS_ARE_THOSE_OF_THE_ROWS, _TIMES_ARE_THOSE_OF_THE_DEALS),
    ),
    segment_books.COUNTS,
)
