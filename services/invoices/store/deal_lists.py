"""Deals as operators list them: the queue, lists with filters, and the states of deals that a page shows.

An index finds the open deals, those of a reference, those of a sender whose name few have, and those with given ids.
Any other list reads at most `READ_MOST` deals in its order, by status, amount and time, picks those that fit, and
returns the place where it stopped: the next call goes on there. So a purchase pays for no further index.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    Uuid,
    bindparam,
    exists,
    false,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import aliased

from kit.db.finding import has_words_like
from kit.db.lists import in_span, stands_after
from services.invoices.domain.states import OPEN_DEAL_STATUSES, DealStatus
from services.invoices.models import ACCOUNT_KEY, DEAL_IS_OPEN, Deal, Invoice, Requisite
from services.invoices.store.deals import DEALS
from services.invoices.store.views import DealView

READ_MOST: Final = 10_000
"""The most deals that one list reads, as for invoices."""

Place = Sequence[Any]
"""The place of a deal in a list: its values of `keys_of`."""


@dataclass(frozen=True, kw_only=True)
class DealFilter:
    """Conditions on deals; a null or empty one matches all.

    marked_paid  only the operator's queue, in its own order
    account_key  an account as `models.ACCOUNT_KEY` writes it
    after        the place of a deal in the list
    by_amount    in the order of currency and amount: of open deals only
    """

    status: DealStatus | None = None
    sub_status: str = ""
    merchant_id: UUID | None = None
    method_code: str = ""
    created_from: datetime | None = None
    created_before: datetime | None = None
    after: Place | None = None
    reference: str = ""
    sender_words: str = ""
    marked_paid: bool = False
    account_key: str = ""
    currency_code: str = ""
    amount_from: Decimal | None = None
    amount_to: Decimal | None = None
    customer_id: str = ""
    external_id: str = ""
    ids: Sequence[UUID] = ()
    by_amount: bool = False

    @property
    def has_few(self) -> bool:
        """Whether it asks for open deals."""
        return self.marked_paid or self.status in OPEN_DEAL_STATUSES


@dataclass(frozen=True)
class DealList:
    """Deals in their order. `reached` is the place of the last one that was read when the list had to stop before it
    had as many as it may return; else None.
    """

    deals: Sequence["ListedDeal"]
    reached: Place | None = None


@dataclass(frozen=True)
class ListedDeal:
    """A deal with the fields of its invoice and requisite that an operator compares."""

    deal: DealView
    account: str
    holder: str
    customer_id: str
    external_id: str


_LISTED = (
    select(*DEALS.columns, Requisite.account, Requisite.holder, Invoice.customer_id, Invoice.external_id)
    .join_from(Deal, Requisite, Requisite.id == Deal.requisite_id)
    .join(Invoice, Invoice.id == Deal.invoice_id)
)
_ITS: Final = aliased(Invoice)
"""The invoice of a deal in a condition."""
_CONTEXT_BEGINS = len(DEALS.columns)
_COLUMNS: Final[Sequence[Any]] = (
    Deal.id,
    Deal.created_at,
    Deal.status,
    Deal.sub_status,
    Deal.merchant_id,
    Deal.method_code,
    Deal.currency_code,
    Deal.amount_fiat,
    Deal.invoice_id,
    Deal.requisite_id,
)


NEWEST_READ: Final = 2_000
"""The newest deals that a search for a sender reads before the index of words."""
SENDERS_MOST: Final = 1_000
"""The most deals that a search for a sender takes from the index of words."""

_IS_MARKED: ColumnElement[bool] = literal_column("deals.sub_status = 'awaiting_confirmation'")
"""As the index of the queue has it: a value that is bound later would not fit its condition."""


def deals(
    connection: Connection,
    wanted: DealFilter,
    limit: int,
    *,
    oldest_first: bool = False,
    read_most: int = READ_MOST,
) -> DealList:
    """Returns deals, newest first unless `oldest_first`; those of the queue in its order."""
    keys = keys_of(marked_paid=wanted.marked_paid, by_amount=wanted.by_amount)
    oldest_first = oldest_first or (wanted.marked_paid and not wanted.by_amount)
    order = keys if oldest_first else [each.desc() for each in keys]
    after = [] if wanted.after is None else [stands_after(keys, wanted.after, oldest_first=oldest_first)]
    named = _named(connection, wanted.sender_words) if wanted.sender_words else None
    if _has_index(wanted) or named is not None:
        by_index = _conditions_of_index(wanted, named)
        query = _LISTED.where(*_conditions(wanted, Deal), *by_index, *after)
        rows = connection.execute(query.order_by(*order).limit(limit))
        return DealList([_listed(*row) for row in rows])
    columns = (*_COLUMNS, Deal.sender_words) if wanted.sender_words else _COLUMNS
    first = select(*columns).where(*_of_index(wanted), *after).order_by(*order).limit(read_most)
    read = first.subquery("read")
    order_of_read = (
        (read.c.created_at, read.c.id) if oldest_first else (read.c.created_at.desc(), read.c.id.desc())
    )
    by_name = [has_sender_like(wanted.sender_words, of="read.sender_words")] if wanted.sender_words else []
    fits = (
        select(read.c.id).where(*_conditions(wanted, read.c), *by_name).order_by(*order_of_read).limit(limit)
    )
    rows = connection.execute(_LISTED.where(Deal.id.in_(fits)).order_by(*order))
    found = [_listed(*row) for row in rows]
    if len(found) == limit:
        return DealList(found)
    last = connection.execute(first.limit(1).offset(read_most - 1)).one_or_none()
    return DealList(found, None if last is None else (last.created_at, last.id))


def _has_index(wanted: DealFilter) -> bool:
    """Returns whether an index leads to few deals: see above."""
    return bool(wanted.has_few or wanted.ids or wanted.reference)


def _of_index(wanted: DealFilter) -> Iterator[ColumnElement[bool]]:
    """Yields the conditions under which an index has the deals in the order of time."""
    yield from in_span(Deal.created_at, wanted.created_from, wanted.created_before)
    if wanted.amount_from is not None and wanted.amount_from == wanted.amount_to:
        yield Deal.amount_fiat == wanted.amount_from
    elif wanted.status:
        yield Deal.status == wanted.status


def _conditions(wanted: DealFilter, of: Any) -> Iterator[ColumnElement[bool]]:
    """Yields the conditions on `of`: on deals, or on those that were read."""
    for column, value in (
        (of.status, wanted.status),
        (of.sub_status, wanted.sub_status),
        (of.merchant_id, wanted.merchant_id),
        (of.method_code, wanted.method_code),
        (of.currency_code, wanted.currency_code),
    ):
        if value:
            yield column == value
    for column, value in (
        (_ITS.customer_id, wanted.customer_id),
        (_ITS.external_id, wanted.external_id),
    ):
        if value:
            yield exists(select(_ITS.id).where(_ITS.id == of.invoice_id, column == value))
    if wanted.account_key:
        has_account = literal_column(ACCOUNT_KEY) == wanted.account_key
        yield of.requisite_id.in_(select(Requisite.id).where(has_account))
    if wanted.amount_from is not None:
        yield of.amount_fiat >= wanted.amount_from
    if wanted.amount_to is not None:
        yield of.amount_fiat <= wanted.amount_to
    yield from in_span(of.created_at, wanted.created_from, wanted.created_before)


def _conditions_of_index(wanted: DealFilter, named: Collection[UUID] | None) -> Iterator[ColumnElement[bool]]:
    if wanted.ids:
        yield Deal.id.in_(wanted.ids)
    if wanted.marked_paid:
        yield _IS_MARKED
    if wanted.reference:
        yield Deal.reference == wanted.reference
    if named is not None:
        yield Deal.id.in_(named)
    elif wanted.sender_words:
        # Many deals have the name. So it is compared in the deals under the other conditions, without its index.
        yield has_sender_like(wanted.sender_words, of="(deals.sender_words || '')")


def listed_deal(connection: Connection, deal_id: UUID) -> ListedDeal | None:
    return listed_deals(connection, [deal_id]).get(deal_id)


def listed_deals(connection: Connection, deal_ids: Collection[UUID]) -> Mapping[UUID, ListedDeal]:
    """Returns the deals with these ids, by id."""
    rows = connection.execute(_LISTED.where(Deal.id.in_(deal_ids)))
    return {listed.deal.id: listed for listed in (_listed(*row) for row in rows)}


def _listed(*columns: Any) -> ListedDeal:
    return ListedDeal(DEALS.make(*columns[:_CONTEXT_BEGINS]), *columns[_CONTEXT_BEGINS:])


def has_sender_like(words: str, *, of: str = "deals.sender_words") -> ColumnElement[bool]:
    """Returns the condition that the sender's name has words that begin like these, as `words_of_name` writes
    them.
    """
    condition = has_words_like(literal_column(of, Text), words)
    return false() if condition is None else condition


def ids_of_sender(
    connection: Connection,
    words: str,
    limit: int,
    *,
    newest_read: int = NEWEST_READ,
    most: int = SENDERS_MOST,
) -> Collection[UUID]:
    """Returns deals whose sender's name has words that begin like these. `limit` of the newest deals are enough; else
    at most `most` are added from the index of words, which has no order of time.

    So a name that every tenth customer has takes no longer than another one.
    """
    newest = (
        select(Deal.id, Deal.sender_words).order_by(Deal.created_at.desc(), Deal.id.desc()).limit(newest_read)
    )
    read = newest.subquery("newest")
    of_newest = select(read.c.id).where(has_sender_like(words, of="newest.sender_words")).limit(limit)
    found = set(connection.execute(of_newest).scalars())
    if len(found) < limit:
        found.update(_some_named(connection, words, most))
    return found


def _named(connection: Connection, words: str) -> Collection[UUID] | None:
    """Returns all deals whose sender's name has words that begin like these; None when they are many."""
    found = _some_named(connection, words, SENDERS_MOST + 1)
    return None if len(found) > SENDERS_MOST else found


