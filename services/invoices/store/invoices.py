"""Invoices with their newest deal, and the outbox."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Connection, Uuid, all_, and_, bindparam, func, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import InstrumentedAttribute, Session

from kit.db import prepared
from kit.db.database import Database, table_of
from kit.db.prepared import Prepared
from kit.db.rows import Rows
from services.invoices.domain.creating import CreationFacts, NewInvoice
from services.invoices.domain.places import Wanted
from services.invoices.domain.states import InvoiceStatus
from services.invoices.models import Deal, Invoice, Outbox, Requisite
from services.invoices.store import deals
from services.invoices.store.deals import DEALS
from services.invoices.store.shares import accounts_of, may_have_place
from services.invoices.store.views import InvoiceView, RequisiteView

_INVOICES = Rows(InvoiceView, table_of(Invoice), without=("deal",))
VIEW = select(*_INVOICES.columns, *DEALS.columns).outerjoin_from(
    Invoice, Deal, and_(Deal.id == Invoice.deal_id, Deal.invoice_id == Invoice.id)
)
"""Invoices with their newest deal, for `view`; not with a deal of another invoice, which SQL may have written there."""
_DEAL_BEGINS = len(_INVOICES.columns)


def view(*columns: Any) -> InvoiceView:
    """Returns the row as a view. The deal's first column is its id, which is null when the invoice has no deal."""
    deal = None if columns[_DEAL_BEGINS] is None else DEALS.make(*columns[_DEAL_BEGINS:])
    return _INVOICES.make(*columns[:_DEAL_BEGINS], deal)


# -- creating

# One round trip decides and inserts. The facts come from the insert's own snapshot. The unique constraints stop an
# insert that races with another: then nothing is created and no fact stands against it, and the caller tries again.

_CREATE_SQL = """
WITH duplicate AS (
  SELECT id, status, amount, currency_code FROM invoices
  WHERE merchant_id = :merchant_id AND external_id = :external_id
), waiting AS (
  SELECT i.id,
         CASE WHEN i.deal_id IS NULL THEN i.expires_at <= :created_at
              ELSE d.sub_status = 'awaiting_payment' AND d.expires_at <= :created_at END AS overdue
  FROM invoices i LEFT JOIN deals d ON d.id = i.deal_id
  WHERE i.merchant_id = :merchant_id AND i.customer_id = :customer_id AND i.finished_at IS NULL
), newest_unpaid AS (
  SELECT created_at FROM invoices
  WHERE merchant_id = :merchant_id AND customer_id = :customer_id
    AND status <> 'success' AND created_at > :window_start
  ORDER BY created_at DESC LIMIT :customer_limit
), unpaid AS (
  SELECT count(*) AS n, min(created_at) AS oldest FROM newest_unpaid
), free AS (
  SELECT EXISTS (
    SELECT FROM unnest(:method_codes, :amounts_fiat, :takes_references)
      AS wanted (method_code, amount_fiat, takes_reference)
    WHERE {may_have_place}
  ) AS requisite
), system AS (
  SELECT coalesce((SELECT enabled FROM switches WHERE name = 'deals'), true) AS enabled
), created AS (
  INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, purpose,
                        callback_url, success_url, fail_url, created_at, expires_at, seal, link_id,
                        merchant_data)
  SELECT :id, :merchant_id, :key_id, :external_id, :amount, :currency_code, 'pending', :customer_id, :purpose,
         :callback_url, :success_url, :fail_url, :created_at, :expires_at, :seal, :link_id,
         :merchant_data
  FROM unpaid, free, system
  WHERE :acceptable AND system.enabled AND unpaid.n < :customer_limit AND free.requisite
    AND NOT EXISTS (SELECT FROM duplicate) AND NOT EXISTS (SELECT FROM waiting)
  ON CONFLICT DO NOTHING
  RETURNING id
)
SELECT EXISTS (SELECT FROM created) AS created,
       system.enabled AS system_enabled,
       (SELECT id FROM duplicate) AS duplicate_id,
       (SELECT status FROM duplicate) AS duplicate_status,
       (SELECT amount FROM duplicate) AS duplicate_amount,
       (SELECT currency_code FROM duplicate) AS duplicate_currency,
       (SELECT id FROM waiting) AS waiting_id,
       coalesce((SELECT overdue FROM waiting), false) AS waiting_overdue,
       unpaid.n AS unpaid,
       unpaid.oldest AS oldest_unpaid_at,
       free.requisite AS requisite_free
FROM unpaid, free, system
"""
_CREATE_PARAMETERS = {
    "id": "uuid",
    "merchant_id": "uuid",
    "key_id": "uuid",
    "external_id": "text",
    "amount": "numeric",
    "currency_code": "text",
    "customer_id": "text",
    "purpose": "text",
    "callback_url": "text",
    "success_url": "text",
    "fail_url": "text",
    "created_at": "timestamptz",
    "expires_at": "timestamptz",
    "seal": "bytea",
    "link_id": "uuid",
    "merchant_data": "text",
    "acceptable": "boolean",
    "method_codes": "text[]",
    "amounts_fiat": "numeric[]",
    "takes_references": "boolean[]",
    "share_percent": "bigint",
    "window_start": "timestamptz",
    "customer_limit": "bigint",
}


