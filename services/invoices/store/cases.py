"""Late money, and pictures."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from services.invoices.domain import PictureKind
from services.invoices.models import Case, CustomerPicture

_CASES: Select[Any] = select(*Case.__table__.columns)
_PICTURES: Select[Any] = select(
    *(column for column in CustomerPicture.__table__.columns if column.name != "content"),
    func.octet_length(CustomerPicture.content).label("size"),
)


def insert_case_if_first(tx: Session, case: Case) -> Row[Any] | None:
    """Stores the case and returns it; None when the invoice has one already."""
    given = {
        name: getattr(case, name) for name in ("invoice_id", "merchant_id", "deal_id", "opened_at", "note")
    }
    new = insert(Case).values(given).on_conflict_do_nothing(index_elements=["invoice_id"])
    return tx.execute(new.returning(*Case.__table__.columns)).one_or_none()


def case_of_invoice(connection: Connection | Session, invoice_id: UUID) -> Row[Any] | None:
    return connection.execute(_CASES.where(Case.invoice_id == invoice_id)).one_or_none()


def case(connection: Connection | Session, number: int) -> Row[Any] | None:
    return connection.execute(_CASES.where(Case.number == number)).one_or_none()


def newest_cases(connection: Connection, limit: int, *, open_only: bool) -> Sequence[Row[Any]]:
    query = _CASES.where(Case.resolved_at.is_(None)) if open_only else _CASES
    return connection.execute(query.order_by(Case.number.desc()).limit(limit)).all()


def resolve_case_if_open(
    tx: Session, number: int, *, outcome: str, actor: str, at: datetime
) -> Row[Any] | None:
    query = update(Case).where(Case.number == number, Case.resolved_at.is_(None))
    query = query.values(outcome=outcome, actor=actor, resolved_at=at)
    return tx.execute(query.returning(*Case.__table__.columns)).one_or_none()


def open_case_count(connection: Connection) -> int:
    query = select(func.count()).select_from(Case).where(Case.resolved_at.is_(None))
    return connection.execute(query).scalar_one()


def pictures(connection: Connection, deal_id: UUID) -> Sequence[Row[Any]]:
    """Pictures without their content, and with their `size` in bytes."""
    return connection.execute(
        _PICTURES.where(CustomerPicture.deal_id == deal_id).order_by(CustomerPicture.at)
    ).all()


def picture(connection: Connection, deal_id: UUID, kind: PictureKind) -> Row[Any] | None:
    """The picture with its content."""
    query = _PICTURES.add_columns(CustomerPicture.content).where(
        CustomerPicture.deal_id == deal_id, CustomerPicture.kind == kind
    )
    return connection.execute(query).one_or_none()
