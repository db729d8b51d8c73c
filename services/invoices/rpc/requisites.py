"""The calls of DealDeskService on requisites."""

import grpc

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import fiat_text
from kit.base.proto import optional, optional_datetime, timestamp_from
from kit.rpc.audit import act_to_message
from services.invoices.operations import requisites
from services.invoices.operations.requisites import NewRequisite, UseToday
from services.invoices.rpc.converters import (
    deal_context_to_message,
    deal_status_from_message,
    deal_to_message,
    requisite_to_message,
)
from services.invoices.store.requisites import DayOfUse, MethodPlaces
from services.invoices.wiring import Deps

# ruff: noqa: N802  the proto names the methods

Context = grpc.ServicerContext


class RequisiteCalls:
    _deps: Deps

    def AddRequisite(self, request: pb.AddRequisiteRequest, context: Context) -> pb.AddRequisiteResponse:
        row = requisites.add_requisite(
            self._deps,
            method_code=request.method_code,
            holder=request.holder,
            account=request.account,
            bank=optional(request, "bank"),
            max_deals=request.max_deals,
        )
        return pb.AddRequisiteResponse(requisite=requisite_to_message(row))

    def AddRequisites(self, request: pb.AddRequisitesRequest, context: Context) -> pb.AddRequisitesResponse:
        rows = requisites.add_requisites(
            self._deps,
            method_code=request.method_code,
            given=[new_requisite_from_message(each) for each in request.requisites],
        )
        return pb.AddRequisitesResponse(requisites=[requisite_to_message(row) for row in rows])

    def CheckRequisites(
        self, request: pb.CheckRequisitesRequest, context: Context
    ) -> pb.CheckRequisitesResponse:
        found = requisites.check_requisites(
            self._deps,
            method_code=request.method_code,
            given=[new_requisite_from_message(each) for each in request.requisites],
        )
        return pb.CheckRequisitesResponse(
            requisites=[
                pb.CheckedRequisite(account=each.account, field=each.field, problem=each.problem)
                for each in found
            ]
        )

    def ListRequisites(
        self, request: pb.ListRequisitesRequest, context: Context
    ) -> pb.ListRequisitesResponse:
        rows = requisites.list_requisites(
            self._deps,
            method_code=request.method_code,
            enabled=optional(request, "enabled"),
            text=request.text,
            full=request.full,
            rows=request.rows,
            after_requisite_id=request.after_requisite_id,
        )
        listed = pb.ListRequisitesResponse(requisites=[requisite_to_message(row) for row in rows])
        if request.with_use:
            today, since = requisites.use_today(self._deps, rows)
            listed.uses.extend(use_to_message(today[row.id]) for row in rows)
            listed.counted_since.CopyFrom(timestamp_from(since))
        return listed

    def GetRequisite(self, request: pb.GetRequisiteRequest, context: Context) -> pb.GetRequisiteResponse:
        story = requisites.get_requisite(self._deps, requisite_id=request.requisite_id, days=request.days)
        return pb.GetRequisiteResponse(
            requisite=requisite_to_message(story.requisite),
            last_used_at=timestamp_from(story.last_used_at),
            days=[day_to_message(each) for each in story.days],
            counted_since=timestamp_from(story.since),
            acts=[act_to_message(each, self._deps.settings.service) for each in story.acts],
        )

    def ListRequisiteDeals(
        self, request: pb.ListRequisiteDealsRequest, context: Context
    ) -> pb.ListRequisiteDealsResponse:
        found = requisites.list_requisite_deals(
            self._deps,
            requisite_id=request.requisite_id,
            status=deal_status_from_message(request.status),
            created_from=optional_datetime(request, "created_from"),
            created_before=optional_datetime(request, "created_before"),
            after_deal_id=request.after_deal_id,
            limit=request.limit,
        )
        reached_at, reached_id = found.reached or (None, "")
        return pb.ListRequisiteDealsResponse(
            deals=[deal_to_message(each.deal) for each in found.deals],
            contexts=[deal_context_to_message(each) for each in found.deals],
            reached_deal_id=str(reached_id),
            reached_at=timestamp_from(reached_at),
        )

    def ListMethodPlaces(
        self, request: pb.ListMethodPlacesRequest, context: Context
    ) -> pb.ListMethodPlacesResponse:
        rows = requisites.list_method_places(self._deps)
        return pb.ListMethodPlacesResponse(methods=[places_to_message(row) for row in rows])

    def DisableRequisite(
        self, request: pb.DisableRequisiteRequest, context: Context
    ) -> pb.DisableRequisiteResponse:
        row = requisites.disable_requisite(self._deps, requisite_id=request.requisite_id)
        return pb.DisableRequisiteResponse(requisite=requisite_to_message(row))

    def EnableRequisite(
        self, request: pb.EnableRequisiteRequest, context: Context
    ) -> pb.EnableRequisiteResponse:
        row = requisites.enable_requisite(self._deps, requisite_id=request.requisite_id)
        return pb.EnableRequisiteResponse(requisite=requisite_to_message(row))


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
