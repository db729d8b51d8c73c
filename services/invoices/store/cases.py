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
    names = (
        "invoice_id",
        "merchant_id",
        "deal_id",
        "opened_at",
        "note",
        "policy",
        "answer_by",
        "line_id",
        "seal",
    )
    given = {name: getattr(case, name) for name in names}
    new = insert(Case).values(given).on_conflict_do_nothing(index_elements=["invoice_id"])
    return _CASES.one_or_none(tx.execute(new.returning(*_CASES.columns)))


def case_of_invoice(connection: Connection | Session, invoice_id: UUID) -> CaseView | None:
    query = select(*_CASES.columns).where(Case.invoice_id == invoice_id)
    return _CASES.one_or_none(connection.execute(query))


def sealed_case_of_invoice(tx: Session, invoice_id: UUID) -> Case | None:
    return tx.scalar(select(Case).where(Case.invoice_id == invoice_id))


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
    undecided_at: datetime | None = None,
) -> Sequence[CaseView]:
    """Returns cases in the order of their numbers, the greatest first unless `oldest_first`: from the start, or after
    the number `after`. With `undecided_at` only those that wait for the merchant's answer then.
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
    if undecided_at is not None:
        waits = (Case.resolved_at.is_(None), Case.merchant_answer.is_(None), Case.answer_by > undecided_at)
        query = query.where(*waits)
    return _CASES.all(connection.execute(query))


def case_to_change(tx: Session, number: int) -> Case | None:
    """Returns the row, locked until the transaction ends."""
    return tx.scalar(select(Case).where(Case.number == number).with_for_update())


def changed_case(tx: Session, number: int, **columns: object) -> CaseView:
    """Writes these columns of the case, which is locked, and returns it."""
    query = update(Case).where(Case.number == number).values(columns).returning(*_CASES.columns)
    return _CASES.make(*tx.execute(query).one())


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
