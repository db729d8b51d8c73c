"""The history of one withdrawal, its acts with their authors, which page and command share; and the fields of forms."""

from collections.abc import Iterator, Mapping
from typing import Final

from console.words.acts import author_of, title_of
from console.words.moments import Moment, approvals_first, given
from console.words.states import words_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.proto import datetime_from
from kit.rpc.errors import Refused, faults_of

_REASONS: Final = frozenset(
    {"failed", "invalid_address", "unknown", "cancelled_by_user", "cancelled_by_admin"}
)
FIELD_OF: Final[Mapping[str, str]] = {
    "WITHDRAWAL_METHOD_NOT_FOUND": "method",
    "WITHDRAWAL_ADDRESS_INVALID": "address",
    "WITHDRAWAL_ADDRESS_EXISTS": "address",
    "WITHDRAWAL_ADDRESS_NOT_FOUND": "address",
    "WITHDRAWAL_ADDRESS_WAITS": "address",
    "WITHDRAWAL_AMOUNT_INVALID": "amount",
    "INSUFFICIENT_BALANCE": "amount",
}
"""The field of a form that a refusal is about."""
FIELDS: Final[Mapping[str, str]] = {
    "merchant_id": "merchant",
    "withdrawal_method_id": "method",
    "address_memo": "memo",
}
"""Fields of requests, as forms name them."""


def notice_of(made: pb.Withdrawal, *, fresh: str) -> str:
    """Returns the notice about the withdrawal that a form made. `fresh` unless it went on since: then the form made it
    when it was sent before.
    """
    if made.status == pb.WITHDRAWAL_STATUS_PENDING:
        return "withdrawal-was-processing" if made.substatus else fresh
    return _WAS[made.status]


_WAS: Final[Mapping[int, str]] = {
    pb.WITHDRAWAL_STATUS_SUCCESS: "withdrawal-was-sent",
    pb.WITHDRAWAL_STATUS_FAILED: "withdrawal-was-failed",
    pb.WITHDRAWAL_STATUS_CANCELLED: "withdrawal-was-canceled",
}


def history(story: pb.GetWithdrawalStoryResponse) -> list[Moment]:
    """Returns the steps of the withdrawal and the requests about it, oldest first."""
    return approvals_first(_moments(story))


def _moments(story: pb.GetWithdrawalStoryResponse) -> Iterator[Moment]:
    for act in story.acts:
        title, tone = title_of(act)
        changed = {each.field: each.after for each in act.changes}
        substatus = changed.get("substatus", "")
        approval_id = changed.get("approval", "")
        yield Moment(
            at=datetime_from(act.at),
            title=title,
            by=author_of(act),
            details=given(
                ("reason", act.refused),
                ("reason", words_of(substatus) if substatus in _REASONS else ""),
                ("transaction", changed.get("external_tx_id", "")),
                ("would do", changed.get("summary", "") if act.act == "approval.request" else ""),
            ),
            note=act.note,
            tone=tone,
            thing=f"approval:{approval_id}" if approval_id else "",
            service="withdrawals",
        )


def errors_of(refused: Refused) -> dict[str, str]:
    """Returns the message by the field of the form that it is about."""
    faults = {"": refused.message} if refused.reason in FIELD_OF else faults_of(refused)
    errors = {}
    for named, message in faults.items():
        text = message.removeprefix(f"{named}: ").rstrip(".")
        errors[FIELD_OF.get(refused.reason) or FIELDS.get(named, named)] = f"{text[:1].upper()}{text[1:]}."
    return errors
