"""The steps of a refund after its request: each is one step of the domain's table. All are safe to repeat but sending:
of two operators who send the same refund one alone reads that the money is to be paid.

A refund worth `FOUR_EYES_USDT` or more is sent when a second person approves, as is a return of more than the customer
was told to send.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from unicodedata import normalize
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.audit import acts
from kit.audit.approvals import Approval, Terms, close
from kit.audit.decisions import before_by_acts, is_as_decided
from kit.base import actors
from kit.base.money import fiat_text, usdt_text
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.rpc import approvals, values
from kit.rpc.actors import require_merchant
from kit.rpc.errors import not_decided
from services.withdrawals import errors
from services.withdrawals.domain import (
    REFUND_REACHED_FROM,
    RefundOrigin,
    RefundStatus,
    refund_movements,
)
from services.withdrawals.operations.bans import refusal_of_member
from services.withdrawals.operations.fields import Account, quoted
from services.withdrawals.store import corrections, ledger, refunds
from services.withdrawals.store.decisions import REFUND
from services.withdrawals.store.views import RefundView
from services.withdrawals.wiring import Deps

SEND: Final = "refund.send"
_ACTS: Final = {
    RefundStatus.READY: "refund.account",
    RefundStatus.SENT: SEND,
    RefundStatus.SUCCEEDED: "refund.complete",
    RefundStatus.FAILED: "refund.fail",
    RefundStatus.CANCELED: "refund.cancel",
}
_IN_ACTS: Final = (
    *("status", "account_kind", "account", "holder", "bank", "account_by_customer"),
    *("bank_reference", "failure", "finished_at"),
)
_NOT_SENT: Final[Sequence[Mapping[str, str]]] = ({}, {"status": "waiting_for_account"}, {"status": "ready"})
"""The acts on a refund that has not been sent: whatever SQL wrote into it, it can be ended."""
REFERENCE_MAX_CHARACTERS: Final = most_of(pb.SendRefundRequest, "bank_reference")
FAILURE_MAX_CHARACTERS: Final = most_of(pb.FailRefundRequest, "failure")


def set_refund_account(deps: Deps, *, refund_id: str, account: Account) -> RefundView:
    """Sets the account, once: the same one again changes nothing. Raises REFUND_NOT_FOUND, REFUND_STATE_CONFLICT,
    REFUND_INVALID for an operator who names the account of a merchant's refund, and those of `refusal_of_member`.
    """
    found = _found(deps, refund_id)
    if actors.current().surface == "desk" and found.origin is RefundOrigin.CREDITED:
        raise errors.refund_invalid("The merchant or the customer gives the account of this refund")
    _require_not_of_member(found, "The operator or the customer gives the account of this refund")
    refusal = refusal_of_member(deps, found.merchant_id)
    if refusal is not None:
        raise refusal
    return _give(deps, found, account, by_customer=False)


def give_refund_account(deps: Deps, *, invoice_id: str, refund_id: str, account: Account) -> RefundView:
    """Sets the account that the customer gives on the page of the invoice. Raises what `set_refund_account` raises."""
    found = _found(deps, refund_id)
    if values.uuid_or(errors.refund_not_found, invoice_id) != found.invoice_id:
        raise errors.refund_not_found()
    return _give(deps, found, account, by_customer=True)


def _give(deps: Deps, found: RefundView, account: Account, *, by_customer: bool) -> RefundView:
    columns = account.columns()

    def is_again(refund: RefundView) -> bool:
        return refund.status is RefundStatus.READY and acts.values_of(refund, tuple(columns)) == columns

    return approvals.done(
        _advance(deps, found, RefundStatus.READY, is_again, **columns, account_by_customer=by_customer)
    )


def send_refund(deps: Deps, *, refund_id: str, bank_reference: str) -> RefundView:
    """Marks it as sent. Raises REFUND_NOT_FOUND, REFUND_STATE_CONFLICT, NOT_DECIDED, VALIDATION_ERROR for the reference
    of another refund; APPROVAL_REQUIRED from `FOUR_EYES_USDT` on, and APPROVAL_STATE_CONFLICT.
    """
    reference = _reference(bank_reference, least=0)
    found = _found(deps, refund_id)

    def request(tx: Session, refund: RefundView) -> Approval | None:
        is_large = _needs_two(deps, refund, asked_for)
        return approvals.request(tx, _sending(refund, reference), deps) if is_large else None

    asked_for = _asked_for(deps, found)
    return approvals.done(
        _advance(deps, found, RefundStatus.SENT, lambda refund: False, request, bank_reference=reference)
    )


def send_approved(deps: Deps, tx: Session, asked: Approval) -> None:
    """Makes the step that was requested. Raises what `send_refund` raises."""
    found = refunds.refund(tx, UUID(asked.request["refund_id"]))
    if found is None:
        raise errors.refund_not_found()
    refund = _locked(tx, found)
    if refund.status is not RefundStatus.READY:
        raise errors.refund_state_conflict(refund.status)
    reference = asked.request["bank_reference"] or None
    if not asked.asks_for(_sending(refund, reference)):
        raise approvals.changed_since()
    _require_decided(tx, refund, RefundStatus.SENT)
    _require_unpaid(tx, refund, reference)
    _step(deps, tx, refund, RefundStatus.SENT, bank_reference=reference)


def complete_refund(deps: Deps, *, refund_id: str, bank_reference: str) -> RefundView:
    """Records that the customer has the money. Raises what `send_refund` raises, and VALIDATION_ERROR for another
    reference than the one that it was sent with.
    """
    found = _found(deps, refund_id)
    reference = _reference(bank_reference or found.bank_reference or "", least=1)

    def is_again(refund: RefundView) -> bool:
        return refund.status is RefundStatus.SUCCEEDED and refund.bank_reference == reference

    def compare(tx: Session, refund: RefundView) -> None:
        if refund.bank_reference not in (None, reference):
            raise errors.sent_with_another(refund.bank_reference)

    return approvals.done(
        _advance(deps, found, RefundStatus.SUCCEEDED, is_again, compare, bank_reference=reference)
    )


def fail_refund(deps: Deps, *, refund_id: str, failure: str) -> RefundView:
    """Records that it could not be paid; gives the USDT back. Raises what `send_refund` raises."""
    text = values.text("failure", failure.strip(), most=FAILURE_MAX_CHARACTERS)
    found = _found(deps, refund_id)
    return approvals.done(_advance(deps, found, RefundStatus.FAILED, _is(RefundStatus.FAILED), failure=text))


def cancel_refund(deps: Deps, *, refund_id: str) -> RefundView:
    """Cancels one that is not sent; gives the USDT back. Raises what `send_refund` raises, REFUND_INVALID for a member
    and money that was never the merchant's.
    """
    found = _found(deps, refund_id)
    _require_not_of_member(found, "The money is the customer's: the operator returns it")
    return approvals.done(_advance(deps, found, RefundStatus.CANCELED, _is(RefundStatus.CANCELED)))


def _require_not_of_member(found: RefundView, message: str) -> None:
    """Raises REFUND_INVALID when a member decides about money that the merchant was never credited."""
    if actors.current().surface == "dashboard" and found.origin is not RefundOrigin.CREDITED:
        raise errors.refund_invalid(message)


def _is(status: RefundStatus) -> Callable[[RefundView], bool]:
    return lambda refund: refund.status is status


def _reference(text: str, *, least: int) -> str | None:
    if not text.strip() and least == 0:
        return None
    one_form = " ".join(normalize("NFKC", text).split())
    return values.label("bank_reference", one_form, most=REFERENCE_MAX_CHARACTERS)


def _found(deps: Deps, refund_id: str) -> RefundView:
    with deps.db.transaction() as tx:
        found = refunds.refund(tx, values.uuid_or(errors.refund_not_found, refund_id))
    if found is None:
        raise errors.refund_not_found()
    require_merchant(found.merchant_id, errors.refund_not_found)
    return found


def _locked(tx: Session, found: RefundView) -> RefundView:
    """Returns the refund as it is now, locked after the merchant's money (`ledger.locked`)."""
    ledger.locked(tx, found.merchant_id)
    refund = refunds.locked(tx, found.id)
    if refund is None:
        raise errors.refund_not_found()
    return refund


