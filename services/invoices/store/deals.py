"""Deals with their history, requisites, and the switch."""

from collections import namedtuple
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, bindparam, func, insert, literal, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert as insert_or_update
from sqlalchemy.orm import Session

from kit.db.database import Database, table_of
from kit.db.prepared import Prepared
from services.invoices.domain import DealStatus, NewDeal, may_hold_one_more
from services.invoices.models import DEAL_IS_OPEN, Deal, DealTransition, Requisite, Switch
from services.invoices.store.shares import accounts_of, may_have_place

# The statements of a purchase are built once: building one costs as much as running it.

_DEAL = select(Deal).where(Deal.id == bindparam("id")).execution_options(populate_existing=True)


def deal(tx: Session, deal_id: UUID) -> Deal | None:
    """The deal's present state. Before a change of the deal, call this under its invoice's lock."""
    return tx.execute(_DEAL, {"id": deal_id}).scalar_one_or_none()


_DEALS = select(*Deal.__table__.columns)


def deal_row(connection: Connection | Session, deal_id: UUID) -> Row[Any] | None:
    return connection.execute(_DEALS.where(Deal.id == deal_id)).one_or_none()


@dataclass(frozen=True, kw_only=True)
class DealFilter:
    """Conditions on deals; a null or empty one matches all."""

    status: DealStatus | None = None
    sub_status: str = ""
    merchant_id: UUID | None = None
    method_code: str = ""
    created_before: datetime | None = None


def deals(
    connection: Connection, wanted: DealFilter, limit: int, *, oldest_first: bool = False
) -> Sequence[Row[Any]]:
    """Newest first unless `oldest_first`."""
    query = _DEALS
    for column, value in (
        (Deal.status, wanted.status),
        (Deal.sub_status, wanted.sub_status),
        (Deal.merchant_id, wanted.merchant_id),
        (Deal.method_code, wanted.method_code),
    ):
        if value:
            query = query.where(column == value)
    if wanted.created_before is not None:
        query = query.where(Deal.created_at < wanted.created_before)
    order = (Deal.created_at, Deal.id) if oldest_first else (Deal.created_at.desc(), Deal.id.desc())
    return connection.execute(query.order_by(*order).limit(limit)).all()


_ADD_TRANSITION = insert(table_of(DealTransition))


def add_transition(tx: Session, deal: Deal, *, now: datetime, actor: str, note: str) -> None:
    """Writes the deal's present state into its history."""
    row = {"deal_id": deal.id, "at": now, "status": deal.status, "sub_status": deal.sub_status}
    tx.execute(_ADD_TRANSITION, row | {"actor": actor, "note": note})


def deal_history(connection: Connection, deal_id: UUID) -> Sequence[Row[Any]]:
    query = select(*DealTransition.__table__.columns).where(DealTransition.deal_id == deal_id)
    return connection.execute(query.order_by(DealTransition.id)).all()


@dataclass(frozen=True)
class OpenDealCounts:
    """The numbers of open deals, and the time since the oldest that waits for the operator was marked paid."""

    pending: int
    awaiting_confirmation: int
    appeal: int
    oldest_confirmation: timedelta
    oldest_appeal: timedelta


def open_deal_counts(connection: Connection, now: datetime) -> OpenDealCounts:
    in_appeal = Deal.status == DealStatus.APPEAL
    marked = (Deal.status == DealStatus.PENDING) & Deal.mark_paid_at.is_not(None)
    query = select(
        func.count().filter(Deal.status == DealStatus.PENDING).label("pending"),
        func.count().filter(marked).label("awaiting_confirmation"),
        func.count().filter(in_appeal).label("appeal"),
        _age(func.min(Deal.mark_paid_at).filter(marked), now).label("oldest_confirmation"),
        _age(func.min(Deal.mark_paid_at).filter(in_appeal), now).label("oldest_appeal"),
    ).where(Deal.status.in_([DealStatus.PENDING, DealStatus.APPEAL]))
    return OpenDealCounts(**connection.execute(query).one()._asdict())


