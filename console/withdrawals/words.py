"""The words of withdrawals that pages and lists share."""

from collections.abc import Mapping
from typing import Final

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import money_text
from kit.rpc.errors import invalid
from kit.web.forms import Form

FAILURES: Final[Mapping[str, str]] = {
    "failed": "It could not be sent",
    "invalid_address": "The address does not exist or takes no USDT",
    "unknown": "The outcome is unknown",
}
"""The reasons of a failure, and what they mean."""

MENDABLE: Final = frozenset(
    {
        "VALIDATION_ERROR",
        "APPROVAL_REQUIRED",
        "APPROVAL_STATE_CONFLICT",
        "WITHDRAWAL_STATE_CONFLICT",
        "WITHDRAWAL_METHOD_NOT_FOUND",
        "WITHDRAWAL_ADDRESS_INVALID",
        "WITHDRAWAL_AMOUNT_INVALID",
        "INSUFFICIENT_BALANCE",
    }
)


def state_of(withdrawal: pb.Withdrawal) -> str:
    """Returns the state in one word, as the command line does: the substatus where there is one."""
    if withdrawal.status == pb.WITHDRAWAL_STATUS_PENDING:
        return withdrawal.substatus or "requested"
    status: str = pb.WithdrawalStatus.Name(withdrawal.status).removeprefix("WITHDRAWAL_STATUS_").lower()
    return withdrawal.substatus or status


def stage_seen(form: Form) -> str:
    """Returns the stage of the page that the form was on, requested or processing. Raises VALIDATION_ERROR."""
    stage = form.text("stage")
    if not stage:
        raise invalid("VALIDATION_ERROR", "the form does not say which stage was seen", field="stage")
    return stage


def being_sent(each: pb.Withdrawal) -> str:
    memo = f", memo {each.address_memo}" if each.address_memo else ""
    return f"Being sent: send {money_text(each.amount_to_receive, 'USDT')} to {each.address}{memo}."


def failed(each: pb.Withdrawal) -> str:
    return f"Failed: {money_text(each.amount, 'USDT')} are the merchant's again; a debt is paid first."


def canceled(each: pb.Withdrawal) -> str:
    return f"Canceled: {money_text(each.amount, 'USDT')} are the merchant's again; a debt is paid first."