@retry_conflicts
def _advance(
    deps: Deps,
    found: RefundView,
    target: RefundStatus,
    is_again: Callable[[RefundView], bool],
    request: Callable[[Session, RefundView], Approval | None] = lambda tx, refund: None,
    /,
    **changed: Any,
) -> RefundView | Approval:
    with deps.db.transaction() as tx:
        refund = _locked(tx, found)
        if is_again(refund):
            return refund
        if refund.status not in REFUND_REACHED_FROM[target]:
            raise errors.refund_state_conflict(refund.status)
        _require_decided(tx, refund, target)
        _require_unpaid(tx, refund, changed.get("bank_reference"))
        asked = request(tx, refund)
        if asked is not None:
            return asked
        close(tx, f"refund:{refund.id}", at=deps.clock.now(), note=f"The refund became {target}")
        return _step(deps, tx, refund, target, **changed)


def _asked_for(deps: Deps, refund: RefundView) -> Decimal | None:
    """Returns what the customer was told to send, of money that was never credited: nothing else bounds its return."""
    if refund.origin is RefundOrigin.CREDITED or deps.invoices is None:
        return None
    return deps.invoices.deal_money(invoice_id=refund.invoice_id).amount_to_send


def _needs_two(deps: Deps, refund: RefundView, asked_for: Decimal | None) -> bool:
    """Money that was never credited takes no USDT of the merchant, and leaves the bank all the same."""
    if asked_for is not None and refund.refund_amount > asked_for:
        return deps.settings.four_eyes
    worth = max(refund.amount, refund.refund_amount / refund.conversion_rate)
    return deps.settings.four_eyes and worth >= deps.settings.four_eyes_usdt


