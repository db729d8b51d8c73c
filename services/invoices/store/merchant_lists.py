"""A merchant's list of invoices, a page at a time, with the number of all that match.

Counting and skipping read an index that has all columns of the filters (`ix_invoices_list`, `ix_invoices_list_status`),
or that of the customer (`ix_invoices_customer`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, func, select

from kit.db.lists import in_span, stands_after
from services.invoices.domain.states import InvoiceStatus
from services.invoices.models import Invoice
from services.invoices.store.invoice_lists import Place
from services.invoices.store.invoices import VIEW, view
from services.invoices.store.views import InvoiceView


@dataclass(frozen=True)
class ListFilter:
    """Conditions on a merchant's invoices; a null or empty one matches all. `after` is of the list's order."""

    merchant_id: UUID
    status: InvoiceStatus | None
    currency_code: str | None
    customer_id: str
    created_from: datetime | None
    created_before: datetime | None
    after: Place | None
    ascending: bool


@dataclass(frozen=True)
class Page:
    """One page of the matching invoices; `total` counts all that match."""

    invoices: Sequence[InvoiceView]
    total: int


def invoice_page(connection: Connection, wanted: ListFilter, *, offset: int, limit: int) -> Page:
    """Returns one page; a page past the last is empty. The connection must read the database at one moment."""
    total: int = connection.execute(_filtered(select(func.count()), wanted)).scalar_one()
    if offset >= total:
        return Page([], total)
    order = _order(ascending=wanted.ascending)
    ids = _filtered(select(Invoice.id), wanted).order_by(*order).offset(offset).limit(limit)
    page = VIEW.where(Invoice.id.in_(ids)).order_by(*order)
    return Page([view(*row) for row in connection.execute(page)], total)


def _order(*, ascending: bool) -> Iterable[Any]:
    keys = (Invoice.created_at, Invoice.id)
    return keys if ascending else tuple(key.desc() for key in keys)


def _filtered(query: Select[Any], wanted: ListFilter) -> Select[Any]:
    query = query.select_from(Invoice).where(Invoice.merchant_id == wanted.merchant_id)
    if wanted.status is not None:
        query = query.where(Invoice.status == wanted.status)
    if wanted.currency_code is not None:
        query = query.where(Invoice.currency_code == wanted.currency_code)
    if wanted.customer_id:
        query = query.where(Invoice.customer_id == wanted.customer_id)
    if wanted.after is not None:
        keys = (Invoice.created_at, Invoice.id)
        query = query.where(stands_after(keys, wanted.after, oldest_first=wanted.ascending))
    return query.where(*in_span(Invoice.created_at, wanted.created_from, wanted.created_before))
