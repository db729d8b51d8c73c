"""The history of one withdrawal: its acts with their authors. Page and command have these words."""

from collections.abc import Iterator
from typing import Final

from console.words.acts import author_of, title_of
from console.words.moments import Moment, given
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.proto import datetime_from

_REASONS: Final = frozenset(
    {"failed", "invalid_address", "unknown", "cancelled_by_user", "cancelled_by_admin"}
)


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
