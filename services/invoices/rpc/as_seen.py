"""Answers as members of the merchant see them: without what only operators may see.

Left out are the account that a customer pays to, where a rate came from, the name on the customer's account, pictures,
the operators' names and notes, and their acts but for two: a cancellation and the amount that came. Members are named:
the one who created an invoice by hand, the one who canceled it.
"""

from typing import Any, Final

from fiatgate.audit.v1 import audit_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base import actors
from kit.base.actors import API_KEY, THE_OPERATOR
from services.invoices.operations.simulation import SIMULATION

ACTS: Final = frozenset({"invoice.cancel", "invoice.create", "deal.adjust"})
_OPERATOR: Final = audit_pb2.Actor(kind="operator", name=THE_OPERATOR)
_AUTHORS: Final = frozenset({"", "customer", "time", API_KEY, str(SIMULATION)})
"""The authors of steps that are no operators."""


def invoice_as_seen(invoice: pb.Invoice) -> pb.Invoice:
    """Returns the invoice as the author of this call may see it."""
    if _by_member() and invoice.HasField("deal"):
        _strip_deal(invoice.deal)
    return invoice


def story_as_seen(story: pb.GetInvoiceStoryResponse) -> pb.GetInvoiceStoryResponse:
    """Returns the story as the author of this call may see it."""
    if not _by_member():
        return story
    invoice_as_seen(story.invoice)
    canceled = (each for each in story.acts if each.act == "invoice.cancel" and not each.refused)
    members = {each.actor.name for each in canceled if each.actor.surface == "dashboard"}
    for each in story.deals:
        _strip_deal(each.deal)
        for name in ("requisite", "proofs", "rate_basis"):
            each.ClearField(name)
        for step in each.history:
            by_member = step.sub_status == "canceled_by_operator" and step.actor in members
            if step.actor not in _AUTHORS and not by_member:
                step.actor, step.note = THE_OPERATOR, ""
    _strip_case(story.case)
    acts = [each for each in story.acts if each.act in ACTS and not each.refused]
    story.ClearField("acts")
    story.acts.extend(map(_act, acts))
    return story


def case_as_seen(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of GetCaseResponse as the author of this call may see them."""
    if not _by_member():
        return answer
    _strip_case(answer["case"])
    return {"case": answer["case"], "invoice": invoice_as_seen(answer["invoice"])}


def cases_as_seen(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of ListCasesResponse as the author of this call may see them."""
    if _by_member():
        for case, deal, context in zip(answer["cases"], answer["deals"], answer["contexts"], strict=True):
            _strip_case(case)
            _strip_deal(deal)
            for name in ("account", "holder"):
                context.ClearField(name)
    return answer


def _by_member() -> bool:
    return actors.current().surface == "dashboard"


def _strip_deal(deal: pb.Deal) -> None:
    deal.ClearField("requisite_id")
    deal.ClearField("sender_name")


def _strip_case(case: pb.Case) -> None:
    if case.actor:
        case.actor = THE_OPERATOR


def _act(act: audit_pb2.Act) -> audit_pb2.Act:
    """Returns the act with the fields that a timeline needs."""
    shown = ("received_amount",)
    by_member = act.actor.surface == "dashboard"
    actor = audit_pb2.Actor(kind="person", name=act.actor.name) if by_member else _OPERATOR
    if act.actor.kind == "api":
        actor = audit_pb2.Actor(kind="api")
    return audit_pb2.Act(
        act_id=act.act_id,
        at=act.at,
        act=act.act,
        object=act.object,
        service=act.service,
        actor=actor,
        note=act.note if by_member else "",
        changes=[each for each in act.changes if each.field in shown],
    )
