"""Late money and its pictures: the invoice ended and stays as it is, but the customer reports that money was sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.audit import acts
from kit.audit.decisions import is_as_decided
from kit.base import actors
from kit.base.pictures import NoPicture, Picture, cleaned
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.rpc import values
from kit.rpc.actors import require_merchant
from kit.rpc.errors import Refused, is_away, not_decided
from services.invoices import errors
from services.invoices.domain.late import (
    ANSWERS,
    PICTURE_MAX_PIXELS,
    End,
    PictureKind,
    Policy,
    late_money_possible,
)
from services.invoices.domain.states import InvoiceStatus
from services.invoices.models import PICTURE_MAX_BYTES, Case, CustomerPicture, Deal
from services.invoices.operations import fields, lifecycle
from services.invoices.store import cases, deal_lists, deals, invoices
from services.invoices.store.deal_lists import ListedDeal
from services.invoices.store.decisions import CASE_ANSWER, is_as_opened, seal_of_case
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
    """A case with everything that an operator needs to find the money, as it was at this time."""

    case: CaseView
    invoice: InvoiceView
    requisite: RequisiteView
    picture: PictureView | None
    at: datetime


@dataclass(frozen=True)
class ListedCase:
    """A case with its deal."""

    case: CaseView
    listed: ListedDeal


@dataclass(frozen=True)
class ListedCases:
    """Cases as they were at this time."""

    rows: Sequence[ListedCase]
    at: datetime


# -- the customer


def open_case(deps: Deps, *, invoice_id: str, note: str, picture: bytes | None) -> CaseView:
    """Records late money; returns the invoice's case, or the earlier one when it already had one. The case keeps what
    its merchant wants to be done with late money now; while identity is away what merchants want who chose nothing, as
    the customer shall not be refused for that.

    Raises INVOICE_NOT_FOUND, INVOICE_FINISHED, DEAL_STATE_CONFLICT, VALIDATION_ERROR.
    """
    return _open(deps, invoice_id, note=fields.note(note), content=picture_from(picture), line_id=None)


def _open(
    deps: Deps, invoice_id: str, *, note: str, content: Picture | None, line_id: UUID | None
) -> CaseView:
    invoice = invoices.invoice_view_by_id(deps.db, fields.invoice_id(invoice_id))
    if invoice is None:
        raise errors.invoice_not_found()
    with deps.db.autocommit() as connection:
        earlier = cases.case_of_invoice(connection, invoice.id)
    if earlier is not None:
        return earlier
    try:
        policy = Policy(deps.identity.merchant(invoice.merchant_id).late_money)
    except Refused as refused:
        if not is_away(refused):
            raise
        policy = Policy.ASK_CREDIT
    return _opened(deps, invoice.id, policy, note=note, content=content, line_id=line_id)


@retry_conflicts
def _opened(
    deps: Deps, id: UUID, policy: Policy, *, note: str, content: Picture | None, line_id: UUID | None
) -> CaseView:
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, id)
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
            note=note,
            policy=policy,
            line_id=line_id,
            answer_by=now + deps.settings.late_money_answer_time if policy.asks else None,
        )
        opened.seal = seal_of_case(deps.seals, opened)
        row = cases.insert_case_if_first(tx, opened)
        if row is None:  # an existing case is not changed
            return _found(cases.case_of_invoice(tx, invoice.id))
        if line_id is not None:
            after = {"line_id": line_id, "note": note, "invoice_id": invoice.id}
            acts.record(tx, "case.open", f"case:{row.number}", merchant_id=row.merchant_id, after=after)
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
    undecided: bool = False,
) -> ListedCases:
    """Returns cases, newest first unless `oldest_first`: from the start, or after the number `after_number`. With
    `undecided` only those that wait for the merchant's answer.
    """
    now = deps.clock.now()
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
            undecided_at=now if undecided else None,
        )
        of_cases = deal_lists.listed_deals(connection, {row.deal_id for row in rows})
    return ListedCases([ListedCase(row, of_cases[row.deal_id]) for row in rows], now)


def get_case(deps: Deps, *, number: int) -> CaseStory:
    """Returns the case with its invoice and requisite. Raises CASE_NOT_FOUND."""
    now = deps.clock.now()
    with deps.db.autocommit() as connection:
        row = _found(cases.case(connection, number))
        require_merchant(row.merchant_id, errors.case_not_found)
        invoice = invoices.invoice_view(connection, row.invoice_id)
        requisite = (
            deals.requisite(connection, invoice.deal.requisite_id) if invoice and invoice.deal else None
        )
        if invoice is None or requisite is None:
            raise LookupError(f"case {number} has lost its invoice or requisite")  # foreign keys forbid it
        pictures = cases.pictures(connection, row.deal_id)
    picture = next((each for each in pictures if each.kind == PictureKind.CASE), None)
    return CaseStory(row, invoice, requisite, picture, now)


def open_late_case(deps: Deps, *, invoice_id: str, line_id: str, note: str) -> CaseView:
    """Opens the case of an invoice whose money is this line of a bank, as `open_case` does for its customer."""
    line = values.uuid("line_id", line_id)
    return _open(deps, invoice_id, note=fields.note(note), content=None, line_id=line)


@retry_conflicts
def resolve_case(deps: Deps, *, number: int, outcome: str, ended_as: str) -> CaseView:
    """Closes the case with the answer for the customer and what was done with the money.

    Raises CASE_NOT_FOUND, CASE_STATE_CONFLICT, NOT_DECIDED.
    """
    text = values.text("outcome", outcome.strip(), most=OUTCOME_MAX_CHARACTERS)
    end, now = fields.one_of("ended_as", ended_as, tuple(End)), deps.clock.now()
    with deps.db.transaction() as tx:
        _open_case(deps, tx, number)
        ended = {"outcome": text, "ended_as": end, "actor": str(actors.current()), "resolved_at": now}
        row = cases.changed_case(tx, number, **ended)
        after = {"outcome": text, "ended_as": end, "due": row.due(now), "invoice_id": row.invoice_id}
        acts.record(tx, "case.resolve", f"case:{number}", merchant_id=row.merchant_id, after=after)
        lifecycle.send_hint(tx, deps, row.invoice_id)
    return row


@retry_conflicts
def answer_case(deps: Deps, *, number: int, answer: str, text: str) -> CaseView:
    """Records the merchant's answer: credit the late money or return it.

    Raises CASE_NOT_FOUND, CASE_STATE_CONFLICT, NOT_DECIDED.
    """
    given = fields.one_of("answer", answer, ANSWERS)
    words = values.text("text", text.strip(), least=0, most=OUTCOME_MAX_CHARACTERS)
    with deps.db.transaction() as tx:
        if _open_case(deps, tx, number).merchant_answer is not None:
            raise errors.case_answered()
        decided = {"merchant_answer": given, "merchant_text": words}
        by = {"answered_by": str(actors.current()), "answered_at": deps.clock.now()}
        row = cases.changed_case(tx, number, **decided, **by)
        after = decided | {"invoice_id": row.invoice_id}
        acts.record(tx, "case.answer", f"case:{number}", merchant_id=row.merchant_id, after=after)
    return row


def _open_case(deps: Deps, tx: Session, number: int) -> Case:
    """Returns the open case, locked. Raises NOT_DECIDED for one of which SQL wrote the policy or the answer."""
    case = cases.case_to_change(tx, number)
    if case is None:
        raise errors.case_not_found()
    require_merchant(case.merchant_id, errors.case_not_found)
    if case.resolved_at is not None:
        raise errors.case_state_conflict()
    answer = acts.values_of(case, CASE_ANSWER.fields)
    if not is_as_opened(deps.seals, case) or not is_as_decided(tx, CASE_ANSWER, number, answer, locked=True):
        raise not_decided("case")
    return case


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
