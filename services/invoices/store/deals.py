"""Deals with their history, requisites, and the switch.

`opening` has the statement that opens a deal, `deal_lists` those of lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    func,
    literal,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert as insert_or_update
from sqlalchemy.orm import Session

from kit.db import prepared
from kit.db.database import Database, table_of
from kit.db.prepared import Prepared
from kit.db.rows import Rows
from services.invoices.domain.places import may_hold_one_more
from services.invoices.domain.states import DealStatus
from services.invoices.models import DEAL_IS_OPEN, FIRST_AMOUNT, Deal, DealTransition, Requisite, Switch
from services.invoices.store.views import DealView, RequisiteView, SwitchView, TransitionView

# The statements of a purchase are built once: building one costs as much as running it.

# Without the long text that no step needs.
_NAMES = tuple(each.name for each in table_of(Deal).columns if each.name != "rate_basis")
COLUMNS = ", ".join(f"deals.{name}" for name in _NAMES)
"""The columns of a deal, for `made`."""


def made(*columns: Any) -> Deal:
    """Returns a deal that may be changed. No session knows it, so only `save` writes it."""
    return Deal(**dict(zip(_NAMES, columns, strict=True)))


_DEAL = Prepared("deal", f"SELECT {COLUMNS} FROM deals WHERE id = :id", {"id": "uuid"}, made)  # noqa: S608  made of constants


def deal(tx: Session, deal_id: UUID) -> Deal | None:
    """Returns the deal's present state. Before a change of the deal, call this under its invoice's lock."""
    return prepared.one_or_none(tx, _DEAL, {"id": deal_id})


_CHANGING = {
    "status": "text",
    "sub_status": "text",
    "amount_fiat": "numeric",
    "merchant_usdt": "numeric",
    "adjusted_amount": "numeric",
    "mark_paid_at": "timestamptz",
    "confirm_before": "timestamptz",
    "finished_at": "timestamptz",
}
_SAVE = Prepared(
    "save_deal",
    f"UPDATE deals SET {', '.join(f'{each} = :{each}' for each in _CHANGING)} WHERE id = :id",  # noqa: S608  made of constants
    {"id": "uuid", **_CHANGING},
    lambda: None,
)


def save(tx: Session, deal: Deal) -> None:
    """Writes the columns that a step may change, with the next statement of the transaction."""
    prepared.later(tx, _SAVE, {"id": deal.id} | {each: getattr(deal, each) for each in _CHANGING})


DEALS = Rows(
    DealView,
    table_of(Deal),
    reference=literal_column("coalesce(deals.reference, '')"),
    amount_to_send=literal_column(
        f"CASE WHEN adjusted_amount IS NULL THEN amount_fiat ELSE {FIRST_AMOUNT} END"
    ),
)
_VIEW = Prepared(
    "deal_view",
    f"{select(*DEALS.columns).compile(dialect=postgresql.dialect())} WHERE deals.id = :id",  # type: ignore[no-untyped-call]  # SQLAlchemy's gap
    {"id": "uuid"},
    DEALS.make,
)


def deal_view(tx: Session, deal_id: UUID) -> DealView | None:
    return prepared.one_or_none(tx, _VIEW, {"id": deal_id})


_ADD_TRANSITION = Prepared(
    "add_transition",
    "INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)"
    " VALUES (:deal_id, :at, :status, :sub_status, :actor, :note)",
    {
        "deal_id": "uuid",
        "at": "timestamptz",
        "status": "text",
        "sub_status": "text",
        "actor": "text",
        "note": "text",
    },
    lambda: None,
)


def add_transition(tx: Session, deal: Deal, *, now: datetime, actor: str, note: str) -> None:
    """Adds the deal's present state to its history."""
    row = {"deal_id": deal.id, "at": now, "status": deal.status, "sub_status": deal.sub_status}
    prepared.later(tx, _ADD_TRANSITION, row | {"actor": actor, "note": note})


_TRANSITIONS = Rows(TransitionView, table_of(DealTransition))


HISTORY_MOST = 100
"""Steps of one deal that are read; the table of transitions allows fewer than ten."""