_ACCOUNTS = accounts_of("wanted.method_code", "wanted.amount_fiat", "wanted.takes_reference")
_CREATE = Prepared(
    "create_if_allowed",
    _CREATE_SQL.format(may_have_place=may_have_place(f"({_ACCOUNTS}) AS accounts", "wanted.method_code")),
    _CREATE_PARAMETERS,
    CreationFacts,
)


def create_if_allowed(
    of: Session | Database,
    new: NewInvoice,
    *,
    seal: bytes,
    acceptable: bool,
    wanted: Sequence[Wanted],
    share_percent: int,
    window_start: datetime,
    customer_limit: int,
) -> CreationFacts:
    """Inserts the invoice unless a fact stands against it, and returns the facts. One statement: of a Database it is
    committed here, of a Session with its transaction.
    """
    values = {
        "id": new.id,
        "merchant_id": new.merchant_id,
        "key_id": new.key_id,
        "external_id": new.external_id,
        # A refused amount may be too large for the column, and PostgreSQL would fail before it checks the facts.
        "amount": new.amount if acceptable else 0,
        "currency_code": new.currency_code,
        "customer_id": new.customer_id,
        "purpose": new.purpose,
        "callback_url": new.callback_url,
        "success_url": new.success_url,
        "fail_url": new.fail_url,
        "created_at": new.created_at,
        "expires_at": new.expires_at,
        "seal": seal,
        "link_id": new.link_id,
        "merchant_data": new.merchant_data,
        "acceptable": acceptable,
        "method_codes": [each.method_code for each in wanted],
        "amounts_fiat": [each.amount_fiat for each in wanted],
        "takes_references": [each.takes_reference for each in wanted],
        "share_percent": share_percent,
        "window_start": window_start,
        "customer_limit": customer_limit,
    }
    facts = (
        prepared.one_or_none(of, _CREATE, values)
        if isinstance(of, Session)
        else of.one_or_none(_CREATE, values)
    )
    assert facts is not None
    return facts


# -- reading invoices


def invoice_view(connection: Connection, invoice_id: UUID) -> InvoiceView | None:
    row = connection.execute(VIEW.where(Invoice.id == invoice_id)).one_or_none()
    return None if row is None else view(*row)


def _hot_view(name: str, condition: str, parameters: Mapping[str, str]) -> Prepared[InvoiceView]:
    sql = f"{VIEW.compile(dialect=postgresql.dialect())} WHERE {condition}"  # type: ignore[no-untyped-call]  # SQLAlchemy's gap
    return Prepared(name, sql, parameters, view)


_VIEW_BY_ID = _hot_view("invoice_by_id", "invoices.id = :id", {"id": "uuid"})


def changed_view(tx: Session, invoice_id: UUID) -> InvoiceView | None:
    """Returns the invoice as this transaction has changed it."""
    tx.flush()
    return prepared.one_or_none(tx, _VIEW_BY_ID, {"id": invoice_id})


def invoice_view_by_id(db: Database, invoice_id: UUID) -> InvoiceView | None:
    """Returns the invoice for the payment page, which is read often: outside of any transaction."""
    return db.one_or_none(_VIEW_BY_ID, {"id": invoice_id})


_REQUISITE_BEGINS = _DEAL_BEGINS + len(DEALS.columns)


_WITH_REQUISITE = VIEW.add_columns(*deals.REQUISITES.columns).join(
    Requisite, Requisite.id == Deal.requisite_id
)


def _with_requisite(*columns: Any) -> tuple[InvoiceView, RequisiteView]:
    return view(*columns[:_REQUISITE_BEGINS]), deals.REQUISITES.make(*columns[_REQUISITE_BEGINS:])


