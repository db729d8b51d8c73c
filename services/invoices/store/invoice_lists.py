"""The operator's list of invoices, over all merchants.

Each filter is read from an index or filters what another one reads:

- an order or a customer: the index that begins with the merchant, for each merchant or the given one
- a merchant, with or without a status: the index of merchants' lists
- one amount: the index of amounts
- else the index of all invoices by time

A new invoice pays for no further index. Instead a list reads at most `READ_MOST` invoices, or `OF_EACH_MOST` of each
merchant that has the order or the customer, newest first, and returns the place where it stopped: the next call goes on
there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    exists,
    literal,
    select,
    text,
    true,
    tuple_,
)

from kit.db.lists import in_span, stands_after
from services.invoices.domain.creating import NO_KEY
from services.invoices.domain.states import InvoiceStatus
from services.invoices.models import Deal, Invoice
from services.invoices.store.invoices import VIEW, view
from services.invoices.store.views import InvoiceView

READ_MOST: Final = 10_000
"""The most invoices that one list reads: some 50 ms when PostgreSQL has them in memory."""

LAST_CHARACTER: Final = "\U0010ffff"
"""Sorts after every other one in the database's order, which is that of code points."""

OF_EACH_MOST: Final = 200
"""The most invoices of one order or customer that one list reads of each merchant, if it reads those of all."""

Place = tuple[datetime, UUID]
"""The place of an invoice in the list: its time, and its id."""

_NEWEST_FIRST: Final = (Invoice.created_at.desc(), Invoice.id.desc())
_COLUMNS: Final[Sequence[Any]] = (
    Invoice.id,
    Invoice.created_at,
    Invoice.status,
    Invoice.amount,
    Invoice.currency_code,
    Invoice.deal_id,
    Invoice.key_id,
    Invoice.link_id,
)


@dataclass(frozen=True, kw_only=True)
class InvoiceFilter:
    """Conditions on the invoices of all merchants; a null or empty one matches all. Both amounts are included."""

    merchant_id: UUID | None = None
    status: InvoiceStatus | None = None
    external_id: str = ""
    customer_id: str = ""
    amount_from: Decimal | None = None
    amount_to: Decimal | None = None
    currency_code: str = ""
    method_code: str = ""
    created_from: datetime | None = None
    created_before: datetime | None = None
    after: Place | None = None
    ids: Sequence[UUID] = ()
    by_hand: bool = False


@dataclass(frozen=True)
class InvoiceList:
    """Invoices, newest first. `reached` is the place of the last one that was read when the list had to stop before it
    had as many as it may return; else None.
    """

    invoices: Sequence[InvoiceView]
    reached: Place | None


def newest_invoices(
    connection: Connection,
    wanted: InvoiceFilter,
    limit: int,
    *,
    read_most: int = READ_MOST,
    of_each_most: int = OF_EACH_MOST,
) -> InvoiceList:
    """Returns invoices of all merchants, newest first."""
    edge = None
    if wanted.merchant_id is None and (texts := _texts(wanted)):
        edge = _edge(connection, [*texts, *_spans(wanted)], of_each_most)
    read = _read(wanted, edge).order_by(text("created_at DESC, id DESC")).limit(read_most).subquery("read")
    order = (read.c.created_at.desc(), read.c.id.desc())
    found = select(read.c.id).where(*_filters(wanted, read)).order_by(*order).limit(limit)
    page = VIEW.where(Invoice.id.in_(found)).order_by(*_NEWEST_FIRST)
    invoices = [view(*row) for row in connection.execute(page)]
    if len(invoices) == limit:
        return InvoiceList(invoices, None)
    last = select(read.c.created_at, read.c.id).order_by(*order).offset(read_most - 1)
    row = connection.execute(last).one_or_none()
    return InvoiceList(invoices, edge if row is None else (row.created_at, row.id))


def _spans(wanted: InvoiceFilter) -> list[ColumnElement[bool]]:
    spans = list(in_span(Invoice.created_at, wanted.created_from, wanted.created_before))
    if wanted.after is not None:
        spans.append(stands_after((Invoice.created_at, Invoice.id), wanted.after))
    return spans


def _texts(wanted: InvoiceFilter) -> list[ColumnElement[bool]]:
    texts = {Invoice.external_id: wanted.external_id, Invoice.customer_id: wanted.customer_id}
    return [column == value for column, value in texts.items() if value]


