"""Lists of requests for a second person (`kit.audit.approvals`): pages, and those that wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, func, select
from sqlalchemy.orm import Session

from kit.audit.approvals import APPROVALS, ROW, Approval, State
from kit.db.finding import COMPLETED_MOST, Found, begins_like


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The requests to list.

    states        none: all
    object        empty: all
    merchant_id   null: all; no index has it, so only with the state PENDING
    after         the id of the last one of the page before; this database need not have it
    oldest_first  their order, which is that of their ids
    """

    states: Sequence[State] = ()
    object: str = ""
    merchant_id: UUID | None = None
    after: UUID | None = None
    oldest_first: bool = False


def page(tx: Session, filter: Filter, *, limit: int) -> Sequence[Approval]:
    """Returns the first requests that the filter leaves."""
    wanted = select(*APPROVALS.columns).limit(limit)
    wanted = wanted.order_by(ROW.id if filter.oldest_first else ROW.id.desc())
    if filter.states:
        wanted = wanted.where(ROW.state.in_(filter.states))
    if filter.object:
        wanted = wanted.where(ROW.object == filter.object)
    if filter.merchant_id is not None:
        wanted = wanted.where(ROW.merchant_id == filter.merchant_id)
    if filter.after is not None:
        wanted = wanted.where(ROW.id > filter.after if filter.oldest_first else ROW.id < filter.after)
    return APPROVALS.all(tx.execute(wanted))


def between(tx: Session, least: UUID, greatest: UUID) -> Sequence[Approval]:
    """Returns the requests with an id from the least to the greatest, the first COMPLETED_MOST of them."""
    wanted = select(*APPROVALS.columns).where(ROW.id.between(least, greatest)).order_by(ROW.id)
    return APPROVALS.all(tx.execute(wanted.limit(COMPLETED_MOST)))


@dataclass(frozen=True, slots=True)
class Waiting:
    """The number of pending requests, and the time of the oldest one."""

    count: int
    oldest: datetime | None


def waiting(connection: Connection) -> Waiting:
    pending = select(func.count(), func.min(ROW.requested_at)).where(ROW.state == State.PENDING)
    return Waiting(*connection.execute(pending).one())


def by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    """Returns the requests with this id or its beginning, for the search."""
    condition = begins_like(ROW.id, text)
    if condition is None:
        return ()
    wanted = select(*APPROVALS.columns).where(condition).order_by(ROW.id.desc()).limit(limit)
    return [
        Found(
            kind="approval",
            id=str(each.id),
            field="id",
            value=str(each.id),
            status=each.state,
            created_at=each.requested_at,
            facts={"act": each.act, "object": each.object, "merchant_id": str(each.merchant_id or "")},
        )
        for each in APPROVALS.all(connection.execute(wanted))
    ]
