"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from kit.base.money import usdt_text
from kit.rpc import values
from kit.rpc.errors import Refused, already_exists, denied, exhausted, invalid, not_found, precondition
from services.withdrawals.domain import RefundStatus, State


def owner_blocked() -> Refused:
    return denied("OWNER_BLOCKED", "The owner of the merchant is blocked")


def merchant_blocked() -> Refused:
    return denied("MERCHANT_BLOCKED", "The merchant is banned")


def withdrawals_not_found() -> Refused:
    return not_found("WITHDRAWALS_NOT_FOUND", "No withdrawal matches")


def withdrawal_not_found() -> Refused:
    return not_found("WITHDRAWAL_NOT_FOUND", "No such withdrawal")


def method_not_found() -> Refused:
    return not_found("WITHDRAWAL_METHOD_NOT_FOUND", "No such withdrawal method, or it is switched off")


def address_invalid(network: str) -> Refused:
    message = f"USDT cannot be sent to this address on {network}"
    return invalid("WITHDRAWAL_ADDRESS_INVALID", message, network=network)


def address_not_found() -> Refused:
    return not_found("WITHDRAWAL_ADDRESS_NOT_FOUND", "No such address is in the book")


def address_exists() -> Refused:
    message = "The address is in the book already. To add it anew, remove it first"
    return already_exists("WITHDRAWAL_ADDRESS_EXISTS", message)


def address_waits(usable_at: datetime) -> Refused:
    message = f"The address can be used from {usable_at:%Y-%m-%d %H:%M} UTC on"
    return precondition("WITHDRAWAL_ADDRESS_WAITS", message, usable_at=usable_at.isoformat())


def addresses_full(most: int) -> Refused:
    message = f"The book has {most} addresses, the most: remove one first"
    return exhausted("WITHDRAWAL_ADDRESSES_LIMITED", message, most=str(most))


def addresses_of_the_day(most: int) -> Refused:
    message = f"{most} addresses were added within 24 hours, the most: go on tomorrow"
    return exhausted("WITHDRAWAL_ADDRESSES_LIMITED", message, most=str(most))


def amount_below_min(minimum: Decimal) -> Refused:
    message = f"The least amount of this method is {usdt_text(minimum)} USDT"
    return invalid("WITHDRAWAL_AMOUNT_INVALID", message, minimum=usdt_text(minimum))


def amount_above_max(maximum: Decimal) -> Refused:
    message = f"The largest amount is {usdt_text(maximum)} USDT"
    return invalid("WITHDRAWAL_AMOUNT_INVALID", message, maximum=usdt_text(maximum))


def insufficient_balance(*, available: Decimal, requested: Decimal) -> Refused:
    return precondition(
        "INSUFFICIENT_BALANCE",
        f"{usdt_text(available)} USDT are available, {usdt_text(requested)} are requested",
        available=usdt_text(available),
        requested=usdt_text(requested),
    )


def refund_above_balance(
    *, available: Decimal, requested: Decimal, refundable: str, currency: str, commission_stays: bool
) -> Refused:
    why = "The commission stays with the operator, so a refund takes more than was credited. "
    return precondition(
        "INSUFFICIENT_BALANCE",
        f"The refund takes {usdt_text(requested)} USDT, and {usdt_text(available)} are available. "
        f"{why if commission_stays else ''}At most {refundable} {currency} can be refunded now",
        available=usdt_text(available),
        requested=usdt_text(requested),
        refundable=refundable,
        currency=currency,
    )


def state_conflict(current: State) -> Refused:
    return precondition(
        "WITHDRAWAL_STATE_CONFLICT",
        f"The withdrawal is {current}",
        status=current.status,
        substatus=current.substatus or "",
    )


def not_processed() -> Refused:
    return precondition(
        "WITHDRAWAL_STATE_CONFLICT",
        "An amount of this size is processed first, which a second person approves",
        status="pending",
        substatus="",
    )


def paid_by_another_transaction(external_tx_id: str) -> Refused:
    return precondition(
        "WITHDRAWAL_STATE_CONFLICT",
        f"The withdrawal was completed with another transaction, {external_tx_id}",
        status="success",
        substatus="",
    )


def transaction_taken() -> Refused:
    return values.invalid(
        "external_tx_id", "This transaction has paid another withdrawal of the network already"
    )


def request_key_taken() -> Refused:
    return values.invalid(
        "request_key", "This request_key made another withdrawal already, with other values"
    )


def reference_taken(refund_id: UUID) -> Refused:
    return values.invalid(
        "bank_reference", f"The payment of this reference has paid refund {refund_id}: one pays one refund"
    )


def sent_with_another(bank_reference: str) -> Refused:
    return values.invalid(
        "bank_reference", f"It was sent with {bank_reference}: leave this empty, or say that it failed"
    )


def correction_invalid(message: str, **metadata: str) -> Refused:
    return precondition("CORRECTION_INVALID", message, **metadata)


def accounted_for() -> Refused:
    message = (
        "The money that came late, or beyond the amount, of this invoice is credited or returned already"
    )
    return precondition("CORRECTION_INVALID", message)


def case_of_another() -> Refused:
    return values.invalid("case_number", "The invoice has no case of this number")


def correction_not_found() -> Refused:
    return not_found("CORRECTION_NOT_FOUND", "No such correction")


def correction_key_taken() -> Refused:
    return values.invalid(
        "request_key", "This request_key made another correction already, with other values"
    )


def invoice_not_found() -> Refused:
    return not_found("INVOICE_NOT_FOUND", "Invoice not found")


def refund_not_found() -> Refused:
    return not_found("REFUND_NOT_FOUND", "No such refund")


def refund_invalid(message: str, **metadata: str) -> Refused:
    return precondition("REFUND_INVALID", message, **metadata)


def refund_exists(refund_id: UUID) -> Refused:
    message = "Another refund has this external_id, with other values"
    return already_exists("REFUND_EXISTS", message, refund_id=str(refund_id))


def refund_state_conflict(current: RefundStatus) -> Refused:
    message = f"The refund is {current.replace('_', ' ')}"
    return precondition("REFUND_STATE_CONFLICT", message, status=current)
