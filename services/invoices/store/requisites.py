"""Requisites as operators list them: with their use by day, their deals, and the places of each method."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    Uuid,
    bindparam,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    tuple_,
    union_all,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from kit.base.account_forms import account_key
from kit.db.database import table_of
from kit.db.rows import Rows
from services.invoices.domain.states import OPEN_DEAL_STATUSES, DealStatus
from services.invoices.models import ACCOUNT_KEY, DEAL_IS_OPEN, Deal, Requisite
from services.invoices.store.deal_lists import ListedDeal, Place, listed_deals
from services.invoices.store.views import RequisiteView

DEALS_COUNTED_MOST: Final = 200_000
"""The most deals that the use of requisites is counted from. No index names the requisite of a deal: each purchase
would write it.
"""
DEALS_READ_MOST: Final = 20_000
"""The most deals of all requisites that one page of one requisite's deals reads."""

_REQUISITES = Rows(RequisiteView, table_of(Requisite))
_ALL: Final = select(*_REQUISITES.columns)
_ACCOUNT_KEY: ColumnElement[str] = literal_column(ACCOUNT_KEY, Text)


@dataclass(frozen=True, kw_only=True)
class RequisiteFilter:
    """Conditions on requisites; a null or empty one matches all. `full`: only those without a free place."""

    method_code: str = ""
    enabled: bool | None = None
    text: str = ""
    full: bool = False
    after: RequisiteView | None = None


def requisites(
    connection: Connection, wanted: RequisiteFilter, limit: int | None = None
) -> Sequence[RequisiteView]:
    """Returns requisites by method and age."""
    place = (Requisite.method_code, Requisite.created_at, Requisite.id)
    query = _ALL.order_by(*place).limit(limit)
    if wanted.method_code:
        query = query.where(Requisite.method_code == wanted.method_code)
    if wanted.enabled is not None:
        query = query.where(Requisite.enabled == wanted.enabled)
    if wanted.full:
        query = query.where(Requisite.open_deals >= Requisite.max_deals)
    if wanted.text:
        query = query.where(_holds(wanted.text))
    if (after := wanted.after) is not None:
        query = query.where(tuple_(*place) > tuple_(after.method_code, after.created_at, after.id))
    return _REQUISITES.all(connection.execute(query))


def _holds(words: str) -> ColumnElement[bool]:
    named = or_(*(column.icontains(words, autoescape=True) for column in (Requisite.holder, Requisite.bank)))
    key = account_key(words)
    return or_(named, _ACCOUNT_KEY.contains(key, autoescape=True)) if key else named


def requisites_in_use(tx: Session, method_code: str, keys: Collection[str]) -> Sequence[RequisiteView]:
    """Returns the requisites of the method that are enabled or have open deals, and whose accounts have one of these
    keys (`account_key`), oldest first.
    """
    in_use = or_(Requisite.enabled, Requisite.open_deals > 0)
    query = _ALL.where(Requisite.method_code == method_code, _ACCOUNT_KEY.in_(keys), in_use)
    return _REQUISITES.all(tx.execute(query.order_by(Requisite.created_at, Requisite.id)))


_QUEUE: Final = text("SELECT pg_advisory_xact_lock(hashtextextended('requisites added:' || :method_code, 0))")


def queue_to_add(tx: Session, method_code: str) -> None:
    """Lets the additions of accounts to one method run one after the other. Customers' choices go on."""
    tx.execute(_QUEUE, {"method_code": method_code})


# -- use


@dataclass(frozen=True)
class DayOfUse:
    """The deals that were opened on a requisite on one day (UTC): how many, how many of them are completed, and the
    sum of the completed ones in fiat.
    """

    requisite_id: UUID
    day: date
    opened: int
    completed: int
    amount: Decimal


@dataclass(frozen=True)
class Use:
    """`since`: the time from which on all deals were counted."""

    days: Sequence[DayOfUse]
    since: datetime


_USE: Final = text("""
WITH recent AS MATERIALIZED (
    SELECT requisite_id, created_at, status, amount_fiat FROM deals
    WHERE created_at >= :since ORDER BY created_at DESC, id DESC LIMIT :most
), days AS (
    SELECT requisite_id, CAST(created_at AT TIME ZONE 'UTC' AS date) AS day, count(*) AS opened,
           count(*) FILTER (WHERE status = 'completed') AS completed,
           coalesce(sum(amount_fiat) FILTER (WHERE status = 'completed'), 0) AS amount
    FROM recent WHERE CAST(:ids AS uuid[]) IS NULL OR requisite_id = ANY(:ids) GROUP BY 1, 2
)
SELECT counted.first_at, days.*
FROM (
    SELECT CASE WHEN count(*) = :most THEN min(created_at) END AS first_at FROM recent
) AS counted LEFT JOIN days ON true
ORDER BY day DESC
""").bindparams(bindparam("ids", type_=postgresql.ARRAY(Uuid)))


