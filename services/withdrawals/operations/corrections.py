"""Corrections: changes of a merchant's money beside invoices and withdrawals, each once per request_key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from kit.audit import acts
from kit.audit.approvals import Approval, pending_of
from kit.audit.listing import Act, newest_acts_on
from kit.base.ids import new_id, parse_id
from kit.base.money import usdt_text
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.rpc import approvals, values
from kit.rpc.errors import edit_conflict, not_decided
from services.withdrawals import errors
from services.withdrawals.domain import (
    ALWAYS_BY_TWO,
    DEBITS,
    MANUAL,
    MAX_AMOUNT,
    UNPAID,
    CorrectionKind,
    Held,
    correction_movements,
)
from services.withdrawals.operations import fields
from services.withdrawals.operations.correction_terms import MAKE, Wanted, make_terms, request_of, wanted_of
from services.withdrawals.operations.reading import ACTS_MOST
from services.withdrawals.store import corrections, ledger
from services.withdrawals.store.corrections import Made
from services.withdrawals.store.decisions import CORRECTION
from services.withdrawals.store.views import CorrectionView, Debt
from services.withdrawals.wiring import Deps

_NOT_IN_ROW: Final = ("locked_rate", "case_decided")
_TEXT_MOST: Final = most_of(pb.MakeCorrectionRequest, "reason")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The fields of a request, as the caller gave them."""

    kind: CorrectionKind
    merchant_id: str
    invoice_id: str
    amount: str
    received_amount: str
    conversion_rate: str
    case_number: int


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The effects that a correction would have now."""

    wanted: Wanted
    owed: Decimal
    held: Held
    reversible: Decimal | None
    needs_approval: bool
    same_evidence: CorrectionView | None


def make_correction(
    deps: Deps, asked: Asked, *, reason: str, evidence: str, request_key: str, expected_amount: str
) -> CorrectionView:
    """Moves the money; a `request_key` that was used before returns the correction that it made.

    Raises APPROVAL_REQUIRED, INVOICE_NOT_FOUND, MERCHANT_NOT_FOUND, CORRECTION_INVALID, EDIT_CONFLICT,
    APPROVAL_STATE_CONFLICT, NOT_DECIDED.
    """
    key = values.uuid("request_key", request_key)
    wanted = _wanted(deps, _as_made_before(deps, asked, key))
    if expected_amount and fields.amount("expected_amount", expected_amount) != wanted.amount:
        raise edit_conflict("expected_amount", usdt_text(wanted.amount))
    texts = {
        "reason": values.label("reason", reason.strip(), most=_TEXT_MOST),
        "evidence": _evidence(wanted.kind, evidence),
        "request_key": str(key),
    }
    return approvals.done(_make_or_request(deps, wanted, texts))


def _evidence(kind: CorrectionKind, evidence: str) -> str:
    text = evidence.strip()
    return "" if kind in MANUAL and not text else values.label("evidence", text, most=_TEXT_MOST)


def _as_made_before(deps: Deps, asked: Asked, key: UUID) -> Asked:
    """Returns the request with the amount of the correction that the key made, if it leaves the amount out."""
    if asked.amount:
        return asked
    with deps.db.transaction() as tx:
        made = corrections.of_request_key(tx, key)
    return asked if made is None else replace(asked, amount=usdt_text(made.amount))


@retry_conflicts
def _make_or_request(deps: Deps, wanted: Wanted, texts: Mapping[str, str]) -> CorrectionView | Approval:
    with deps.db.transaction() as tx:
        held = ledger.locked(tx, wanted.merchant_id)
        made = corrections.of_request_key(tx, UUID(texts["request_key"]))
        if made is not None:
            if not _is_made_of(made, wanted, texts):
                raise errors.correction_key_taken()
            return made
        _require_possible(tx, wanted)
        if _needs_two(deps, wanted):
            return approvals.request(tx, make_terms({**request_of(wanted), **texts}), deps)
        return _make(deps, tx, wanted, texts, held)


def _is_made_of(made: CorrectionView, wanted: Wanted, texts: Mapping[str, str]) -> bool:
    in_row = [each.name for each in dataclass_fields(Wanted) if each.name not in _NOT_IN_ROW]
    return all(getattr(made, each) == getattr(wanted, each) for each in in_row) and all(
        str(getattr(made, each)) == text for each, text in texts.items()
    )


def make_approved(deps: Deps, tx: Session, asked: Approval) -> None:
    """Makes the correction that was requested. Raises what `make_correction` raises."""
    wanted = wanted_of(asked.request)
    held = ledger.locked(tx, wanted.merchant_id)
    if corrections.of_request_key(tx, UUID(asked.request["request_key"])) is not None:
        raise approvals.changed_since()
    _require_possible(tx, wanted)
    _make(deps, tx, wanted, asked.request, held)


def require_undecided(deps: Deps, asked: Approval) -> None:
    """Raises CORRECTION_INVALID for a late credit whose money goes back by now."""
    invoice, request = parse_id(str(asked.request.get("invoice_id"))), asked.request
    if request.get("kind") == CorrectionKind.LATE_CREDIT and invoice and deps.invoices:
        money = deps.invoices.deal_money(invoice_id=invoice, received_amount=Decimal(1))
        _require_not_returned(money.case_decided)


def _require_not_returned(case_decided: str | None) -> None:
    if case_decided == "return":
        raise errors.correction_invalid("The merchant has answered, or the case ended: this money goes back")


def check_correction(deps: Deps, asked: Asked, *, evidence: str) -> Preview:
    """Returns what the correction would do now; changes nothing. Raises as `make_correction`."""
    wanted = _wanted(deps, asked)
    with deps.db.transaction() as tx:
        _require_possible(tx, wanted)
        return _preview(deps, tx, wanted, values.text("evidence", evidence.strip(), least=0, most=_TEXT_MOST))


def check_pending(deps: Deps, *, invoice_id: str, merchant_id: str) -> Preview:
    """Returns what the correction would do now that waits for a second person. Raises CORRECTION_NOT_FOUND."""
    kind, id = ("invoice", invoice_id) if invoice_id else ("merchant", merchant_id)
    object = f"{kind}:{values.uuid(f'{kind}_id', id)}"
    with deps.db.transaction() as tx:
        asked = pending_of(tx, object)
        if asked is None or asked.act != MAKE:
            raise errors.correction_not_found()
        return _preview(deps, tx, wanted_of(asked.request), str(asked.request["evidence"]))


def _preview(deps: Deps, tx: Session, wanted: Wanted, evidence: str) -> Preview:
    held = ledger.held(tx, wanted.merchant_id)
    most = None
    if wanted.kind is CorrectionKind.REVERSAL and wanted.invoice_id:
        most = corrections.money_of(tx, wanted.invoice_id).reversible
    is_credit = wanted.kind not in DEBITS
    return Preview(
        wanted=wanted,
        owed=_owed(wanted, held),
        held=held,
        reversible=most,
        needs_approval=_needs_two(deps, wanted),
        same_evidence=corrections.credit_of_evidence(tx, evidence) if evidence and is_credit else None,
    )


def list_corrections(
    deps: Deps,
    *,
    merchant_id: str,
    invoice_id: str,
    kind: CorrectionKind | None,
    limit: int,
    after_correction_id: str,
    created_from: datetime | None,
    created_before: datetime | None,
    with_acts: bool,
) -> tuple[Sequence[CorrectionView], Sequence[Act]]:
    """Returns corrections, newest first, and the acts on those of one invoice and its requests, oldest first. Raises
    CORRECTION_NOT_FOUND for an unknown `after_correction_id`.
    """
    merchant = values.uuid("merchant_id", merchant_id) if merchant_id else None
    invoice = values.uuid("invoice_id", invoice_id) if invoice_id else None
    with deps.db.transaction() as tx:
        after = None
        if after_correction_id:
            after = corrections.correction(tx, values.uuid("after_correction_id", after_correction_id))
            if after is None or merchant not in (None, after.merchant_id):
                raise errors.correction_not_found()
        found = corrections.listed(
            tx,
            merchant_id=merchant,
            invoice_id=invoice,
            kind=kind,
            created_from=created_from,
            created_before=created_before,
            after=after,
            limit=values.rows(limit),
        )
        if invoice is None or not with_acts:
            return found, ()
        objects = [f"invoice:{invoice}", *(f"correction:{each.id}" for each in found)]
        return found, newest_acts_on(tx.connection(), objects, limit=ACTS_MOST)[::-1]


def find_made(deps: Deps, *, request_key: str) -> Made:
    with deps.db.transaction() as tx:
        return corrections.made_of(tx, values.uuid("request_key", request_key))


def list_debts(deps: Deps, *, limit: int) -> Sequence[Debt]:
    """Returns the merchants that owe money, the largest debt first."""
    with deps.db.transaction() as tx:
        return corrections.debts(tx, limit=values.rows(limit))


# -- what is wanted


def _wanted(deps: Deps, asked: Asked) -> Wanted:
    """Checks the fields that the kind needs, and computes the amount from the deal's terms."""
    if asked.kind in MANUAL:
        merchant = values.uuid("merchant_id", asked.merchant_id)
        refusal = deps.identity.refusal_of(merchant) if deps.identity else None
        if refusal is not None and refusal.reason == "MERCHANT_NOT_FOUND":
            raise refusal
        return _new(asked, merchant, _amount(asked.amount))
    invoice = values.uuid("invoice_id", asked.invoice_id)
    if asked.kind is CorrectionKind.REVERSAL:
        with deps.db.transaction() as tx:
            credited = corrections.merchant_of(tx, invoice)
            left = corrections.money_of(tx, invoice).reversible
        if credited is None or not (asked.amount or left):
            raise errors.correction_invalid(
                "Nothing that was credited for this invoice is left to take back", most=usdt_text(left)
            )
        return _new(asked, credited, _amount(asked.amount or usdt_text(left)), invoice_id=invoice)
    if deps.invoices is None:
        raise errors.correction_invalid("This installation of withdrawals has no address of invoices")
    received = values.decimal("received_amount", asked.received_amount)
    rate = values.decimal("conversion_rate", asked.conversion_rate) if asked.conversion_rate else None
    money = deps.invoices.deal_money(invoice_id=invoice, received_amount=received, conversion_rate=rate)
    is_late = asked.kind is CorrectionKind.LATE_CREDIT
    if is_late and money.invoice_status not in UNPAID:
        raise errors.correction_invalid("Money is late only for an invoice that ended without success")
    if is_late and asked.case_number not in (0, money.case_number):
        raise errors.case_of_another()
    if not is_late and money.invoice_status != "success":
        raise errors.correction_invalid("Only a paid invoice can be paid too much")
    if money.received is None:
        raise LookupError(f"invoices has computed no credit of invoice {invoice}")
    return _new(
        asked,
        money.merchant_id,
        _amount(f"{money.received.credit_usdt:f}"),
        invoice_id=invoice,
        case_number=(values.whole_number("case_number", asked.case_number, least=0) or None)
        if is_late
        else None,
        received_amount=received,
        currency_code=money.currency_code,
        conversion_rate=rate or money.conversion_rate,
        locked_rate=money.conversion_rate,
        case_decided=money.case_decided if is_late else None,
    )