_TO_PAY = Prepared(
    "invoice_to_pay",
    f"{prepared.sql_of(_WITH_REQUISITE)} WHERE invoices.id = :id",
    {"id": "uuid"},
    _with_requisite,
)


def view_to_pay(of: Session | Database, invoice_id: UUID) -> tuple[InvoiceView, RequisiteView] | None:
    """Returns the invoice with the requisite of its newest deal; None without a deal."""
    if isinstance(of, Session):
        return prepared.one_or_none(of, _TO_PAY, {"id": invoice_id})
    return of.one_or_none(_TO_PAY, {"id": invoice_id})


_MERCHANTS_VIEW_BY_ID = _hot_view(
    "merchants_invoice_by_id",
    "invoices.merchant_id = :merchant_id AND invoices.id = :id",
    {"merchant_id": "uuid", "id": "uuid"},
)
_MERCHANTS_VIEW_BY_EXTERNAL_ID = _hot_view(
    "merchants_invoice_by_external_id",
    "invoices.merchant_id = :merchant_id AND invoices.external_id = :external_id",
    {"merchant_id": "uuid", "external_id": "text"},
)


def invoice_view_by_ref(db: Database, merchant_id: UUID, ref: str, ref_id: UUID | None) -> InvoiceView | None:
    """Returns the merchant's invoice of that id, else the one of that external id (docs/api.md#get-invoice)."""
    if ref_id is not None:
        by_id = db.one_or_none(_MERCHANTS_VIEW_BY_ID, {"merchant_id": merchant_id, "id": ref_id})
        if by_id is not None:
            return by_id
    values = {"merchant_id": merchant_id, "external_id": ref}
    return db.one_or_none(_MERCHANTS_VIEW_BY_EXTERNAL_ID, values)


_FINISHED = (
    select(Invoice, Deal)
    .outerjoin(Deal, and_(Deal.id == Invoice.deal_id, Deal.invoice_id == Invoice.id))
    .where(Invoice.status != InvoiceStatus.PENDING)
)


def finished_ids_after(tx: Session, after: UUID | None, limit: int) -> Sequence[UUID]:
    page = select(Invoice.id).where(Invoice.status != InvoiceStatus.PENDING).order_by(Invoice.id).limit(limit)
    return tx.scalars(page if after is None else page.where(Invoice.id > after)).all()


def finished_invoices(tx: Session, invoice_ids: Sequence[UUID]) -> Sequence[tuple[Invoice, Deal | None]]:
    found = tx.execute(_FINISHED.where(Invoice.id.in_(invoice_ids)))
    return [(invoice, deal) for invoice, deal in found]


# -- locking invoices: every transition of an invoice or its deals happens under the invoice's row lock


_NAMES = tuple(table_of(Invoice).columns.keys())
_COLUMNS = ", ".join(f"invoices.{name}" for name in _NAMES)


def _with_deal(*columns: Any) -> tuple[Invoice, Deal | None]:
    """Returns an invoice that may be changed, with its deal. No session knows them, so only `save` writes them."""
    of_invoice, of_deal = columns[: len(_NAMES)], columns[len(_NAMES) :]
    deal = None if of_deal[0] is None else deals.made(*of_deal)
    return Invoice(**dict(zip(_NAMES, of_invoice, strict=True))), deal


_WITH_DEAL = Prepared(
    "invoice_with_newest_deal",
    f"SELECT {_COLUMNS}, {deals.COLUMNS} FROM invoices"  # noqa: S608  made of constants
    " LEFT JOIN deals ON deals.id = invoices.deal_id AND deals.invoice_id = invoices.id"
    " WHERE invoices.id = :id",
    {"id": "uuid"},
    _with_deal,
)
_WITH_THIS_DEAL = Prepared(
    "invoice_with_deal",
    f"SELECT {_COLUMNS}, {deals.COLUMNS} FROM deals JOIN invoices ON invoices.id = deals.invoice_id"  # noqa: S608  made of constants
    " WHERE deals.id = :deal_id",
    {"deal_id": "uuid"},
    _with_deal,
)
_LOCK = Prepared(
    "lock_invoice", "SELECT id FROM invoices WHERE id = :id FOR UPDATE", {"id": "uuid"}, lambda id: id
)
_LOCK_IF_FREE = Prepared(
    "lock_invoice_if_free",
    "SELECT id FROM invoices WHERE id = :id FOR UPDATE SKIP LOCKED",
    {"id": "uuid"},
    lambda id: id,
)
_LOCK_OF_DEAL = Prepared(
    "lock_invoice_of_deal",
    "SELECT id FROM invoices WHERE id = (SELECT invoice_id FROM deals WHERE id = :deal_id) FOR UPDATE",
    {"deal_id": "uuid"},
    lambda id: id,
)

