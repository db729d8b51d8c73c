"""Payment links that make a fresh invoice for each payment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, func, insert, or_, select, tuple_, update
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.rows import Rows
from services.invoices.domain.states import InvoiceStatus, LinkStatus
from services.invoices.models import Invoice, Link
from services.invoices.store.views import LinkView

_LINKS = Rows(LinkView, table_of(Link))


@dataclass(frozen=True)
class ListedLink:
    """A link with the number of its invoices that were paid."""

    link: LinkView
    payments: int


def insert_link(tx: Session, new: LinkView) -> None:
    tx.execute(insert(Link).values({column.name: getattr(new, column.name) for column in _LINKS.columns}))


def link(of: Connection | Session, id: UUID, *, to_change: bool = False) -> LinkView | None:
    query = select(*_LINKS.columns).where(Link.id == id)
    return _LINKS.one_or_none(of.execute(query.with_for_update() if to_change else query))


def set_canceled(tx: Session, id: UUID, at: datetime) -> None:
    tx.execute(update(Link).where(Link.id == id).values(canceled_at=at))


def links_of_merchant(
    connection: Connection,
    merchant_id: UUID,
    *,
    id: UUID | None,
    status: LinkStatus | None,
    now: datetime,
    after: LinkView | None,
    limit: int,
) -> Sequence[ListedLink]:
    """Returns links of the merchant, newest first."""
    query: Select[Any] = select(*_LINKS.columns, _PAYMENTS).where(Link.merchant_id == merchant_id)
    if id is not None:
        query = query.where(Link.id == id)
    if status is not None:
        query = query.where(*_has_status(status, now))
    if after is not None:
        query = query.where(tuple_(*_PLACE) < tuple_(after.created_at, after.id))
    rows = connection.execute(query.order_by(*(column.desc() for column in _PLACE)).limit(limit))
    return [ListedLink(_LINKS.make(*columns), payments) for *columns, payments in rows]


_PLACE = (Link.created_at, Link.id)
_PAYMENTS = (
    select(func.count())
    .where(Invoice.link_id == Link.id, Invoice.status == InvoiceStatus.SUCCESS)
    .correlate(Link)
    .scalar_subquery()
)


def _has_status(status: LinkStatus, now: datetime) -> Sequence[ColumnElement[bool]]:
    if status is LinkStatus.CANCELED:
        return [Link.canceled_at.is_not(None)]
    if status is LinkStatus.EXPIRED:
        return [Link.canceled_at.is_(None), Link.expires_at <= now]
    return [Link.canceled_at.is_(None), or_(Link.expires_at.is_(None), Link.expires_at > now)]


def has_open_invoices(connection: Connection, id: UUID, *, least: int) -> bool:
    """Returns whether the link has at least so many pending invoices."""
    of_link = select(Invoice.id).where(Invoice.link_id == id, Invoice.status == InvoiceStatus.PENDING)
    return len(connection.execute(of_link.limit(least)).all()) >= least