def _age(since: ColumnElement[datetime | None], now: datetime) -> ColumnElement[timedelta]:
    return func.coalesce(literal(now) - since, timedelta())


# -- requisites


_QUEUE = text("SELECT pg_advisory_xact_lock(hashtextextended('requisites:' || :method_code, 0))")


@dataclass(frozen=True)
class MethodLoad:
    """The enabled requisites of one payment method: their places, the taken places, and the most that one merchant
    holds.
    """

    method_code: str
    places: int
    taken: int
    of_one_merchant: int

    def is_crowded(self, percent: int, *, share_percent: int) -> bool:
        """Whether `percent` of its places are taken, or one merchant holds its share of them. A single place is never
        crowded: any deal takes all of it.
        """
        if self.places <= 1 or not self.taken:
            return False
        at_share = not may_hold_one_more(
            self.of_one_merchant, self.places - self.taken, share_percent=share_percent
        )
        return at_share or self.taken * 100 >= self.places * percent


_METHOD_LOADS = text(f"""
WITH held AS (
    SELECT deals.method_code, merchant_id, count(*) AS places
    FROM deals JOIN requisites ON requisites.id = deals.requisite_id
    WHERE {DEAL_IS_OPEN} AND enabled
    GROUP BY deals.method_code, merchant_id
), methods AS (
    SELECT method_code, sum(max_deals) AS places, sum(open_deals) AS taken
    FROM requisites WHERE enabled GROUP BY method_code
)
SELECT method_code, places, taken, (
    SELECT coalesce(max(held.places), 0) FROM held WHERE held.method_code = methods.method_code
) AS of_one_merchant
FROM methods
ORDER BY taken::numeric / places DESC, method_code LIMIT :limit
""")  # noqa: S608  DEAL_IS_OPEN is a constant of the models


def method_loads(connection: Connection, limit: int) -> Sequence[MethodLoad]:
    """Of the methods that have an enabled requisite, the fullest first."""
    return [MethodLoad(**row._mapping) for row in connection.execute(_METHOD_LOADS, {"limit": limit})]


def queue_for_requisites(tx: Session, method_codes: Collection[str]) -> None:
    """Serializes the choices of these methods, so that each sees the places that the one before took.

    A change from one method to another locks both, always in the same order: else two changes in opposite directions
    would each hold the lock that the other waits for. Call this as late as possible: the others wait until the commit.
    """
    for code in sorted(method_codes):
        tx.execute(_QUEUE, {"method_code": code})


# One round trip, because other choices wait for it: finds a requisite that has a free place and no open deal of this
# amount, if the merchant may have it; inserts the deal, its place in the invoice, and the first row of its history. Of
# several requisites it takes the one with the smallest part of its places taken, then the one used longest ago: a
# merchant must not be able to fill one requisite after the other.
_OPEN_DEAL = text(f"""
WITH accounts AS (
    {accounts_of(":method_code", ":amount_fiat")}
), taken AS (
    UPDATE requisites SET open_deals = open_deals + 1, last_used_at = :created_at
    WHERE id = (
        SELECT id FROM accounts
        WHERE free > 0 AND holder IS NULL AND {may_have_place("accounts", ":method_code")}
        ORDER BY open_deals::numeric / max_deals, last_used_at NULLS FIRST, id
        LIMIT 1
    ) AND enabled AND open_deals < max_deals
    RETURNING id
), opened AS (
    INSERT INTO deals (
        id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code, currency_decimals,
        invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent, requisite_id, created_at,
        expires_at
    )
    SELECT :id, :invoice_id, :merchant_id, :status, :sub_status, :method_code, :method_name, :currency_code,
        :currency_decimals, :invoice_amount, :amount_fiat, :conversion_rate, :client_percent, :merchant_percent,
        taken.id, :created_at, :expires_at
    FROM taken
    RETURNING id, invoice_id, status, sub_status
), placed AS (
    UPDATE invoices SET deal_id = opened.id FROM opened WHERE invoices.id = opened.invoice_id
), first_transition AS (
    INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
    SELECT id, :created_at, status, sub_status, :actor, '' FROM opened
)
SELECT id FROM opened
""")  # noqa: S608  made of constants


