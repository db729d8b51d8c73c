"""The statement that opens a deal: it finds a requisite with room and a payment reference that is not in use. And the
payment page: whether there is one, and its first opening.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from kit.db import prepared
from kit.db.database import Database, TransactionConflict, refusing, seals_of
from kit.db.prepared import Prepared
from services.invoices.domain.places import REFERENCE_RESTS, NewDeal
from services.invoices.models import DEAL_IS_OPEN
from services.invoices.store.decisions import seal_of_terms
from services.invoices.store.invoices import view_to_pay
from services.invoices.store.shares import accounts_of, may_have_place
from services.invoices.store.views import InvoiceView, RequisiteView

_QUEUE = Prepared(
    "queue_for_requisites",
    "SELECT pg_advisory_xact_lock(hashtextextended('requisites:' || :method_code, 0))",
    {"method_code": "text"},
    lambda _void: None,
)


def queue_for_requisites(tx: Session, method_codes: Collection[str]) -> None:
    """Locks these methods, so that their choices run one after the other and each sees the places that the one before
    took.

    A change from one method to another locks both, always in the same order: else two changes in opposite directions
    would each hold the lock that the other waits for. Call this as late as possible: the others wait until the commit.
    The locks are taken with the next statement of the transaction.
    """
    for code in sorted(method_codes):
        prepared.later(tx, _QUEUE, {"method_code": code})


# The first candidate that no open deal has, and none that ended a short time ago.
_FRESH_REFERENCE = f"""
    SELECT candidate AS reference, seal
    FROM unnest(CAST(:references AS text[]), CAST(:seals AS bytea[]))
      WITH ORDINALITY AS candidates (candidate, seal, number)
    WHERE NOT EXISTS (
        SELECT FROM deals
        WHERE deals.reference = candidate AND ({DEAL_IS_OPEN} OR finished_at > :references_rest_since)
    )
    ORDER BY number LIMIT 1"""  # noqa: S608  made of constants


_PARAMETERS = {
    "id": "uuid",
    "invoice_id": "uuid",
    "merchant_id": "uuid",
    "status": "text",
    "sub_status": "text",
    "method_code": "text",
    "method_name": "text",
    "currency_code": "text",
    "currency_decimals": "integer",
    "invoice_amount": "numeric",
    "amount_fiat": "numeric",
    "conversion_rate": "numeric",
    "client_percent": "numeric",
    "merchant_percent": "numeric",
    "created_at": "timestamptz",
    "expires_at": "timestamptz",
    "actor": "text",
    "share_percent": "bigint",
    "takes_reference": "boolean",
    "references": "text[]",
    "references_rest_since": "timestamptz",
    "rate_basis": "text",
    "seals": "bytea[]",
}


def _id(id: UUID) -> UUID:
    return id


# One round trip, because other choices wait for it: finds a requisite that has a free place and no open deal that
# stands against this amount, if the merchant may have it; inserts the deal, its place in the invoice, and the first row
# of its history. Of several requisites it takes the one with the smallest part of its places taken, then the one used
# longest ago: a merchant must not be able to fill one requisite after the other.
_OPEN_DEAL: Final = Prepared(
    "open_deal",
    f"""
WITH accounts AS (
    {accounts_of(":method_code", ":amount_fiat", ":takes_reference")}
), fresh AS (
    {_FRESH_REFERENCE}
), taken AS (
    UPDATE requisites SET open_deals = open_deals + 1, last_used_at = greatest(last_used_at, :created_at)
    WHERE id = (
        SELECT id FROM accounts
        WHERE free > 0 AND holder IS NULL AND {may_have_place("accounts", ":method_code")}
        ORDER BY open_deals::numeric / max_deals, last_used_at NULLS FIRST, id
        LIMIT 1
    ) AND enabled AND open_deals < max_deals AND EXISTS (SELECT FROM fresh)
      AND NOT EXISTS (SELECT FROM switches WHERE name = 'deals' AND NOT switches.enabled)
    RETURNING id
), opened AS (
    INSERT INTO deals (
        id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code, currency_decimals,
        invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent, requisite_id, created_at,
        expires_at, reference, takes_reference, rate_basis, seal
    )
    SELECT :id, :invoice_id, :merchant_id, :status, :sub_status, :method_code, :method_name, :currency_code,
        :currency_decimals, :invoice_amount, :amount_fiat, :conversion_rate, :client_percent, :merchant_percent,
        taken.id, :created_at, :expires_at, fresh.reference, :takes_reference, CAST(:rate_basis AS jsonb), fresh.seal
    FROM taken, fresh
    RETURNING id, invoice_id, status, sub_status
), placed AS (
    UPDATE invoices SET deal_id = opened.id FROM opened WHERE invoices.id = opened.invoice_id
), first_transition AS (
    INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
    SELECT id, :created_at, status, sub_status, :actor, '' FROM opened
)
SELECT id FROM opened
""",  # noqa: S608  made of constants
    _PARAMETERS,
    _id,
)


def open_deal(
    tx: Session, new: NewDeal, *, actor: str, share_percent: int
) -> tuple[InvoiceView, RequisiteView] | None:
    """Opens the deal as the invoice's newest one, on a requisite that has room for it, and returns both; None when none
    has, when the merchant already holds its share of the method, or when deals are switched off.

    Call this only under the invoice's lock, between `queue_for_requisites` and the end of the transaction. The partial
    unique indexes on deals are the second guard. Raises TransactionConflict when a deal of another method took the
    reference at the same moment; the next attempt takes another.
    """
    seals = seals_of(tx)
    values = asdict(new) | {
        "references": list(new.references),
        "actor": actor,
        "share_percent": share_percent,
        "seals": [seal_of_terms(seals, replace(new, reference=each)) for each in new.references],
    }
    rest_since = new.created_at - REFERENCE_RESTS
    with refusing({"uq_deals_open_reference": lambda: TransactionConflict("the reference was just taken")}):
        prepared.later(tx, _OPEN_DEAL, values | {"references_rest_since": rest_since})
        shown = view_to_pay(tx, new.invoice_id)
    return shown if shown is not None and shown[0].deal is not None and shown[0].deal.id == new.id else None


# -- the page


def _ids(ids: list[UUID]) -> list[UUID]:
    return ids


_MISSING: Final = Prepared(
    "missing_invoices",
    "SELECT coalesce(array_agg(asked.id), '{}') FROM unnest(:ids) AS asked (id)"
    " WHERE NOT EXISTS (SELECT FROM invoices WHERE invoices.id = asked.id)",
    {"ids": "uuid[]"},
    _ids,
)


def missing(db: Database, ids: Sequence[UUID]) -> Sequence[UUID]:
    """Returns the ids without an invoice."""
    return db.one_or_none(_MISSING, {"ids": list(ids)}) or ()


# The page doesn't wait for the disk: a crash may lose the openings of its last moments, and a later view notes its own.
_NOTE_OPENING: Final = Prepared(
    "note_opening",
    "INSERT INTO page_openings (invoice_id, at)"
    " SELECT :invoice_id, :at WHERE set_config('synchronous_commit', 'off', true) = 'off'"
    " ON CONFLICT DO NOTHING RETURNING invoice_id",
    {"invoice_id": "uuid", "at": "timestamptz"},
    _id,
)


def note_opening(db: Database, invoice_id: UUID, at: datetime) -> None:
    """Stores the time of the first opening of the page; a later one changes nothing."""
    db.one_or_none(_NOTE_OPENING, {"invoice_id": invoice_id, "at": at})
