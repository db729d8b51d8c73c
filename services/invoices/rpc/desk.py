"""DealDeskService: the operator's deals and cases, and the switch; `requisites` has its calls on requisites."""

import grpc

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from kit.base.money import fiat_text, usdt_text
from kit.base.proto import optional, optional_datetime, timestamp_from
from kit.rpc import values
from services.invoices.operations import cases, desk, merchant_methods, reading
from services.invoices.rpc.as_seen import invoice_as_seen, story_as_seen
from services.invoices.rpc.converters import (
    case_to_message,
    deal_context_to_message,
    deal_state_to_message,
    deal_status_from_message,
    deal_to_message,
    invoice_status_from_message,
    invoice_to_message,
    picture_kind_from_message,
    picture_to_message,
    requisite_to_message,
    story_to_message,
    transition_to_message,
)
from services.invoices.rpc.requisites import RequisiteCalls
from services.invoices.wiring import Deps

# ruff: noqa: N802  the proto names the methods

Context = grpc.ServicerContext


class DealDeskServicer(RequisiteCalls, pb_grpc.DealDeskServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ListAllInvoices(
        self, request: pb.ListAllInvoicesRequest, context: Context
    ) -> pb.ListAllInvoicesResponse:
        found = reading.list_all_invoices(
            self._deps,
            limit=request.limit,
            merchant_id=request.merchant_id,
            status=invoice_status_from_message(request.status),
            external_id=request.external_id,
            customer_id=request.customer_id,
            amount=request.amount,
            amount_from=request.amount_from,
            amount_to=request.amount_to,
            currency_code=request.currency_code,
            method_code=request.payment_method_code,
            created_from=optional_datetime(request, "created_from"),
            created_before=optional_datetime(request, "created_before"),
            after_invoice_id=request.after_invoice_id,
        )
        reached_at, reached_id = found.reached or (None, "")
        return pb.ListAllInvoicesResponse(
            invoices=[invoice_as_seen(invoice_to_message(each)) for each in found.invoices],
            reached_invoice_id=str(reached_id),
            reached_at=timestamp_from(reached_at),
        )

    def GetInvoiceStory(
        self, request: pb.GetInvoiceStoryRequest, context: Context
    ) -> pb.GetInvoiceStoryResponse:
        story = reading.get_invoice_story(self._deps, invoice_id=request.invoice_id)
        return story_as_seen(story_to_message(story, self._deps.settings.service))

    def ListDeals(self, request: pb.ListDealsRequest, context: Context) -> pb.ListDealsResponse:
        found = desk.list_deals(
            self._deps,
            limit=request.limit,
            status=deal_status_from_message(request.status),
            sub_status=request.sub_status,
            merchant_id=request.merchant_id,
            method_code=request.payment_method_code,
            created_from=optional_datetime(request, "created_from"),
            created_before=optional_datetime(request, "created_before"),
            after_deal_id=request.after_deal_id,
            oldest_first=request.oldest_first,
            reference=request.reference,
            sender_name=request.sender_name,
            account=request.account,
            currency_code=request.currency_code,
            amount_from=request.amount_from,
            amount_to=request.amount_to,
            customer_id=request.customer_id,
            external_id=request.external_id,
            marked_paid=request.marked_paid,
            deal_ids=request.deal_ids,
        )
        reached_at, reached_id = found.reached or (None, "")
        return pb.ListDealsResponse(
            deals=[deal_to_message(row.deal) for row in found.deals],
            contexts=[deal_context_to_message(row) for row in found.deals],
            reached_deal_id=str(reached_id),
            reached_at=timestamp_from(reached_at),
        )

    def ListDealStates(
        self, request: pb.ListDealStatesRequest, context: Context
    ) -> pb.ListDealStatesResponse:
        rows = desk.list_deal_states(self._deps, deal_ids=request.deal_ids)
        return pb.ListDealStatesResponse(states=[deal_state_to_message(row) for row in rows])

    def GetDeal(self, request: pb.GetDealRequest, context: Context) -> pb.GetDealResponse:
        story = desk.get_deal(self._deps, deal_id=request.deal_id)
        return pb.GetDealResponse(
            deal=deal_to_message(story.deal),
            requisite=requisite_to_message(story.requisite) if story.requisite else None,
            history=[transition_to_message(row) for row in story.history],
            proofs=[picture_to_message(row) for row in story.pictures],
            context=deal_context_to_message(story.listed),
            near=[deal_to_message(row) for row in story.near],
        )

    def ConfirmDeal(self, request: pb.ConfirmDealRequest, context: Context) -> pb.ConfirmDealResponse:
        row = desk.confirm_deal(self._deps, deal_id=request.deal_id)
        return pb.ConfirmDealResponse(deal=deal_to_message(row))

    def RejectDeal(self, request: pb.RejectDealRequest, context: Context) -> pb.RejectDealResponse:
        row = desk.reject_deal(
            self._deps,
            deal_id=request.deal_id,
            note=request.note,
            expected=request.expected_sub_status,
        )
        return pb.RejectDealResponse(deal=deal_to_message(row))

    def OpenAppeal(self, request: pb.OpenAppealRequest, context: Context) -> pb.OpenAppealResponse:
        row = desk.open_appeal(self._deps, deal_id=request.deal_id, note=request.note)
        return pb.OpenAppealResponse(deal=deal_to_message(row))

    def ResolveAppeal(self, request: pb.ResolveAppealRequest, context: Context) -> pb.ResolveAppealResponse:
        who: dict[str, str] = {
            "deal_id": request.deal_id,
            "note": request.note,
            "expected": request.expected_sub_status,
        }
        if request.WhichOneof("outcome") in ("adjusted_amount", "received_amount"):
            amount, received = request.adjusted_amount, optional(request, "received_amount")
            row = desk.resolve_adjusted(self._deps, amount=amount, received=received, **who)
        elif request.paid:
            row = desk.resolve_as_paid(self._deps, **who)
        elif request.rejected:
            row = desk.resolve_as_rejected(self._deps, **who)
        else:
            message = "Expected one of paid, adjusted_amount, received_amount, rejected"
            raise values.invalid("outcome", message)
        return pb.ResolveAppealResponse(deal=deal_to_message(row))

    def CheckAdjustment(
        self, request: pb.CheckAdjustmentRequest, context: Context
    ) -> pb.CheckAdjustmentResponse:
        found = desk.check_adjustment(
            self._deps,
            deal_id=request.deal_id,
            amount=request.adjusted_amount,
            received=optional(request, "received_amount"),
        )
        return pb.CheckAdjustmentResponse(
            adjusted_amount=fiat_text(found.part), merchant_usdt=usdt_text(found.credit)
        )

    def GetProof(self, request: pb.GetProofRequest, context: Context) -> pb.GetProofResponse:
        row = cases.get_picture(
            self._deps, deal_id=request.deal_id, kind=picture_kind_from_message(request.kind)
        )
        return pb.GetProofResponse(proof=picture_to_message(row), content=row.content)

    def ListCases(self, request: pb.ListCasesRequest, context: Context) -> pb.ListCasesResponse:
        rows = cases.list_cases(
            self._deps,
            open_only=request.open_only,
            limit=request.limit,
            opened_from=optional_datetime(request, "opened_from"),
            opened_before=optional_datetime(request, "opened_before"),
            after_number=request.after_number,
            merchant_id=request.merchant_id,
            oldest_first=request.oldest_first,
        )
        return pb.ListCasesResponse(
            cases=[case_to_message(row.case) for row in rows],
            deals=[deal_to_message(row.listed.deal) for row in rows],
            contexts=[deal_context_to_message(row.listed) for row in rows],
        )

    def GetCase(self, request: pb.GetCaseRequest, context: Context) -> pb.GetCaseResponse:
        story = cases.get_case(self._deps, number=request.number)
        return pb.GetCaseResponse(
            case=case_to_message(story.case),
            invoice=invoice_to_message(story.invoice),
            requisite=requisite_to_message(story.requisite),
            proof=picture_to_message(story.picture) if story.picture else None,
        )

    def ResolveCase(self, request: pb.ResolveCaseRequest, context: Context) -> pb.ResolveCaseResponse:
        row = cases.resolve_case(self._deps, number=request.number, outcome=request.outcome)
        return pb.ResolveCaseResponse(case=case_to_message(row))

    def ListMerchantMethods(
        self, request: pb.ListMerchantMethodsRequest, context: Context
    ) -> pb.ListMerchantMethodsResponse:
        found = merchant_methods.list_merchant_methods(self._deps, merchant_id=request.merchant_id)
        methods = [
            pb.OfferedMethod(method=each, no_place=found.no_place.get(each.method.method_code, ""))
            for each in found.methods
        ]
        return pb.ListMerchantMethodsResponse(methods=methods, refused=found.refused)

    def GetDealsSystem(
        self, request: pb.GetDealsSystemRequest, context: Context
    ) -> pb.GetDealsSystemResponse:
        switch = desk.get_deals_system(self._deps)
        return pb.GetDealsSystemResponse(
            enabled=switch.enabled, changed_at=timestamp_from(switch.changed_at), actor=switch.actor
        )

    def SetDealsSystem(
        self, request: pb.SetDealsSystemRequest, context: Context
    ) -> pb.SetDealsSystemResponse:
        enabled = desk.set_deals_system(self._deps, enabled=request.enabled)
        return pb.SetDealsSystemResponse(enabled=enabled)
