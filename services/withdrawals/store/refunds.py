"""Refunds: fiat that goes back to customers."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.lists import stands_after
from kit.db.rows import Rows
from services.withdrawals.domain import RefundStatus
from services.withdrawals.models import REFERENCE_KEY, Refund
from services.withdrawals.store.views import RefundView

_REFUNDS: Final = Rows(RefundView, table_of(Refund))
_ALL: Final[Select[Any]] = select(*_REFUNDS.columns)
_RETURNED: Final = (RefundStatus.FAILED, RefundStatus.CANCELED)


def add(tx: Session, refund: RefundView) -> None:
    tx.execute(insert(Refund).values(asdict(refund)))


def refund(tx: Session, refund_id: UUID) -> RefundView | None:
    return _REFUNDS.one_or_none(tx.execute(_ALL.where(Refund.id == refund_id)))


def locked(tx: Session, refund_id: UUID) -> RefundView | None:
    """Returns the refund, locked until this transaction ends."""
    return _REFUNDS.one_or_none(tx.execute(_ALL.where(Refund.id == refund_id).with_for_update()))


def of_external_id(tx: Session, merchant_id: UUID, external_id: str) -> RefundView | None:
    query = _ALL.where(Refund.merchant_id == merchant_id, Refund.external_id == external_id)
    return _REFUNDS.one_or_none(tx.execute(query))


_QUEUE: Final = text(f"""
SELECT pg_advisory_xact_lock(hashtextextended('refund-reference:' || {REFERENCE_KEY.format(":reference")}, 0))
""")


def is_spelled(column: str, reference: str) -> ColumnElement[bool]:
    """Returns the condition for rows with this reference in any spelling."""
    key: ColumnElement[str] = literal_column(REFERENCE_KEY.format(column))
    return key == text(REFERENCE_KEY.format(":reference")).bindparams(reference=reference)


def paid_by(tx: Session, bank_reference: str, *, besides: UUID) -> UUID | None:
    """Returns another refund that the payment of this reference has paid, also one that is only sent. Callers with the
    same reference wait for each other, until their transactions end.
    """
    tx.execute(_QUEUE, {"reference": bank_reference})
    paid = Refund.status.in_((RefundStatus.SENT, RefundStatus.SUCCEEDED))
    return tx.scalar(
        select(Refund.id)
        .where(is_spelled("bank_reference", bank_reference), paid, Refund.id != besides)
        .limit(1)
    )


def change(tx: Session, refund: RefundView, *, at: datetime, **values: Any) -> RefundView:
    """Writes these values into the refund, which is locked; returns it as it is now."""
    status: RefundStatus = values.get("status", refund.status)
    ended = status in (RefundStatus.SUCCEEDED, *_RETURNED)
    changed = values | {"updated_at": at, "finished_at": at if ended else None}
    tx.execute(update(Refund).where(Refund.id == refund.id).values(changed))
    return replace(refund, **changed)


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The refunds of a list; null and empty filters match all."""

    ids: Sequence[UUID] = ()
    merchant_id: UUID | None = None
    invoice_id: UUID | None = None
    statuses: Sequence[RefundStatus] = ()
    external_id: str = ""

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        if self.ids:
            yield Refund.id.in_(self.ids)
        if self.merchant_id is not None:
            yield Refund.merchant_id == self.merchant_id
        if self.invoice_id is not None:
            yield Refund.invoice_id == self.invoice_id
        if self.statuses:
            yield Refund.status.in_(self.statuses)
        if self.external_id:
            yield Refund.external_id == self.external_id


def listed(
    tx: Session, filter: Filter, *, after: RefundView | None = None, oldest_first: bool = False, limit: int
) -> list[RefundView]:
    """Returns the first refunds that the filter leaves: from the start, or those that stand after `after`."""
    at, id = Refund.created_at, Refund.id
    query = _ALL.where(*filter.conditions())
    if after is not None:
        query = query.where(stands_after((at, id), (after.created_at, after.id), oldest_first=oldest_first))
    order = (at, id) if oldest_first else (at.desc(), id.desc())
    return _REFUNDS.all(tx.execute(query.order_by(*order).limit(limit)))
