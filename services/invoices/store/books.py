"""Invariants of invoices, deals and requisites (kit.db.books), computed a second time, apart from the code that writes
them.
"""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Text, cast, collate, select, text
from sqlalchemy.orm import Session

from kit.audit import approval_books
from kit.audit.decisions import Decided, acts_on, follow_acts
from kit.base.actors import Actor
from kit.db.books import Difference, Follows, Part
from kit.db.database import seals_of
from kit.db.described import schema_part
from services.invoices.models import Case, Deal, Invoice
from services.invoices.store.decisions import (
    CASE,
    CASE_ANSWER,
    DEAL,
    LINE_PAYMENT,
    LINE_RULE,
    LINK,
    REQUISITE,
    SWITCH,
    has_its_terms,
    is_as_created,
    is_as_opened,
)

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

# The customer sends the amount plus the client's part of the commission, rounded up. An adjusted deal has what came: it
# pays for the order's part, rounded down. The merchant is credited the amount less the merchant's part, at the locked
# rate, rounded down to 6 decimals. Exact: products and div() only.
_AMOUNTS_FOLLOW_THE_TERMS = """
SELECT deals.id, compared.field, coalesce(trim_scale(compared.found)::text, 'nothing') AS found,
       coalesce(trim_scale(compared.due)::text, 'nothing') AS due
FROM deals
CROSS JOIN LATERAL (
  SELECT coalesce(adjusted_amount, invoice_amount) AS paid, power(10::numeric, currency_decimals) AS unit
) AS base
CROSS JOIN LATERAL (VALUES
  ('amount_fiat', amount_fiat, CASE
     WHEN adjusted_amount * unit = div(amount_fiat * 100 * unit, 100 + client_percent) THEN amount_fiat
     ELSE ceil(paid * (100 + client_percent) * 0.01 * unit) / unit END),
  ('merchant_usdt', merchant_usdt, CASE WHEN deals.status = 'completed'
     THEN div(paid * (100 - merchant_percent) * 1000000, conversion_rate * 100) * 0.000001 END)
) AS compared (field, found, due)
WHERE deals.id > CAST(:first AS uuid) AND deals.id <= CAST(:last AS uuid)
  AND compared.found IS DISTINCT FROM compared.due
"""

_ACCOUNT_IS_OF_ITS_METHOD = """
SELECT deals.id, 'requisite_id' AS field, deals.requisite_id AS found,
       'an account of ' || deals.method_code || ', not ' || coalesce(requisites.method_code, 'one that is not there')
         AS due
FROM deals LEFT JOIN requisites ON requisites.id = deals.requisite_id
WHERE deals.id > CAST(:first AS uuid) AND deals.id <= CAST(:last AS uuid)
  AND deals.method_code IS DISTINCT FROM requisites.method_code
"""

# -- requisites

_OPEN_DEALS_ARE_COUNTED = """
SELECT requisites.id, 'open_deals' AS field, open_deals AS found, counted.deals AS due
FROM requisites CROSS JOIN LATERAL (
  SELECT count(*) AS deals FROM deals WHERE requisite_id = requisites.id AND status IN ('pending', 'appeal')
) AS counted
WHERE requisites.id > CAST(:first AS uuid) AND requisites.id <= CAST(:last AS uuid)
  AND open_deals <> counted.deals
"""


def _invoices_are_sealed(tx: Session, first: str, last: str) -> Iterator[Difference]:
    seals = seals_of(tx)
    for invoice in tx.scalars(select(Invoice).where(Invoice.id > first, Invoice.id <= last)):
        if not is_as_created(seals, invoice):
            yield invoice.id, "terms", "not those that create-invoice was asked for", "sealed by invoices"


def _terms_are_sealed(tx: Session, first: str, last: str) -> Iterator[Difference]:
    seals = seals_of(tx)
    for deal in tx.scalars(select(Deal).where(Deal.id > first, Deal.id <= last)):
        if not has_its_terms(seals, deal):
            yield deal.id, "terms", "not those that were locked when it was opened", "sealed by invoices"


# A deal that was restored from its fact, or accepted by two operators, has an act on its invoice. Its fact proves it.
_RESTORED: Final = ("invoice.restore", "invoice.accept")
_DECIDED: Final = """
(status IN ('completed', 'failed') OR sub_status = 'opened_by_operator'
  OR EXISTS (SELECT FROM acts WHERE object = 'deal:' || deals.id AND act = 'deal.appeal' AND refused = ''))
"""
_deals_follow_acts: Final = follow_acts(DEAL, table="deals", where=_DECIDED, made_by=DEAL.acts)