def open_deal(tx: Session, new: NewDeal, *, actor: str, share_percent: int) -> bool:
    """Opens the deal as the invoice's newest one, on a requisite that has room for it; false when none has, or when the
    merchant already holds its share of the method.

    Call this only under the invoice's lock, between `queue_for_requisites` and the end of the transaction. The partial
    unique index on deals is the second guard.
    """
    return (
        tx.execute(_OPEN_DEAL, {**asdict(new), "actor": actor, "share_percent": share_percent}).one_or_none()
        is not None
    )


_RELEASE = (
    update(table_of(Requisite))
    .where(Requisite.id == bindparam("requisite_id"))
    .values(open_deals=Requisite.open_deals - 1)
)


def release_requisite(tx: Session, requisite_id: UUID) -> None:
    tx.execute(_RELEASE, {"requisite_id": requisite_id})


def requisite(connection: Connection | Session, requisite_id: UUID) -> Row[Any] | None:
    query = select(*Requisite.__table__.columns).where(Requisite.id == requisite_id)
    return connection.execute(query).one_or_none()


_TO_SHOW = select(*Requisite.__table__.columns)
_RequisiteTuple = namedtuple("_RequisiteTuple", list(_TO_SHOW.selected_columns.keys()))  # type: ignore[misc]  # of the table
_TO_SHOW_SQL = str(_TO_SHOW.compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]  # SQLAlchemy's gap
_REQUISITE_TO_SHOW: Prepared[Any] = Prepared(
    "requisite_to_show", f"{_TO_SHOW_SQL} WHERE requisites.id = :id", {"id": "uuid"}, _RequisiteTuple
)


def requisite_to_show(db: Database, requisite_id: UUID) -> Any:
    """Like `requisite`, for the page: outside of any transaction."""
    return db.one_or_none(_REQUISITE_TO_SHOW, {"id": requisite_id})


def requisites(connection: Connection, method_code: str | None) -> Sequence[Row[Any]]:
    query = select(*Requisite.__table__.columns).order_by(
        Requisite.method_code, Requisite.created_at, Requisite.id
    )
    return connection.execute(
        query if method_code is None else query.where(Requisite.method_code == method_code)
    ).all()


_QUEUE_FOR_ONE = text("""
SELECT pg_advisory_xact_lock(hashtextextended('requisites:' || method_code, 0)) FROM requisites WHERE id = :id
""")


def set_requisite_enabled(tx: Session, requisite_id: UUID, *, enabled: bool) -> Row[Any] | None:
    """Changes the requisite in its method's queue: else a deal that opens at this moment would find no requisite."""
    tx.execute(_QUEUE_FOR_ONE, {"id": requisite_id})
    query = update(Requisite).where(Requisite.id == requisite_id).values(enabled=enabled)
    return tx.execute(query.returning(*Requisite.__table__.columns)).one_or_none()


# -- the switch


def deals_enabled(connection: Connection | Session) -> bool:
    """True unless an operator switched deals off."""
    query = select(Switch.enabled).where(Switch.name == "deals")
    enabled = connection.execute(query).scalar_one_or_none()
    return True if enabled is None else enabled


def set_deals_enabled(tx: Session, *, enabled: bool, actor: str, at: datetime) -> None:
    values = {"enabled": enabled, "changed_at": at, "actor": actor}
    tx.execute(
        insert_or_update(Switch)
        .values(name="deals", **values)
        .on_conflict_do_update(index_elements=["name"], set_=values)
    )