def _new(asked: Asked, merchant_id: UUID, amount: Decimal, **more: Any) -> Wanted:
    nothing = dict.fromkeys(
        (*("invoice_id", "case_number", "received_amount", "currency_code", "conversion_rate"), *_NOT_IN_ROW)
    )
    return Wanted(kind=asked.kind, merchant_id=merchant_id, amount=amount, **(nothing | more))


def _amount(text: str) -> Decimal:
    amount = fields.amount("amount", text)
    if not 0 < amount <= MAX_AMOUNT:
        raise errors.correction_invalid(
            f"A correction moves more than 0 and at most {usdt_text(MAX_AMOUNT)} USDT"
        )
    return amount


def _require_possible(tx: Session, wanted: Wanted) -> None:
    if wanted.invoice_id is None:
        return
    if not corrections.are_decided(tx, wanted.invoice_id):
        raise not_decided("correction")
    money = corrections.money_of(tx, wanted.invoice_id)
    if (wanted.kind is CorrectionKind.LATE_CREDIT and money.late) or (
        wanted.kind is CorrectionKind.SURPLUS and money.surplus
    ):
        raise errors.accounted_for()
    _require_not_returned(wanted.case_decided)
    if wanted.kind is CorrectionKind.REVERSAL:
        most = money.reversible
        if wanted.amount > most:
            raise errors.correction_invalid(
                f"At most {usdt_text(most)} USDT can be taken back: what was credited for the invoice, less earlier "
                "reversals and refunds",
                most=usdt_text(most),
            )


