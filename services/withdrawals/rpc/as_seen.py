"""Answers as members of the merchant see them: without the operators' names, their requests for a second person, and
attempts that were refused. The reason of a withdrawal is written for them.
"""

from typing import Final

from fiatgate.audit.v1 import audit_pb2
from fiatgate.withdrawals.v1 import refunds_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base import actors
from kit.base.actors import THE_OPERATOR
from kit.base.groups import masked
from services.withdrawals.store.decisions import REFUND

STEPS: Final = frozenset(
    {
        "withdrawal.create",
        "withdrawal.process",
        "withdrawal.complete",
        "withdrawal.fail",
        "withdrawal.cancel",
    }
)


def story_as_seen(story: pb.GetWithdrawalStoryResponse) -> pb.GetWithdrawalStoryResponse:
    """Returns the story as the author of this call may see it."""
    if actors.current().surface != "dashboard":
        return story
    story.ClearField("pending_approval_id")
    acts = [each for each in story.acts if each.act in STEPS and not each.refused]
    story.ClearField("acts")
    story.acts.extend(map(_act, acts))
    for seen, act in zip(story.acts, acts, strict=True):
        seen.note = act.note if act.act == "withdrawal.create" else ""
    return story


def refund_as_seen(story: refunds_pb2.GetRefundResponse) -> refunds_pb2.GetRefundResponse:
    """Returns the refund's story as the author of this call may see it: members get its account masked."""
    if actors.current().surface != "dashboard":
        return story
    story.ClearField("pending_approval_id")
    story.ClearField("pending_correction_id")
    acts = [_act(each) for each in story.acts if each.act in REFUND.acts and not each.refused]
    for change in (change for act in acts for change in act.changes if change.field == "account"):
        change.before, change.after = (text and masked(text) for text in (change.before, change.after))
    story.ClearField("acts")
    story.acts.extend(acts)
    return story


def _act(act: audit_pb2.Act) -> audit_pb2.Act:
    """Returns the act with the fields that a history needs."""
    kind, name = "operator", THE_OPERATOR
    if act.actor.surface == "dashboard":
        kind, name = "person", act.actor.name
    elif act.actor.kind == "api":
        kind, name = "api", ""
    return audit_pb2.Act(
        act_id=act.act_id,
        at=act.at,
        act=act.act,
        object=act.object,
        service=act.service,
        actor=audit_pb2.Actor(kind=kind, name=name),
        changes=act.changes,
    )