def _edge(
    connection: Connection, conditions: Sequence[ColumnElement[bool]], of_each_most: int
) -> Place | None:
    """Returns the place up to which all invoices under the conditions are read when `of_each_most` are read of each
    merchant; None when no merchant has more.
    """
    last = of_each_merchant(*conditions, limit=1, offset=of_each_most - 1).subquery()
    newest = select(last.c.created_at, last.c.id).order_by(last.c.created_at.desc(), last.c.id.desc())
    row = connection.execute(newest.limit(1)).one_or_none()
    return None if row is None else (row.created_at, row.id)


def _read(wanted: InvoiceFilter, edge: Place | None) -> Select[Any]:
    """Returns the invoices that are read: those under the conditions that an index answers in the order of time, up to
    the edge.
    """
    spans = _spans(wanted)
    if texts := _texts(wanted):
        if edge is not None:
            texts.append(tuple_(Invoice.created_at, Invoice.id) >= tuple_(*edge))
        return of_each_merchant(*texts, *spans, merchant_id=wanted.merchant_id, limit=READ_MOST)
    query = select(*_COLUMNS).where(*spans)
    if wanted.ids:
        query = query.where(Invoice.id.in_(wanted.ids))
    if wanted.merchant_id is not None:
        query = query.where(Invoice.merchant_id == wanted.merchant_id)
        return query if wanted.status is None else query.where(Invoice.status == wanted.status)
    if wanted.amount_from is not None and wanted.amount_from == wanted.amount_to:
        return query.where(Invoice.amount == wanted.amount_from)
    return query


def _filters(wanted: InvoiceFilter, read: Any) -> Iterator[ColumnElement[bool]]:
    """Yields the conditions on those that are read, also the ones that held already."""
    for column, value in ((read.c.status, wanted.status), (read.c.currency_code, wanted.currency_code)):
        if value:
            yield column == value
    if wanted.by_hand:
        yield read.c.key_id == NO_KEY
        yield read.c.link_id.is_(None)
    if wanted.amount_from is not None:
        yield read.c.amount >= wanted.amount_from
    if wanted.amount_to is not None:
        yield read.c.amount <= wanted.amount_to
    if wanted.method_code:
        newest = select(Deal.id).where(Deal.id == read.c.deal_id, Deal.method_code == wanted.method_code)
        yield exists(newest)


def place_of_invoice(
    connection: Connection, invoice_id: UUID, merchant_id: UUID | None = None
) -> Place | None:
    """Returns the place of the invoice in a list, for `InvoiceFilter.after`. With a merchant, only of its own."""
    query = select(Invoice.created_at, Invoice.id).where(Invoice.id == invoice_id)
    if merchant_id is not None:
        query = query.where(Invoice.merchant_id == merchant_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.created_at, row.id)


# -- invoices by order and by customer

# The indexes of orders and customers begin with the merchant. They are read once for each merchant, whose ids come from
# an index too, one by one: indexes of texts alone would cost each new invoice, and a search is rare.


def of_each_merchant(
    *conditions: ColumnElement[bool], merchant_id: UUID | None = None, limit: int, offset: int = 0
) -> Select[Any]:
    """Returns the query for the newest invoices under conditions on order or customer, of each merchant or of one: at
    most `limit` of each after the first `offset`, in no order.
    """
    merchants = _merchants() if merchant_id is None else select(literal(merchant_id).label("id")).cte()
    of_one = select(*_COLUMNS).where(Invoice.merchant_id == merchants.c.id, *conditions)
    newest = of_one.order_by(*_NEWEST_FIRST).limit(limit).offset(offset).lateral("newest")
    return select(newest).select_from(merchants.join(newest, true()))


def of_each_customer_like(beginning: str) -> Select[Any]:
    """Returns the query for the invoices of each merchant's customers whose reference begins so, and not only with the
    whole of it; at most `OF_EACH_MOST` of a merchant.
    """
    merchants = _merchants()
    of_one = select(Invoice.id).where(
        Invoice.merchant_id == merchants.c.id,
        Invoice.customer_id > beginning,
        Invoice.customer_id < f"{beginning}{LAST_CHARACTER}",
    )
    found = of_one.order_by(Invoice.customer_id).limit(OF_EACH_MOST).lateral("found")
    return select(found.c.id).select_from(merchants.join(found, true()))


def _merchants() -> Any:
    """Returns the ids of all merchants that have invoices, and a null, as a relation with the column `id`."""
    first = select(Invoice.merchant_id.label("id")).order_by(Invoice.merchant_id).limit(1).subquery()
    known = select(first.c.id).cte("merchants", recursive=True)
    following = select(Invoice.merchant_id).where(Invoice.merchant_id > known.c.id)
    next_one = following.order_by(Invoice.merchant_id).limit(1).scalar_subquery()
    return known.union_all(select(next_one).where(known.c.id.is_not(None)))
