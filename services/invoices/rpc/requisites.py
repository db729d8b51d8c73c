"""The calls of DealDeskService on requisites."""

from typing import Any, Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import fiat_text
from kit.base.proto import optional, timestamp_from
from kit.rpc.audit import act_to_message
from kit.rpc.methods import Methods, by_name
from services.invoices.operations import requisites
from services.invoices.operations.requisites import NewRequisite, UseToday
from services.invoices.rpc.converters import (
    deal_context_to_message,
    deal_to_message,
    requisite_to_message,
)
from services.invoices.store.deal_lists import DealList
from services.invoices.store.requisites import DayOfUse, MethodPlaces
from services.invoices.store.views import RequisiteView
from services.invoices.wiring import Deps


def add_requisites(deps: Deps, request: pb.AddRequisitesRequest) -> pb.AddRequisitesResponse:
    given = [new_requisite_from_message(each) for each in request.requisites]
    rows = requisites.add_requisites(deps, method_code=request.method_code, given=given)
    return pb.AddRequisitesResponse(requisites=map(requisite_to_message, rows))


def check_requisites(deps: Deps, request: pb.CheckRequisitesRequest) -> pb.CheckRequisitesResponse:
    given = [new_requisite_from_message(each) for each in request.requisites]
    found = requisites.check_requisites(deps, method_code=request.method_code, given=given)
    return pb.CheckRequisitesResponse(
        requisites=[
            pb.CheckedRequisite(account=each.account, field=each.field, problem=each.problem)
            for each in found
        ]
    )


def list_requisites(deps: Deps, request: pb.ListRequisitesRequest) -> pb.ListRequisitesResponse:
    rows = requisites.list_requisites(
        deps,
        method_code=request.method_code,
        enabled=optional(request, "enabled"),
        text=request.text,
        full=request.full,
        rows=request.rows,
        after_requisite_id=request.after_requisite_id,
    )
    listed = pb.ListRequisitesResponse(requisites=map(requisite_to_message, rows))
    if request.with_use:
        today, since = requisites.use_today(deps, rows)
        listed.uses.extend(use_to_message(today[row.id]) for row in rows)
        listed.counted_since.CopyFrom(timestamp_from(since))
    return listed


def get_requisite(deps: Deps, request: pb.GetRequisiteRequest) -> pb.GetRequisiteResponse:
    story = requisites.get_requisite(deps, requisite_id=request.requisite_id, days=request.days)
    return pb.GetRequisiteResponse(
        requisite=requisite_to_message(story.requisite),
        last_used_at=timestamp_from(story.last_used_at),
        days=map(day_to_message, story.days),
        counted_since=timestamp_from(story.since),
        acts=[act_to_message(each, deps.settings.service) for each in story.acts],
    )


def deals_to_fields(found: DealList) -> dict[str, Any]:
    """Returns the fields of a response that lists deals."""
    reached_at, reached_id = found.reached or (None, "")
    return {
        "deals": [deal_to_message(row.deal) for row in found.deals],
        "contexts": map(deal_context_to_message, found.deals),
        "reached_deal_id": str(reached_id),
        "reached_at": timestamp_from(reached_at),
    }


def _requisite(row: RequisiteView) -> dict[str, Any]:
    return {"requisite": requisite_to_message(row)}


METHODS: Final[Methods] = {
    "AddRequisite": by_name(requisites.add_requisite, _requisite),
    "AddRequisites": add_requisites,
    "CheckRequisites": check_requisites,
    "ListRequisites": list_requisites,
    "GetRequisite": get_requisite,
    "ListRequisiteDeals": by_name(requisites.list_requisite_deals, deals_to_fields),
    "ListMethodPlaces": by_name(
        requisites.list_method_places, lambda rows: {"methods": map(places_to_message, rows)}
    ),
    "DisableRequisite": by_name(requisites.disable_requisite, _requisite),
    "EnableRequisite": by_name(requisites.enable_requisite, _requisite),
}


# -- messages and values


def new_requisite_from_message(message: pb.NewRequisite) -> NewRequisite:
    return NewRequisite(
        holder=message.holder,
        account=message.account,
        bank=optional(message, "bank"),
        max_deals=message.max_deals,
    )


def use_to_message(use: UseToday) -> pb.RequisiteUse:
    return pb.RequisiteUse(
        last_used_at=timestamp_from(use.last_used_at),
        opened=use.opened,
        completed=use.completed,
        amount=fiat_text(use.amount),
    )


def day_to_message(day: DayOfUse) -> pb.RequisiteDay:
    return pb.RequisiteDay(
        day=day.day.isoformat(), opened=day.opened, completed=day.completed, amount=fiat_text(day.amount)
    )


def places_to_message(row: MethodPlaces) -> pb.MethodPlaces:
    return pb.MethodPlaces(
        method_code=row.method_code,
        accounts=row.accounts,
        enabled_accounts=row.enabled_accounts,
        places=row.places,
        taken=row.taken,
        open_deals=row.open_deals,
    )