# Lock and read are two statements of one round trip: the second one sees what the lock waited for.


def locked_invoice(
    tx: Session, invoice_id: UUID, *, skip_locked: bool = False
) -> tuple[Invoice, Deal | None] | None:
    """Returns the invoice, locked, with its newest deal. None when it does not exist, or is locked elsewhere and
    `skip_locked` is true.
    """
    id = {"id": invoice_id}
    if skip_locked and prepared.one_or_none(tx, _LOCK_IF_FREE, id) is None:
        return None
    prepared.later(tx, _LOCK, id)
    return prepared.one_or_none(tx, _WITH_DEAL, id)


def locked_invoice_of_deal(tx: Session, deal_id: UUID) -> tuple[Invoice, Deal | None] | None:
    """Returns the deal's invoice, locked, with this deal."""
    id = {"deal_id": deal_id}
    prepared.later(tx, _LOCK_OF_DEAL, id)
    return prepared.one_or_none(tx, _WITH_THIS_DEAL, id)


_SAVE = Prepared(
    "save_invoice",
    "UPDATE invoices SET status = :status, finished_at = :finished_at, event_id = :event_id WHERE id = :id",
    {"id": "uuid", "status": "text", "finished_at": "timestamptz", "event_id": "uuid"},
    lambda: None,
)


def save(tx: Session, invoice: Invoice) -> None:
    """Writes the columns that finishing changes, with the next statement of the transaction."""
    values = {"status": invoice.status, "finished_at": invoice.finished_at, "event_id": invoice.event_id}
    prepared.later(tx, _SAVE, {"id": invoice.id} | values)


# -- invoices that are due, the longest overdue first; they are not locked, so check again under the lock


def waiting_invoices_due(
    connection: Connection, now: datetime, limit: int, without: Sequence[UUID]
) -> Sequence[UUID]:
    """Invoices whose time for choosing a method is over."""
    waiting = (Invoice.status == InvoiceStatus.PENDING, Invoice.deal_id.is_(None))
    due = select(Invoice.id).where(*waiting, Invoice.expires_at <= now).order_by(Invoice.expires_at)
    return connection.execute(due.where(_is_not_of(Invoice.id, without)).limit(limit)).scalars().all()


def invoices_with_unpaid_deal_due(
    connection: Connection, now: datetime, limit: int, without: Sequence[UUID]
) -> Sequence[UUID]:
    """Invoices whose deal was not marked paid in its time."""
    unpaid = Deal.sub_status == "awaiting_payment"
    due = select(Deal.invoice_id).where(unpaid, Deal.expires_at <= now).order_by(Deal.expires_at)
    return connection.execute(due.where(_is_not_of(Deal.invoice_id, without)).limit(limit)).scalars().all()


def invoices_with_confirmation_due(
    connection: Connection, now: datetime, limit: int, without: Sequence[UUID]
) -> Sequence[UUID]:
    """Invoices whose deal was marked paid and not confirmed in its time."""
    marked = Deal.sub_status == "awaiting_confirmation"
    due = select(Deal.invoice_id).where(marked, Deal.confirm_before <= now).order_by(Deal.confirm_before)
    return connection.execute(due.where(_is_not_of(Deal.invoice_id, without)).limit(limit)).scalars().all()


def _is_not_of(column: InstrumentedAttribute[UUID], ids: Sequence[UUID]) -> ColumnElement[bool]:
    """Returns the condition that an id is none of these. They are one parameter, so the statement stays the same."""
    return column != all_(bindparam("without", list(ids), type_=ARRAY(Uuid())))


# -- the outbox


def outbox_lag(connection: Connection, now: datetime) -> tuple[int, float]:
    """Returns the number of facts that wait for JetStream, and the age of the oldest in seconds (0 when none waits)."""
    query = select(func.count(), func.min(Outbox.created_at)).where(Outbox.published_at.is_(None))
    count, oldest = connection.execute(query).one()
    return count, (now - oldest).total_seconds() if oldest else 0.0