def _deals_follow_their_acts(tx: Session, first: str, last: str) -> Iterator[Difference]:
    wrong = list(_deals_follow_acts(tx, first, last))
    named = select(Deal.id, Deal.invoice_id).where(Deal.id.in_([each[0] for each in wrong]))
    invoices = {str(id): f"invoice:{invoice_id}" for id, invoice_id in tx.execute(named)}
    restored = {act["object"] for act in acts_on(tx, invoices.values(), _RESTORED)}
    yield from (each for each in wrong if invoices.get(str(each[0])) not in restored)


# A text, as in the objects of acts: their order decides which acts belong to a page.
_NUMBER: Final = "CAST(number AS text)"


def _cases_are_sealed(tx: Session, first: str, last: str) -> Iterator[Difference]:
    seals, number = seals_of(tx), collate(cast(Case.number, Text), "C")
    for case in tx.scalars(select(Case).where(number > first, number <= last)):
        if not is_as_opened(seals, case):
            yield case.number, "terms", "not those with which it was opened", "sealed by invoices"


def _has_the_author_of_its_act(table: str, *, key: str, decided: Decided, column: str = "actor") -> Follows:
    """Returns the rule that the `column` of each row is the author of its newest act.

    The act does not name its author among its values: members read those.
    """
    within = f'{key} COLLATE "C" > :first AND {key} COLLATE "C" <= :last'
    rows = text(f"SELECT {key} AS id, {column} AS actor FROM {table} WHERE {within}")  # noqa: S608  made of constants

    def follows(tx: Session, first: str, last: str) -> Iterator[Difference]:
        found = {f"{decided.kind}:{row.id}": row for row in tx.execute(rows, {"first": first, "last": last})}
        authors = {
            act["object"]: str(
                Actor(kind=act["actor_kind"], name=act["actor_name"], on_behalf_of=act["on_behalf_of"])
            )
            for act in acts_on(tx, found, decided.acts)
        }
        for object, author in authors.items():
            if found[object].actor != author:
                yield found[object].id, column, found[object].actor or "nothing", author

    return follows


PARTS: Final = (
    schema_part("invoices"),
    Part(
        name="invoices",
        one="invoice",
        table="invoices",
        follows=(_STATUS_FOLLOWS_THE_DEAL, _DEAL_IS_THE_NEWEST, _invoices_are_sealed),
    ),
    Part(
        name="deals",
        one="deal",
        table="deals",
        follows=(
            _DEAL_IS_OF_ITS_INVOICE,
            _AMOUNTS_FOLLOW_THE_TERMS,
            _ACCOUNT_IS_OF_ITS_METHOD,
            _terms_are_sealed,
            _deals_follow_their_acts,
        ),
    ),
    Part(
        name="requisites",
        one="requisite",
        table="requisites",
        follows=(
            _OPEN_DEALS_ARE_COUNTED,
            follow_acts(REQUISITE, table="requisites", made_by=("requisite.add",)),
        ),
    ),
    Part(
        name="links",
        one="payment link",
        table="links",
        follows=(follow_acts(LINK, table="links", made_by=("link.create",)),),
    ),
    Part(
        name="payments by bank lines",
        one="payment by a bank line",
        table="line_payments",
        key="number",
        key_type="bigint",
        follows=(
            follow_acts(
                LINE_PAYMENT, table="line_payments", id="number", key_type="bigint", made_by=LINE_PAYMENT.acts
            ),
        ),
    ),
    Part(
        name="rules of bank lines",
        one="rule of bank lines",
        table="line_rules",
        key="method_code",
        key_type="text",
        follows=(
            follow_acts(
                LINE_RULE, table="line_rules", id="method_code", key_type="text", made_by=LINE_RULE.acts
            ),
            _has_the_author_of_its_act("line_rules", key="method_code", decided=LINE_RULE),
        ),
    ),
    Part(
        name="switches",
        one="switch",
        table="switches",
        key="name",
        key_type="text",
        follows=(
            follow_acts(
                SWITCH, table="switches", id="name", key_type="text", made_by=SWITCH.acts, has_first=False
            ),
            _has_the_author_of_its_act("switches", key="name", decided=SWITCH),
        ),
    ),
    Part(
        name="cases",
        one="case",
        table="cases",
        key=_NUMBER,
        key_type="text",
        follows=(
            follow_acts(CASE, table="cases", id=_NUMBER, key_type="text", made_by=CASE.acts),
            _has_the_author_of_its_act("cases", key=_NUMBER, decided=CASE),
            follow_acts(CASE_ANSWER, table="cases", id=_NUMBER, key_type="text", made_by=CASE_ANSWER.acts),
            _has_the_author_of_its_act("cases", key=_NUMBER, decided=CASE_ANSWER, column="answered_by"),
            _cases_are_sealed,
        ),
    ),
    approval_books.PART,
)
