"""Deals with their history, requisites, and the switch."""

from collections import namedtuple
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, func, literal, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db import Database
from kit.prepared import Prepared
from services.invoices.domain import DealStatus
from services.invoices.models import Deal, DealTransition, Requisite, Switch


def deal(tx: Session, deal_id: UUID) -> Deal | None:
    """The deal as it is now: ask only under its invoice's lock when it's going to change."""
    return tx.get(Deal, deal_id, populate_existing=True)


def deal_invoice_id(connection: Connection | Session, deal_id: UUID) -> UUID | None:
    return connection.execute(select(Deal.invoice_id).where(Deal.id == deal_id)).scalar_one_or_none()


_DEALS = select(*Deal.__table__.columns)


def deal_row(connection: Connection | Session, deal_id: UUID) -> Row[Any] | None:
    return connection.execute(_DEALS.where(Deal.id == deal_id)).one_or_none()


def newest_deals(connection: Connection, status: DealStatus | None, limit: int) -> Sequence[Row[Any]]:
    query = _DEALS if status is None else _DEALS.where(Deal.status == status)
    return connection.execute(query.order_by(Deal.created_at.desc(), Deal.id.desc()).limit(limit)).all()


def deal_history(connection: Connection, deal_id: UUID) -> Sequence[Row[Any]]:
    query = select(*DealTransition.__table__.columns).where(DealTransition.deal_id == deal_id)
    return connection.execute(query.order_by(DealTransition.id)).all()


@dataclass(frozen=True)
class OpenDeals:
    """How many deals are open, and how long ago the oldest of those who wait for the operator was marked paid."""

    pending: int
    awaiting_confirmation: int
    appeal: int
    oldest_confirmation: timedelta
    oldest_appeal: timedelta


def open_deals(connection: Connection, now: datetime) -> OpenDeals:
    in_appeal = Deal.status == DealStatus.APPEAL
    marked = (Deal.status == DealStatus.PENDING) & Deal.mark_paid_at.is_not(None)
    query = select(
        func.count().filter(Deal.status == DealStatus.PENDING).label("pending"),
        func.count().filter(marked).label("awaiting_confirmation"),
        func.count().filter(in_appeal).label("appeal"),
        _age(func.min(Deal.mark_paid_at).filter(marked), now).label("oldest_confirmation"),
        _age(func.min(Deal.mark_paid_at).filter(in_appeal), now).label("oldest_appeal"),
    ).where(Deal.status.in_([DealStatus.PENDING, DealStatus.APPEAL]))
    return OpenDeals(**connection.execute(query).one()._asdict())


def _age(since: ColumnElement[datetime | None], now: datetime) -> ColumnElement[timedelta]:
    return func.coalesce(literal(now) - since, timedelta())


# -- requisites


def queue_for_requisites(tx: Session, method_codes: Collection[str]) -> None:
    """Let customers who choose these methods in one after the other, so that each sees what the one before took.

    Who changes from one method to another queues for both at once and always in the same order: two who change in
    opposite directions would otherwise each hold the requisite that the other one waits for.
    """
    for code in sorted(method_codes):
        tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"requisites:{code}", 0))))


def free_requisite(tx: Session, method_code: str, amount_fiat: Decimal) -> Requisite | None:
    """The requisite of the method that was used longest ago, has capacity and no open deal of this amount; locked.

    Ask only between `queue_for_requisites` and the end of the transaction. The partial unique index on deals would
    catch what this misses.
    """
    same_amount_open = (
        select(Deal.id)
        .where(
            Deal.requisite_id == Requisite.id,
            Deal.amount_fiat == amount_fiat,
            Deal.status.in_([DealStatus.PENDING, DealStatus.APPEAL]),
        )
        .exists()
    )
    query = (
        select(Requisite)
        .where(
            Requisite.method_code == method_code,
            Requisite.enabled,
            Requisite.open_deals < Requisite.max_deals,
            ~same_amount_open,
        )
        .order_by(Requisite.last_used_at.asc().nulls_first(), Requisite.id)
        .limit(1)
        .with_for_update()
    )
    return tx.execute(query).scalar_one_or_none()


def release_requisite(tx: Session, requisite_id: UUID) -> None:
    tx.execute(
        update(Requisite).where(Requisite.id == requisite_id).values(open_deals=Requisite.open_deals - 1)
    )


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
    """As `requisite`, for the page: outside of any transaction."""
    return db.one_or_none(_REQUISITE_TO_SHOW, {"id": requisite_id})


def requisites(connection: Connection, method_code: str | None) -> Sequence[Row[Any]]:
    query = select(*Requisite.__table__.columns).order_by(
        Requisite.method_code, Requisite.created_at, Requisite.id
    )
    return connection.execute(
        query if method_code is None else query.where(Requisite.method_code == method_code)
    ).all()


def set_requisite_enabled(tx: Session, requisite_id: UUID, *, enabled: bool) -> Row[Any] | None:
    query = update(Requisite).where(Requisite.id == requisite_id).values(enabled=enabled)
    return tx.execute(query.returning(*Requisite.__table__.columns)).one_or_none()


# -- the switch


def deals_enabled(connection: Connection | Session) -> bool:
    """True as long as nobody switched it off."""
    query = select(Switch.enabled).where(Switch.name == "deals")
    enabled = connection.execute(query).scalar_one_or_none()
    return True if enabled is None else enabled


def set_deals_enabled(tx: Session, *, enabled: bool, actor: str, at: datetime) -> None:
    values = {"enabled": enabled, "changed_at": at, "actor": actor}
    tx.execute(
        insert(Switch)
        .values(name="deals", **values)
        .on_conflict_do_update(index_elements=["name"], set_=values)
    )
