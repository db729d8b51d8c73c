"""CorrectionsService: the methods."""

from dataclasses import asdict
from typing import Final

from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from kit.base import actors
from kit.base.money import usdt_text
from kit.base.proto import optional_datetime, timestamp_from
from kit.rpc import values
from kit.rpc.audit import act_to_message
from kit.rpc.methods import Methods
from services.withdrawals.domain import CorrectionKind
from services.withdrawals.operations import corrections
from services.withdrawals.operations.corrections import Asked
from services.withdrawals.store.views import CorrectionView
from services.withdrawals.wiring import Deps

_KINDS: Final = {pb.CorrectionKind.Value(f"CORRECTION_KIND_{kind.name}"): kind for kind in CorrectionKind}
_NUMBERS: Final = {kind: number for number, kind in _KINDS.items()}


def correction_to_message(correction: CorrectionView) -> pb.Correction:
    """Returns the message; only operators get the evidence."""
    return pb.Correction(
        correction_id=str(correction.id),
        kind=_NUMBERS[CorrectionKind(correction.kind)],
        merchant_id=str(correction.merchant_id),
        invoice_id=str(correction.invoice_id or ""),
        case_number=correction.case_number or 0,
        amount=usdt_text(correction.amount),
        owed=usdt_text(correction.owed),
        received_amount="" if correction.received_amount is None else f"{correction.received_amount:.2f}",
        currency_code=correction.currency_code or "",
        conversion_rate="" if correction.conversion_rate is None else f"{correction.conversion_rate:.2f}",
        reason=correction.reason,
        evidence=correction.evidence if _by_operator() else "",
        created_at=timestamp_from(correction.created_at),
    )


def _by_operator() -> bool:
    author = actors.current()
    return author.surface != "dashboard" and author.kind in {"person", "cli"}


def asked_from_message(request: pb.MakeCorrectionRequest) -> Asked:
    kind = kind_from_message(request.kind)
    if kind is None:
        raise values.invalid("kind", f"Expected one of {', '.join(CorrectionKind)}")
    return Asked(
        kind=kind,
        merchant_id=request.merchant_id,
        invoice_id=request.invoice_id,
        amount=request.amount,
        received_amount=request.received_amount,
        conversion_rate=request.conversion_rate,
        case_number=request.case_number,
    )


def kind_from_message(number: pb.CorrectionKind.ValueType) -> CorrectionKind | None:
    """Returns the kind; None for UNSPECIFIED."""
    if number and number not in _KINDS:
        raise values.invalid("kind", f"Expected one of {', '.join(CorrectionKind)}")
    return _KINDS.get(number)


def make_correction(deps: Deps, request: pb.MakeCorrectionRequest) -> pb.MakeCorrectionResponse:
    made = corrections.make_correction(
        deps,
        asked_from_message(request),
        reason=request.reason,
        evidence=request.evidence,
        request_key=request.request_key,
        expected_amount=request.expected_amount,
    )
    return pb.MakeCorrectionResponse(correction=correction_to_message(made))


def check_correction(deps: Deps, request: pb.CheckCorrectionRequest) -> pb.CheckCorrectionResponse:
    asked = request.correction
    if request.pending:
        found = corrections.check_pending(deps, invoice_id=asked.invoice_id, merchant_id=asked.merchant_id)
    else:
        found = corrections.check_correction(deps, asked_from_message(asked), evidence=asked.evidence)
    rates = found.wanted.conversion_rate, found.wanted.locked_rate
    return pb.CheckCorrectionResponse(
        amount=usdt_text(found.wanted.amount),
        owed=usdt_text(found.owed),
        available=usdt_text(found.held.available),
        debt=usdt_text(found.held.owed),
        reserved=usdt_text(found.held.reserved),
        reversible="" if found.reversible is None else usdt_text(found.reversible),
        conversion_rate="" if rates[0] is None else f"{rates[0]:.2f}",
        locked_rate="" if rates[1] is None else f"{rates[1]:.2f}",
        needs_approval=found.needs_approval,
        same_evidence=None if found.same_evidence is None else correction_to_message(found.same_evidence),
    )


def list_corrections(deps: Deps, request: pb.ListCorrectionsRequest) -> pb.ListCorrectionsResponse:
    found, acts = corrections.list_corrections(
        deps,
        merchant_id=request.merchant_id,
        invoice_id=request.invoice_id,
        kind=kind_from_message(request.kind),
        limit=request.limit,
        after_correction_id=request.after_correction_id,
        created_from=optional_datetime(request, "created_from"),
        created_before=optional_datetime(request, "created_before"),
        with_acts=_by_operator(),
    )
    return pb.ListCorrectionsResponse(
        corrections=map(correction_to_message, found),
        acts=[act_to_message(each, deps.settings.service) for each in acts],
    )


def find_made(deps: Deps, request: pb.FindMadeRequest) -> pb.FindMadeResponse:
    made = corrections.find_made(deps, request_key=request.request_key)
    return pb.FindMadeResponse(**{name: str(id) for name, id in asdict(made).items() if id is not None})


def list_debts(deps: Deps, request: pb.ListDebtsRequest) -> pb.ListDebtsResponse:
    return pb.ListDebtsResponse(
        debts=[
            pb.Debt(
                merchant_id=str(each.merchant_id),
                owed=usdt_text(each.owed),
                since=timestamp_from(each.since),
            )
            for each in corrections.list_debts(deps, limit=request.limit)
        ]
    )


METHODS: Final[Methods] = {
    "MakeCorrection": make_correction,
    "CheckCorrection": check_correction,
    "ListCorrections": list_corrections,
    "FindMade": find_made,
    "ListDebts": list_debts,
}