def _sending(refund: RefundView, bank_reference: str | None) -> Terms:
    return send_terms(
        {
            "refund_id": str(refund.id),
            "merchant_id": str(refund.merchant_id),
            "invoice_id": str(refund.invoice_id),
            "refund_amount": fiat_text(refund.refund_amount),
            "currency_code": refund.currency_code,
            "amount": usdt_text(refund.amount),
            "account_kind": refund.account_kind,
            "account": refund.account,
            "holder": refund.holder,
            "bank": refund.bank or "",
            "bank_reference": bank_reference or "",
        }
    )


def send_terms(request: Mapping[str, Any]) -> Terms:
    at = f", {quoted(request['bank'])}" if request["bank"] else ""
    reference = f", reference {quoted(request['bank_reference'])}" if request["bank_reference"] else ""
    return Terms(
        act=SEND,
        object=f"refund:{request['refund_id']}",
        request=request,
        summary=f"Send {request['refund_amount']} {request['currency_code']} to {request['account_kind']} "
        f"{quoted(request['account'])} of {quoted(request['holder'])}{at}{reference}: a refund of invoice "
        f"{request['invoice_id']}, which takes {request['amount']} USDT of merchant {request['merchant_id']}",
        merchant_id=UUID(request["merchant_id"]),
    )


def _require_decided(tx: Session, refund: RefundView, target: RefundStatus) -> None:
    """Raises NOT_DECIDED for one that SQL made or marked. It can still be ended, which returns the amount, unless
    operators sent it. Raises it too before money is sent for an invoice of which SQL wrote a correction.
    """
    returns = target in (RefundStatus.FAILED, RefundStatus.CANCELED)
    if returns and before_by_acts(tx, REFUND, refund.id, "status") in _NOT_SENT:
        return
    if not is_as_decided(tx, REFUND, refund.id, acts.values_of(refund, REFUND.fields), locked=True):
        raise not_decided("refund")
    if target is RefundStatus.SENT and not corrections.are_decided(tx, refund.invoice_id):
        raise not_decided("correction")


def _require_unpaid(tx: Session, refund: RefundView, bank_reference: str | None) -> None:
    """Raises VALIDATION_ERROR when the payment of this reference has paid another refund."""
    other = bank_reference and refunds.paid_by(tx, bank_reference, besides=refund.id)
    if other:
        raise errors.reference_taken(other)


def _step(deps: Deps, tx: Session, refund: RefundView, target: RefundStatus, **changed: Any) -> RefundView:
    now = deps.clock.now()
    advanced = refunds.change(tx, refund, at=now, status=target, **changed)
    movements = refund_movements(refund.id, target, amount=refund.amount)
    if movements:
        ledger.transfer(tx, ledger.accounts(tx, refund.merchant_id), movements, at=now)
    acts.record(
        tx,
        _ACTS[target],
        f"refund:{refund.id}",
        merchant_id=refund.merchant_id,
        before=acts.values_of(refund, _IN_ACTS),
        after=acts.values_of(advanced, _IN_ACTS),
    )
    return advanced