def _some_named(connection: Connection, words: str, most: int) -> Collection[UUID]:
    named = select(Deal.id).where(has_sender_like(words)).cte("named").prefix_with("MATERIALIZED")
    return connection.execute(select(named.c.id).limit(most)).scalars().all()


def keys_of(*, marked_paid: bool = False, by_amount: bool = False) -> Sequence[Any]:
    """Returns the columns by which a list is ordered."""
    if by_amount:
        return Deal.currency_code, Deal.amount_fiat, Deal.id
    return Deal.confirm_before if marked_paid else Deal.created_at, Deal.id


def place_of_deal(
    connection: Connection, deal_id: UUID, *, marked_paid: bool = False, by_amount: bool = False
) -> Place | None:
    """Returns the place of the deal in a list, for `DealFilter.after`; None for a deal that the list can't have."""
    keys = keys_of(marked_paid=marked_paid, by_amount=by_amount)
    row = connection.execute(select(*keys).where(Deal.id == deal_id)).one_or_none()
    return None if row is None or row[0] is None else tuple(row)


def nearest_deals(connection: Connection, deal: DealView, limit: int) -> Sequence[DealView]:
    """Returns other open deals on the deal's requisite, those with the nearest amounts first.

    The index of open deals is read upwards and downwards from the amount of the deal: a requisite may have ten thousand
    open deals.
    """
    is_open: ColumnElement[bool] = literal_column(f"deals.{DEAL_IS_OPEN}")
    others = select(*DEALS.columns).where(Deal.requisite_id == deal.requisite_id, is_open, Deal.id != deal.id)
    above = others.where(Deal.amount_fiat >= deal.amount_fiat).order_by(Deal.amount_fiat).limit(limit)
    below = others.where(Deal.amount_fiat < deal.amount_fiat).order_by(Deal.amount_fiat.desc()).limit(limit)
    found = [row for query in (above, below) for row in DEALS.all(connection.execute(query))]
    return sorted(found, key=lambda each: abs(each.amount_fiat - deal.amount_fiat))[:limit]


@dataclass(frozen=True)
class StateOfDeal:
    """The present state of a deal, with the author and the time of its newest step."""

    id: UUID
    status: DealStatus
    sub_status: str
    actor: str
    at: datetime


_STATES = text("""
SELECT deals.id, deals.status, deals.sub_status, newest.actor, newest.at
FROM deals CROSS JOIN LATERAL (
    SELECT actor, at FROM deal_transitions WHERE deal_id = deals.id ORDER BY id DESC LIMIT 1
) AS newest
WHERE deals.id = ANY(:ids)
""").bindparams(bindparam("ids", type_=postgresql.ARRAY(Uuid)))


def deal_states(connection: Connection, deal_ids: Sequence[UUID]) -> Sequence[StateOfDeal]:
    """Returns the states of these deals, without order; unknown ones are left out."""
    rows = connection.execute(_STATES, {"ids": list(deal_ids)})
    return [StateOfDeal(row.id, DealStatus(row.status), row.sub_status, row.actor, row.at) for row in rows]
