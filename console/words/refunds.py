"""The states of refunds, the account of a form, and the history of a refund: its acts with their authors."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from console.words.acts import author_of, title_of
from console.words.moments import Moment, approvals_first, given
from fiatgate.audit.v1 import audit_pb2
from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.proto import datetime_from

LIVE: Final = (
    pb.REFUND_STATUS_WAITING_FOR_ACCOUNT,
    pb.REFUND_STATUS_READY,
    pb.REFUND_STATUS_SENT,
    pb.REFUND_STATUS_SUCCEEDED,
)
"""The states of refunds that neither failed nor were canceled."""
STATES: Final[Mapping[str, pb.RefundStatus.ValueType]] = {
    each.removeprefix("REFUND_STATUS_").lower(): pb.RefundStatus.Value(each)
    for each in pb.RefundStatus.DESCRIPTOR.values_by_name
    if each != "REFUND_STATUS_UNSPECIFIED"
}
ACCOUNT_KINDS: Final[Mapping[str, str]] = {
    "iban": "IBAN",
    "card": "Card number",
    "phone": "Telephone number",
    "upi": "UPI address",
    "free": "Another account",
}
ACCOUNT_WAITS: Final = timedelta(days=14)
"""The time without an account after which people are reminded that a refund holds money."""


def waits_long(refund: pb.Refund) -> bool:
    """Returns whether a refund, which has no account, holds its money for so long that people are reminded."""
    return SystemClock().now() - datetime_from(refund.updated_at) > ACCOUNT_WAITS


def account_in(typed: Mapping[str, str]) -> pb.RefundAccount:
    """Returns the account of a form."""
    return pb.RefundAccount(
        kind=typed["account_kind"], account=typed["account"], holder=typed["holder"], bank=typed["bank"]
    )


def history(story: pb.GetRefundResponse) -> list[Moment]:
    """Returns the steps of the refund and the requests about it, oldest first."""
    return approvals_first(_moment(each) for each in story.acts)


def _moment(act: audit_pb2.Act) -> Moment:
    title, tone = title_of(act)
    changed = {each.field: each.after for each in act.changes}
    is_request = act.act == "approval.request"
    return Moment(
        at=datetime_from(act.at),
        title=title,
        by=author_of(act),
        details=given(
            ("reason", act.refused or changed.get("failure", "")),
            ("account", changed.get("account", "")),
            ("bank’s reference", changed.get("bank_reference", "")),
            ("would do", changed.get("summary", "") if is_request else ""),
        ),
        note=act.note or changed.get("reason", ""),
        tone=tone,
        thing=f"approval:{changed['approval']}" if changed.get("approval") else "",
        service="withdrawals",
    )
