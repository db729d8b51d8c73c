"""A merchant's list of invoices, with the number of all that match: exact, and without counting them all.

The number is the sum of the segments (`store.segments`), of those that have ended since they were counted, and of the
invoices that are not counted yet: those of the last minutes. The same sums lead to the segments that a page has rows
of. So a page costs the same whatever stands before it, and however many invoices there are.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    DateTime,
    Select,
    Uuid,
    and_,
    func,
    literal,
    select,
    true,
    tuple_,
)
from sqlalchemy import column as named

from services.invoices.domain.segments import Cover, cover
from services.invoices.models import Invoice
from services.invoices.store import segments
from services.invoices.store.invoices import VIEW, view
from services.invoices.store.segments import ListFilter, Place, Segment
from services.invoices.store.views import InvoiceView

NOT_COUNTED: Final = -2
"""The number of the segment of those that are not counted yet. It stands behind all others."""
END: Final[Place] = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
_SPAN: Final = [
    named(f"{end}_{name}", kind)
    for end in ("first", "last")
    for name, kind in (("at", DateTime(timezone=True)), ("id", Uuid()))
]


@dataclass(frozen=True)
class Page:
    """One page of the matching invoices; `total` counts all that match."""

    invoices: Sequence[InvoiceView]
    total: int


def invoice_page(
    connection: Connection, wanted: ListFilter, *, ascending: bool, offset: int, limit: int
) -> Page:
    """Returns one page; a page past the last is empty. The connection must read the database at one moment."""
    counted = segments.counted(connection, wanted)
    ended = segments.ended_since(connection, wanted) if counted.by_large and wanted.status else Counter[int]()
    counts = Counter(counted.by_large)
    for number, count in ended.items():
        counts[number * segments.SMALL // segments.LARGE] += count
    counts[NOT_COUNTED] = _number_behind(connection, wanted, counted.place)
    total = counts.total()
    numbers = [*counted.by_large, NOT_COUNTED][:: 1 if ascending else -1]
    found = cover([counts[number] for number in numbers], offset, limit)
    if not found.parts:
        return Page([], total)
    chosen = [numbers[part] for part in found.parts]
    small = segments.of_large(connection, wanted, [each for each in chosen if each != NOT_COUNTED], ended)
    if NOT_COUNTED in chosen:
        small.append(Segment(NOT_COUNTED, _next(counted.place), END, counts[NOT_COUNTED]))
    small = small[:: 1 if ascending else -1]
    found = cover([each.count for each in small], found.skip, limit)
    ids = _ids(wanted, _joined(wanted, small, found), ascending=ascending, offset=found.skip, limit=limit)
    page = VIEW.where(Invoice.id.in_(ids)).order_by(*_order(Invoice, ascending=ascending))
    return Page([view(*row) for row in connection.execute(page)], total)


def _number_behind(connection: Connection, wanted: ListFilter, place: Place) -> int:
    query = _filtered(select(func.count()).select_from(Invoice), wanted).where(_between(_next(place), END))
    total: int = connection.execute(query).scalar_one()
    return total


def _next(place: Place) -> Place:
    at, id = place
    return at, UUID(int=id.int + 1)


def _joined(wanted: ListFilter, small: Sequence[Segment], found: Cover) -> Sequence[tuple[Place, Place]]:
    """Returns the first and last places of the spans to read. Segments apart from each other are joined only if the
    index has nothing else between them: it begins with merchant and status, not with the currency.
    """
    joined: list[Segment] = []
    for part in found.parts:
        segment = small[part]
        if joined and (wanted.currency_code is None or abs(segment.number - joined[-1].number) == 1):
            other = joined.pop()
            first, last = min(segment.first, other.first), max(segment.last, other.last)
            segment = replace(segment, first=first, last=last)
        joined.append(segment)
    return [(each.first, each.last) for each in joined]


def _ids(
    wanted: ListFilter, spans: Sequence[tuple[Place, Place]], *, ascending: bool, offset: int, limit: int
) -> Select[Any]:
    """Returns the query for the ids of a page. The index alone finds them: else rows and deals of those before the page
    would be read, too.
    """
    keys: Any = select(Invoice.id, Invoice.created_at)
    each = _filtered(keys, wanted)
    each = each.order_by(*_order(Invoice, ascending=ascending))
    if len(spans) == 1:
        of_one = each.where(_between(*spans[0])).offset(offset).limit(limit).subquery()
        return select(of_one.c.id)
    ends = zip(*((*first, *last) for first, last in spans), strict=True)
    arrays = [literal(list(end), ARRAY(each.type)) for end, each in zip(ends, _SPAN, strict=True)]
    span = func.unnest(*arrays).table_valued(*_SPAN).render_derived(name="span")
    of_span = each.where(_between((span.c.first_at, span.c.first_id), (span.c.last_at, span.c.last_id)))
    found = of_span.limit(offset + limit).lateral("found")
    of_all: Select[Any] = select(found.c.id).select_from(span.join(found, true()))
    of_all = of_all.order_by(*_order(found.c, ascending=ascending))
    return of_all.offset(offset).limit(limit)


def _order(of: Any, *, ascending: bool) -> Iterable[Any]:
    keys = (of.created_at, of.id)
    return keys if ascending else [key.desc() for key in keys]


def _between(first: Any, last: Any) -> ColumnElement[bool]:
    place = tuple_(Invoice.created_at, Invoice.id)
    return and_(place >= tuple_(*first), place <= tuple_(*last))


def _filtered(query: Select[Any], wanted: ListFilter) -> Select[Any]:
    query = query.where(Invoice.merchant_id == wanted.merchant_id)
    if wanted.status is not None:
        query = query.where(Invoice.status == wanted.status)
    if wanted.currency_code is not None:
        query = query.where(Invoice.currency_code == wanted.currency_code)
    return query
