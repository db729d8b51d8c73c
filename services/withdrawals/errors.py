"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from decimal import Decimal

from kit.base.money import usdt_text
from kit.rpc import values
from kit.rpc.errors import Refused, invalid, not_found, precondition
from services.withdrawals.domain import State


def withdrawals_not_found() -> Refused:
    return not_found("WITHDRAWALS_NOT_FOUND", "No withdrawal matches")


def withdrawal_not_found() -> Refused:
    return not_found("WITHDRAWAL_NOT_FOUND", "No such withdrawal")


def method_not_found() -> Refused:
    return not_found("WITHDRAWAL_METHOD_NOT_FOUND", "No such withdrawal method, or it is switched off")


def address_invalid(network: str) -> Refused:
    message = f"USDT cannot be sent to this address on {network}"
    return invalid("WITHDRAWAL_ADDRESS_INVALID", message, network=network)


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
