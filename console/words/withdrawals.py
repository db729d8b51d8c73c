"""The history of one withdrawal, its acts with their authors, which page and command share; and the fields of forms."""

from collections.abc import Iterator, Mapping
from typing import Final

from console.words.acts import author_of, title_of
from console.words.moments import Moment, given
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.proto import datetime_from
from kit.rpc.errors import Refused

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


def history(story: pb.GetWithdrawalStoryResponse) -> list[Moment]:
    """Returns the steps of the withdrawal and the requests about it, oldest first."""
    return list(_moments(story))


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
                ("reason", substatus.replace("_", " ") if substatus in _REASONS else ""),
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
    named = refused.metadata.get("field", "")
    field = FIELD_OF.get(refused.reason) or FIELDS.get(named, named)
    message = refused.message.removeprefix(f"{named}: ").rstrip(".")
    return {field: f"{message[:1].upper()}{message[1:]}."} if field else {}
