"""Late money and its pictures: the invoice ended and stays as it is, but the customer reports that money was sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.audit import acts
from kit.base import actors
from kit.base.pictures import NoPicture, Picture, cleaned
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.rpc import values
from services.invoices import errors
from services.invoices.domain.late import (
    PICTURE_MAX_PIXELS,
    PictureKind,
    late_money_possible,
)
from services.invoices.domain.states import InvoiceStatus
from services.invoices.models import PICTURE_MAX_BYTES, Case, CustomerPicture, Deal
from services.invoices.operations import fields, lifecycle
from services.invoices.store import cases, deal_lists, deals, invoices
from services.invoices.store.deal_lists import ListedDeal
from services.invoices.store.views import (
    CaseView,
    InvoiceView,
    PictureView,
    PictureWithContent,
    RequisiteView,
)
from services.invoices.wiring import Deps

OUTCOME_MAX_CHARACTERS = most_of(pb.ResolveCaseRequest, "outcome")


@dataclass(frozen=True)
class CaseStory:
    """A case with everything that an operator needs to find the money."""

    case: CaseView
    invoice: InvoiceView
    requisite: RequisiteView
    picture: PictureView | None


@dataclass(frozen=True)
class ListedCase:
    """A case with its deal."""

    case: CaseView
    listed: ListedDeal


# -- the customer


@retry_conflicts
def open_case(deps: Deps, *, invoice_id: str, note: str, picture: bytes | None) -> CaseView:
    """Records late money; returns the invoice's case, or the earlier one when it already had one.

    Raises INVOICE_NOT_FOUND, INVOICE_FINISHED, DEAL_STATE_CONFLICT, VALIDATION_ERROR.
    """
    now = deps.clock.now()
    written, content = fields.note(note), picture_from(picture)
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, fields.invoice_id(invoice_id))
        lifecycle.expire_if_overdue(tx, deps, invoice, deal, now)
        if invoice.status == InvoiceStatus.PENDING:
            raise errors.deal_state_conflict("The payment is open; nothing is late", status=invoice.status)
        if deal is None or not late_money_possible(InvoiceStatus(invoice.status), has_deal=True):
            raise errors.invoice_finished(invoice.status)
        opened = Case(
            invoice_id=invoice.id,
            merchant_id=invoice.merchant_id,
            deal_id=deal.id,
            opened_at=now,
            note=written,
        )
        row = cases.insert_case_if_first(tx, opened)
        if row is None:  # an existing case is not changed
            return _found(cases.case_of_invoice(tx, invoice.id))
        if content is not None:
            keep_picture(tx, deal, PictureKind.CASE, content, now)
        lifecycle.send_hint(tx, deps, invoice.id)
    return row


def picture_from(content: bytes | None) -> Picture | None:
    """Returns the picture without its metadata, such as place and camera, which operators must not see.

    Raises VALIDATION_ERROR with field "picture" for content that is no picture, or a picture that is too large.
    """
    if not content:
        return None
    if len(content) > PICTURE_MAX_BYTES:
        raise values.invalid("picture", f"A picture has at most {PICTURE_MAX_BYTES // 1024**2} MiB")
    try:
        return cleaned(content, most_bytes=PICTURE_MAX_BYTES, most_pixels=PICTURE_MAX_PIXELS)
    except NoPicture as fault:
        raise values.invalid("picture", f"picture: {fault}") from None


def keep_picture(tx: Session, deal: Deal, kind: PictureKind, picture: Picture, now: datetime) -> None:
    """Stores the picture in the transaction of the step that it belongs to."""
    tx.add(
        CustomerPicture(
            deal_id=deal.id,
            kind=kind,
            content_type=picture.content_type,
            content=picture.content,
            at=now,
        )
    )


# -- the operator


def list_cases(
    deps: Deps,
    *,
    open_only: bool,
    limit: int,
    opened_from: datetime | None = None,
    opened_before: datetime | None = None,
    after_number: int = 0,
    merchant_id: str = "",
    oldest_first: bool = False,
) -> Sequence[ListedCase]:
    """Returns cases, newest first unless `oldest_first`: from the start, or after the number `after_number`."""
    with deps.db.autocommit() as connection:
        rows = cases.cases(
            connection,
            values.rows(limit),
            open_only=open_only,
            opened_from=opened_from,
            opened_before=opened_before,
            after=values.whole_number("after_number", after_number, least=0),
            merchant_id=values.uuid("merchant_id", merchant_id) if merchant_id else None,
            oldest_first=oldest_first,
        )
        of_cases = deal_lists.listed_deals(connection, {row.deal_id for row in rows})
    return [ListedCase(row, of_cases[row.deal_id]) for row in rows]


def get_case(deps: Deps, *, number: int) -> CaseStory:
    """Returns the case with its invoice and requisite. Raises CASE_NOT_FOUND."""
    with deps.db.autocommit() as connection:
        row = _found(cases.case(connection, number))
        invoice = invoices.invoice_view(connection, row.invoice_id)
        requisite = (
            deals.requisite(connection, invoice.deal.requisite_id) if invoice and invoice.deal else None
        )
        if invoice is None or requisite is None:
            raise LookupError(f"case {number} has lost its invoice or requisite")  # foreign keys forbid it
        pictures = cases.pictures(connection, row.deal_id)
    picture = next((each for each in pictures if each.kind == PictureKind.CASE), None)
    return CaseStory(row, invoice, requisite, picture)


@retry_conflicts
def resolve_case(deps: Deps, *, number: int, outcome: str) -> CaseView:
    """Closes the case with the answer for the customer. Raises CASE_NOT_FOUND, CASE_STATE_CONFLICT."""
    answer = values.text("outcome", outcome.strip(), most=OUTCOME_MAX_CHARACTERS)
    with deps.db.transaction() as tx:
        known = _found(cases.case(tx, number))
        row = cases.resolve_case_if_open(
            tx, number, outcome=answer, actor=str(actors.current()), at=deps.clock.now()
        )
        if row is None:
            raise errors.case_state_conflict()
        acts.record(
            tx,
            "case.resolve",
            f"case:{number}",
            merchant_id=row.merchant_id,
            after={"outcome": answer, "invoice_id": row.invoice_id},
        )
        lifecycle.send_hint(tx, deps, known.invoice_id)
    return row


def get_picture(deps: Deps, *, deal_id: str, kind: PictureKind) -> PictureWithContent:
    """Returns the picture with its content. Raises DEAL_NOT_FOUND, PROOF_NOT_FOUND."""
    id = fields.deal_id(deal_id)
    with deps.db.autocommit() as connection:
        row = cases.picture(connection, id, kind)
    if row is None:
        raise errors.picture_not_found()
    return row


def _found(row: CaseView | None) -> CaseView:
    if row is None:
        raise errors.case_not_found()
    return row