def deal_history(connection: Connection, deal_id: UUID) -> Sequence[TransitionView]:
    query = select(*_TRANSITIONS.columns).where(DealTransition.deal_id == deal_id)
    return _TRANSITIONS.all(connection.execute(query.order_by(DealTransition.id).limit(HISTORY_MOST)))


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
    return OpenDealCounts(*connection.execute(query).one())


def _age(since: ColumnElement[datetime | None], now: datetime) -> ColumnElement[timedelta]:
    return func.coalesce(literal(now) - since, timedelta())


_SET_SENDER = text(
    "UPDATE deals SET sender_name = :name, sender_words = :words WHERE id = :id AND sender_name IS NULL"
)


def set_sender(tx: Session, deal_id: UUID, *, name: str, words: str) -> None:
    """Stores the sender's name, unless the deal has one."""
    tx.execute(_SET_SENDER, {"id": deal_id, "name": name, "words": words})


# -- requisites


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
        """Returns whether `percent` of its places are taken, or one merchant holds its share of them. A single
        place is never crowded: any deal takes all of it.
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
    """Returns the load of each method that has an enabled requisite, the fullest first."""
    return [MethodLoad(**row._mapping) for row in connection.execute(_METHOD_LOADS, {"limit": limit})]


_RELEASE = Prepared(
    "release_requisite",
    "UPDATE requisites SET open_deals = open_deals - 1 WHERE id = :id",
    {"id": "uuid"},
    lambda: None,
)


def release_requisite(tx: Session, requisite_id: UUID) -> None:
    prepared.later(tx, _RELEASE, {"id": requisite_id})


REQUISITES = Rows(RequisiteView, table_of(Requisite))
_ALL_REQUISITES = select(*REQUISITES.columns)


def requisite(connection: Connection | Session, requisite_id: UUID) -> RequisiteView | None:
    return REQUISITES.one_or_none(connection.execute(_ALL_REQUISITES.where(Requisite.id == requisite_id)))


_REQUISITE_TO_SHOW = Prepared(
    "requisite_to_show",
    f"{_ALL_REQUISITES.compile(dialect=postgresql.dialect())} WHERE requisites.id = :id",  # type: ignore[no-untyped-call]  # SQLAlchemy's gap
    {"id": "uuid"},
    REQUISITES.make,
)


def requisite_to_show(db: Database, requisite_id: UUID) -> RequisiteView | None:
    """Returns the requisite for the page, read outside of any transaction."""
    return db.one_or_none(_REQUISITE_TO_SHOW, {"id": requisite_id})


_QUEUE_FOR_ONE = text("""
SELECT pg_advisory_xact_lock(hashtextextended('requisites:' || method_code, 0)) FROM requisites WHERE id = :id
""")


def requisite_to_change(tx: Session, requisite_id: UUID) -> RequisiteView | None:
    """Returns the requisite under the lock of its method. Without the lock a deal that opens at the same moment could
    find no requisite.
    """
    tx.execute(_QUEUE_FOR_ONE, {"id": requisite_id})
    return requisite(tx, requisite_id)


def set_requisite_enabled(tx: Session, requisite_id: UUID, *, enabled: bool) -> RequisiteView | None:
    """Enables or disables a requisite that `requisite_to_change` has locked."""
    query = update(Requisite).where(Requisite.id == requisite_id).values(enabled=enabled)
    return REQUISITES.one_or_none(tx.execute(query.returning(*REQUISITES.columns)))


# -- the switch


_DEALS_ENABLED = Prepared("deals_enabled", "SELECT enabled FROM switches WHERE name = 'deals'", {}, bool)


def deals_enabled(tx: Session) -> bool:
    """Returns true unless an operator switched deals off."""
    return prepared.one_or_none(tx, _DEALS_ENABLED, {}) is not False


def deals_switch(connection: Connection) -> SwitchView:
    """Returns the switch with the author of its last change."""
    query = select(Switch.enabled, Switch.changed_at, Switch.actor).where(Switch.name == "deals")
    row = connection.execute(query).one_or_none()
    return SwitchView(True, None, "") if row is None else SwitchView(*row)


def set_deals_enabled(tx: Session, *, enabled: bool, actor: str, at: datetime) -> None:
    values = {"enabled": enabled, "changed_at": at, "actor": actor}
    tx.execute(
        insert_or_update(Switch)
        .values(name="deals", **values)
        .on_conflict_do_update(index_elements=["name"], set_=values)
    )