def _needs_two(deps: Deps, wanted: Wanted) -> bool:
    return deps.settings.four_eyes and (
        wanted.kind in ALWAYS_BY_TWO
        or wanted.conversion_rate != wanted.locked_rate
        or wanted.amount >= deps.settings.four_eyes_usdt
    )


def _owed(wanted: Wanted, held: Held) -> Decimal:
    return max(wanted.amount - held.available, Decimal(0)) if wanted.kind in DEBITS else Decimal(0)


def _make(deps: Deps, tx: Session, wanted: Wanted, texts: Mapping[str, str], held: Held) -> CorrectionView:
    made = CorrectionView(
        id=new_id(),
        kind=wanted.kind,
        merchant_id=wanted.merchant_id,
        invoice_id=wanted.invoice_id,
        case_number=wanted.case_number,
        amount=wanted.amount,
        owed=_owed(wanted, held),
        received_amount=wanted.received_amount,
        currency_code=wanted.currency_code,
        conversion_rate=wanted.conversion_rate,
        reason=texts["reason"],
        evidence=texts["evidence"],
        request_key=UUID(texts["request_key"]),
        created_at=deps.clock.now(),
    )
    corrections.add(tx, made)
    movements = correction_movements(made.id, made.kind, amount=made.amount, owed=made.owed)
    ledger.transfer(tx, ledger.accounts(tx, made.merchant_id), movements, at=made.created_at)
    acts.record(
        tx,
        MAKE,
        f"correction:{made.id}",
        merchant_id=made.merchant_id,
        after=acts.values_of(made, [each for each in CORRECTION.fields if each != "merchant_id"]),
    )
    return made
