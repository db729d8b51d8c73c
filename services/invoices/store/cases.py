"""Late money, and pictures."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.lists import in_span
from kit.db.rows import Rows
from services.invoices.domain.late import PictureKind
from services.invoices.models import Case, CustomerPicture
from services.invoices.store.views import CaseView, PictureView, PictureWithContent

_CASES = Rows(CaseView, table_of(Case))
_SIZE = func.octet_length(CustomerPicture.content)
PICTURES = Rows(PictureView, table_of(CustomerPicture), size=_SIZE)
_WITH_CONTENT = Rows(PictureWithContent, table_of(CustomerPicture), size=_SIZE)


def insert_case_if_first(tx: Session, case: Case) -> CaseView | None:
    """Stores the case and returns it; None when the invoice has one already."""
    given = {
        name: getattr(case, name) for name in ("invoice_id", "merchant_id", "deal_id", "opened_at", "note")
    }
    new = insert(Case).values(given).on_conflict_do_nothing(index_elements=["invoice_id"])
    return _CASES.one_or_none(tx.execute(new.returning(*_CASES.columns)))


def case_of_invoice(connection: Connection | Session, invoice_id: UUID) -> CaseView | None:
    query = select(*_CASES.columns).where(Case.invoice_id == invoice_id)
    return _CASES.one_or_none(connection.execute(query))


def case(connection: Connection | Session, number: int) -> CaseView | None:
    query = select(*_CASES.columns).where(Case.number == number)
    return _CASES.one_or_none(connection.execute(query))


def cases(
    connection: Connection,
    limit: int,
    *,
    open_only: bool,
    opened_from: datetime | None,
    opened_before: datetime | None,
    after: int,
    merchant_id: UUID | None = None,
    oldest_first: bool = False,
) -> Sequence[CaseView]:
    """Returns cases in the order of their numbers, the greatest first unless `oldest_first`: from the start, or after
    the number `after`.
    """
    query = select(*_CASES.columns).limit(limit)
    query = query.order_by(Case.number if oldest_first else Case.number.desc())
    query = query.where(*in_span(Case.opened_at, opened_from, opened_before))
    if after:
        query = query.where(Case.number > after if oldest_first else Case.number < after)
    if merchant_id:
        query = query.where(Case.merchant_id == merchant_id)
    if open_only:
        query = query.where(Case.resolved_at.is_(None))
    return _CASES.all(connection.execute(query))


def resolve_case_if_open(
    tx: Session, number: int, *, outcome: str, actor: str, at: datetime
) -> CaseView | None:
    query = update(Case).where(Case.number == number, Case.resolved_at.is_(None))
    query = query.values(outcome=outcome, actor=actor, resolved_at=at)
    return _CASES.one_or_none(tx.execute(query.returning(*_CASES.columns)))


def open_case_count(connection: Connection) -> int:
    query = select(func.count()).select_from(Case).where(Case.resolved_at.is_(None))
    return connection.execute(query).scalar_one()


def pictures(connection: Connection, deal_id: UUID) -> Sequence[PictureView]:
    """Returns the pictures of the deal's appeal and case, in the order of their arrival."""
    query = select(*PICTURES.columns).where(CustomerPicture.deal_id == deal_id).order_by(CustomerPicture.at)
    return PICTURES.all(connection.execute(query))


def picture(connection: Connection, deal_id: UUID, kind: PictureKind) -> PictureWithContent | None:
    query = select(*_WITH_CONTENT.columns)
    query = query.where(CustomerPicture.deal_id == deal_id, CustomerPicture.kind == kind)
    return _WITH_CONTENT.one_or_none(connection.execute(query))
