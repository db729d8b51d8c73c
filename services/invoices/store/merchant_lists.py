"""A merchant's list of invoices, a page at a time, with the number of all that match.

Counting and skipping read an index that has all columns of the filters (`ix_invoices_list`, `ix_invoices_list_status`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, func, select

from services.invoices.domain.states import InvoiceStatus
from services.invoices.models import Invoice
from services.invoices.store.invoices import VIEW, view
from services.invoices.store.views import InvoiceView


@dataclass(frozen=True)
class ListFilter:
    """Conditions on a merchant's invoices; a null one matches all."""

    merchant_id: UUID
    status: InvoiceStatus | None
    currency_code: str | None


@dataclass(frozen=True)
class Page:
    """One page of the matching invoices; `total` counts all that match."""

    invoices: Sequence[InvoiceView]
    total: int


def invoice_page(
    connection: Connection, wanted: ListFilter, *, ascending: bool, offset: int, limit: int
) -> Page:
    """Returns one page; a page past the last is empty. The connection must read the database at one moment."""
    total: int = connection.execute(_filtered(select(func.count()), wanted)).scalar_one()
    if offset >= total:
        return Page([], total)
    order = _order(ascending=ascending)
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
    return query
