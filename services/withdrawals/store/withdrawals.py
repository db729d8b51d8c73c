"""Withdrawals and their methods."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from services.withdrawals.domain import PENDING, State, WithdrawalStatus
from services.withdrawals.models import Withdrawal, WithdrawalMethod


def methods(tx: Session) -> Sequence[WithdrawalMethod]:
    """Returns all methods, by id."""
    return tx.scalars(select(WithdrawalMethod).order_by(WithdrawalMethod.id)).all()


def methods_to_change(tx: Session) -> Sequence[WithdrawalMethod]:
    """Returns all methods, by id, locked: none is changed or added until this transaction ends, while withdrawals
    go on.
    """
    tx.execute(text("LOCK TABLE withdrawal_methods IN SHARE ROW EXCLUSIVE MODE"))
    return methods(tx)


def enabled_method(tx: Session, method_id: int) -> WithdrawalMethod | None:
    return tx.scalar(
        select(WithdrawalMethod).where(WithdrawalMethod.id == method_id, WithdrawalMethod.enabled)
    )


def add(tx: Session, withdrawal: Withdrawal) -> bool:
    """Stores a new withdrawal unless its request_key has made one; returns whether it was stored.

    Waits for a concurrent insert with the same key, so that its withdrawal can be read afterwards.
    """
    columns = {c.key: getattr(withdrawal, c.key) for c in Withdrawal.__table__.columns}
    once = insert(Withdrawal).values(columns).on_conflict_do_nothing(index_elements=[Withdrawal.request_key])
    return tx.execute(once.returning(Withdrawal.id)).one_or_none() is not None


def of_request_key(tx: Session, request_key: UUID) -> Withdrawal | None:
    return tx.scalar(select(Withdrawal).where(Withdrawal.request_key == request_key))


def locked(tx: Session, withdrawal_id: UUID) -> Withdrawal | None:
    """Returns the withdrawal, locked until this transaction ends."""
    return tx.scalar(select(Withdrawal).where(Withdrawal.id == withdrawal_id).with_for_update())


_QUEUE = text(
    "SELECT pg_advisory_xact_lock(hashtextextended('transaction:' || :network || ':' || :writing, 0))"
)


def wait_for_transaction(tx: Session, network: str, writing: str) -> None:
    """Makes callers with the same transaction of the network wait for each other, until their own one ends."""
    tx.execute(_QUEUE, {"network": network, "writing": writing.lower()})


def paid_by(tx: Session, network: str, writings: Sequence[str]) -> Withdrawal | None:
    """Returns the withdrawal that this transaction of the network has completed, or None."""
    is_written_so = func.lower(Withdrawal.external_tx_id).in_(writings)
    return tx.scalar(select(Withdrawal).where(Withdrawal.network == network, is_written_so).limit(1))


def advance(
    tx: Session, withdrawal: Withdrawal, target: State, *, external_tx_id: str | None, at: datetime
) -> Withdrawal:
    """Moves the withdrawal to `target` if its state is still the one that was read; raises NoResultFound otherwise.

    IntegrityError `uq_withdrawals_network_external_tx_id` when that transaction has paid another withdrawal.
    """
    step = (
        update(Withdrawal)
        .where(
            Withdrawal.id == withdrawal.id,
            Withdrawal.status == withdrawal.status,
            Withdrawal.substatus.is_not_distinct_from(withdrawal.substatus),
        )
        .values(
            status=target.status,
            substatus=target.substatus,
            external_tx_id=external_tx_id,
            updated_at=at,
            processed_at=None if target.status is PENDING.status else at,
        )
        .returning(Withdrawal)
    )
    return tx.scalars(step, execution_options={"populate_existing": True}).one()


def withdrawal_of(tx: Session, merchant_id: UUID, withdrawal_id: UUID) -> Withdrawal | None:
    """Returns the merchant's own withdrawal."""
    return tx.scalar(
        select(Withdrawal).where(Withdrawal.id == withdrawal_id, Withdrawal.merchant_id == merchant_id)
    )


def count(tx: Session, *, merchant_id: UUID, status: WithdrawalStatus | None) -> int:
    """Counts the merchant's withdrawals, or those of the given status."""
    matching = _matching(merchant_id, status)
    return tx.scalar(select(func.count()).select_from(Withdrawal).where(*matching)) or 0


def page(
    tx: Session,
    *,
    merchant_id: UUID,
    status: WithdrawalStatus | None,
    newest_first: bool,
    offset: int,
    limit: int,
) -> Sequence[Withdrawal]:
    """Returns one page of the merchant's withdrawals, in the order of creation."""
    keys = (Withdrawal.created_at, Withdrawal.id)
    order = [key.desc() if newest_first else key.asc() for key in keys]
    query = select(Withdrawal).where(*_matching(merchant_id, status)).order_by(*order)
    return tx.scalars(query.offset(offset).limit(limit)).all()


def newest(
    tx: Session, *, merchant_id: UUID | None, status: WithdrawalStatus | None, limit: int
) -> Sequence[Withdrawal]:
    """Returns the newest withdrawals of one merchant, or of all. Ids are in the order of creation."""
    query = select(Withdrawal).where(*_matching(merchant_id, status)).order_by(Withdrawal.id.desc())
    return tx.scalars(query.limit(limit)).all()


def _matching(merchant_id: UUID | None, status: WithdrawalStatus | None) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if merchant_id is not None:
        conditions.append(Withdrawal.merchant_id == merchant_id)
    if status is not None:
        conditions.append(Withdrawal.status == status)
    return conditions


_BACKLOG = text("""
SELECT count(*) FILTER (WHERE substatus IS NULL) AS pending,
       count(*) FILTER (WHERE substatus = 'processing') AS processing,
       (SELECT count(*) FROM parked WHERE parked_at IS NOT NULL) AS parked
FROM withdrawals WHERE status = 'pending'
""")


def backlog(connection: Connection) -> Row[Any]:
    """Returns the numbers of withdrawals that wait for an operator (`pending`, `processing`), and of parked events."""
    return connection.execute(_BACKLOG).one()