def use_since(
    connection: Connection, ids: Collection[UUID] | None, since: datetime, *, most: int = DEALS_COUNTED_MOST
) -> Use:
    """Returns the use of these requisites, or of all, by day, newest first, from the `most` newest deals of all."""
    values = {"ids": None if ids is None else list(ids), "since": since, "most": most}
    rows = connection.execute(_USE, values).all()
    days = [DayOfUse(*row[1:]) for row in rows if row.requisite_id is not None]
    return Use(days, since=rows[0].first_at or since)


def last_uses(connection: Connection, ids: Collection[UUID]) -> Mapping[UUID, datetime | None]:
    """Returns when a deal was last opened on each of these requisites."""
    query = select(Requisite.id, Requisite.last_used_at).where(Requisite.id.in_(ids))
    return {row.id: row.last_used_at for row in connection.execute(query)}


# -- deals


@dataclass(frozen=True, kw_only=True)
class DealsOfRequisite:
    """Conditions on the deals of one requisite; `after` is the place of a deal: when it was opened, and its id."""

    requisite_id: UUID
    status: DealStatus | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    after: Place | None = None


@dataclass(frozen=True)
class ReadDeals:
    """Deals, newest first, and the place of the last deal that was read if there may be others."""

    deals: Sequence[ListedDeal]
    reached: tuple[datetime, UUID] | None


def deals_of_requisite(
    connection: Connection, wanted: DealsOfRequisite, limit: int, *, most: int = DEALS_READ_MOST
) -> ReadDeals:
    """Returns deals of the requisite among the next `most` deals of all requisites. Its open deals have an index of
    their own, so they are found at once.
    """
    if wanted.status in OPEN_DEAL_STATUSES:
        return _open_deals(connection, wanted, limit)
    read = _conditions(wanted, select(Deal.id, Deal.created_at, Deal.requisite_id, Deal.status))
    recent = read.order_by(*_NEWEST_FIRST).limit(most).cte("recent")
    found = select(recent.c.created_at, recent.c.id).where(recent.c.requisite_id == wanted.requisite_id)
    if wanted.status:
        found = found.where(recent.c.status == wanted.status)
    found = found.order_by(recent.c.created_at.desc(), recent.c.id.desc()).limit(limit)
    number = select(func.count()).select_from(recent).scalar_subquery()
    last = select(recent.c.created_at, recent.c.id, number.label("read"))
    last = last.order_by(recent.c.created_at, recent.c.id).limit(1)
    both = union_all(select(found.add_columns(literal(0).label("read")).subquery()), select(last.subquery()))
    places = connection.execute(both).all()
    rows = sorted((each[:2] for each in places if not each.read), reverse=True)
    if len(rows) == limit:
        return _read(connection, rows, reached=rows[-1])
    end = next((each for each in places if each.read == most), None)
    return _read(connection, rows, reached=end and end[:2])


_NEWEST_FIRST: Final = (Deal.created_at.desc(), Deal.id.desc())


def _open_deals(connection: Connection, wanted: DealsOfRequisite, limit: int) -> ReadDeals:
    is_open: ColumnElement[bool] = literal_column(f"deals.{DEAL_IS_OPEN}")
    query = _conditions(wanted, select(Deal.created_at, Deal.id)).where(
        Deal.requisite_id == wanted.requisite_id, is_open, Deal.status == wanted.status
    )
    rows = connection.execute(query.order_by(*_NEWEST_FIRST).limit(limit)).all()
    return _read(connection, rows, reached=rows[-1] if len(rows) == limit else None)


def _conditions(wanted: DealsOfRequisite, query: Any) -> Any:
    if wanted.created_from is not None:
        query = query.where(Deal.created_at >= wanted.created_from)
    if wanted.created_before is not None:
        query = query.where(Deal.created_at < wanted.created_before)
    if wanted.after is not None:
        query = query.where(tuple_(Deal.created_at, Deal.id) < tuple_(*wanted.after))
    return query


def _read(connection: Connection, rows: Sequence[Any], *, reached: Any) -> ReadDeals:
    found = listed_deals(connection, [id for _, id in rows]) if rows else {}
    deals = [found[id] for _, id in rows if id in found]
    return ReadDeals(deals, None if reached is None else (reached[0], reached[1]))


# -- methods


@dataclass(frozen=True)
class MethodPlaces:
    """The accounts of a method, the places of the enabled ones with the taken ones among them, and the open deals on
    all of them.
    """

    method_code: str
    accounts: int
    enabled_accounts: int
    places: int
    taken: int
    open_deals: int


_METHOD_PLACES: Final = text("""
SELECT method_code, count(*) AS accounts, count(*) FILTER (WHERE enabled) AS enabled_accounts,
       coalesce(sum(max_deals) FILTER (WHERE enabled), 0) AS places,
       coalesce(sum(open_deals) FILTER (WHERE enabled), 0) AS taken, sum(open_deals) AS open_deals
FROM requisites GROUP BY method_code ORDER BY method_code
""")


def method_places(connection: Connection) -> Sequence[MethodPlaces]:
    return [MethodPlaces(*row) for row in connection.execute(_METHOD_PLACES)]
