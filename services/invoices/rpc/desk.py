"""DealDeskService: the operator's deals and cases, and the switch; `requisites` has its calls on requisites."""

from typing import Any, Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import fiat_text, usdt_text
from kit.base.proto import optional, timestamp_from
from kit.rpc import values
from kit.rpc.methods import Methods, by_name
from services.invoices.operations import cases, desk, merchant_methods, reading, switch
from services.invoices.operations.cases import CaseStory, ListedCases
from services.invoices.operations.desk import DealStory
from services.invoices.rpc import requisites
from services.invoices.rpc.as_seen import case_as_seen, cases_as_seen, invoice_as_seen, story_as_seen
from services.invoices.rpc.converters import (
    case_to_message,
    deal_context_to_message,
    deal_state_to_message,
    deal_to_message,
    invoice_to_message,
    picture_to_message,
    requisite_to_message,
    story_to_message,
    transition_to_message,
)
from services.invoices.rpc.requisites import deals_to_fields
from services.invoices.store.invoice_lists import InvoiceList
from services.invoices.store.views import CaseView, DealView, SwitchView
from services.invoices.wiring import Deps


def get_invoice_story(deps: Deps, request: pb.GetInvoiceStoryRequest) -> pb.GetInvoiceStoryResponse:
    story = reading.get_invoice_story(deps, invoice_id=request.invoice_id)
    return story_as_seen(story_to_message(story, deps.settings.service, deps.clock.now()))


def resolve_appeal(deps: Deps, request: pb.ResolveAppealRequest) -> pb.ResolveAppealResponse:
    who: dict[str, str] = {
        "deal_id": request.deal_id,
        "note": request.note,
        "expected": request.expected_sub_status,
    }
    if request.WhichOneof("outcome") in ("adjusted_amount", "received_amount"):
        amount, received = request.adjusted_amount, optional(request, "received_amount")
        row = desk.resolve_adjusted(deps, amount=amount, received=received, **who)
    elif request.paid:
        row = desk.resolve_as_paid(deps, **who)
    elif request.rejected:
        row = desk.resolve_as_rejected(deps, **who)
    else:
        message = "Expected one of paid, adjusted_amount, received_amount, rejected"
        raise values.invalid("outcome", message)
    return pb.ResolveAppealResponse(deal=deal_to_message(row))


def check_adjustment(deps: Deps, request: pb.CheckAdjustmentRequest) -> pb.CheckAdjustmentResponse:
    found = desk.check_adjustment(
        deps,
        deal_id=request.deal_id,
        amount=request.adjusted_amount,
        received=optional(request, "received_amount"),
    )
    return pb.CheckAdjustmentResponse(
        adjusted_amount=fiat_text(found.part), merchant_usdt=usdt_text(found.credit)
    )


def _invoices(found: InvoiceList) -> dict[str, Any]:
    reached_at, reached_id = found.reached or (None, "")
    return {
        "invoices": [invoice_as_seen(invoice_to_message(each)) for each in found.invoices],
        "reached_invoice_id": str(reached_id),
        "reached_at": timestamp_from(reached_at),
    }


def _deal(row: DealView) -> dict[str, Any]:
    return {"deal": deal_to_message(row)}


def _deal_story(story: DealStory) -> dict[str, Any]:
    return {
        "deal": deal_to_message(story.deal),
        "requisite": requisite_to_message(story.requisite) if story.requisite else None,
        "history": map(transition_to_message, story.history),
        "proofs": map(picture_to_message, story.pictures),
        "context": deal_context_to_message(story.listed),
        "near": map(deal_to_message, story.near),
        "account_undecided": story.account_undecided,
    }


def _case_story(story: CaseStory) -> dict[str, Any]:
    return case_as_seen(
        {
            "case": case_to_message(story.case, story.at),
            "invoice": invoice_to_message(story.invoice),
            "requisite": requisite_to_message(story.requisite),
            "proof": picture_to_message(story.picture) if story.picture else None,
        }
    )


def _cases(found: ListedCases) -> dict[str, Any]:
    return cases_as_seen(
        {
            "cases": [case_to_message(row.case, found.at) for row in found.rows],
            "deals": [deal_to_message(row.listed.deal) for row in found.rows],
            "contexts": [deal_context_to_message(row.listed) for row in found.rows],
        }
    )


def _case(row: CaseView) -> dict[str, Any]:
    return {"case": case_to_message(row, row.resolved_at or row.answered_at or row.opened_at)}


def _methods(found: merchant_methods.MerchantMethods) -> dict[str, Any]:
    methods = [
        pb.OfferedMethod(method=each, no_place=found.no_place.get(each.method.method_code, ""))
        for each in found.methods
    ]
    return {"methods": methods, "refused": found.refused}


def _switch(switch: SwitchView) -> dict[str, Any]:
    changed_at = timestamp_from(switch.changed_at)
    return {"enabled": switch.enabled, "changed_at": changed_at, "actor": switch.actor}


METHODS: Final[Methods] = {
    "ListAllInvoices": by_name(reading.list_all_invoices, _invoices, method_code="payment_method_code"),
    "GetInvoiceStory": get_invoice_story,
    "ListDeals": by_name(desk.list_deals, deals_to_fields, method_code="payment_method_code"),
    "ListDealStates": by_name(
        desk.list_deal_states, lambda rows: {"states": map(deal_state_to_message, rows)}
    ),
    "GetDeal": by_name(desk.get_deal, _deal_story),
    "ConfirmDeal": by_name(desk.confirm_deal, _deal),
    "RejectDeal": by_name(desk.reject_deal, _deal, expected="expected_sub_status"),
    "OpenAppeal": by_name(desk.open_appeal, _deal),
    "ResolveAppeal": resolve_appeal,
    "CheckAdjustment": check_adjustment,
    "GetProof": by_name(
        cases.get_picture, lambda row: {"proof": picture_to_message(row), "content": row.content}
    ),
    "ListCases": by_name(cases.list_cases, _cases),
    "GetCase": by_name(cases.get_case, _case_story),
    "AnswerCase": by_name(cases.answer_case, _case),
    "OpenLateCase": by_name(cases.open_late_case, _case),
    "ResolveCase": by_name(cases.resolve_case, _case),
    "ListMerchantMethods": by_name(merchant_methods.list_merchant_methods, _methods),
    "GetDealsSystem": by_name(switch.get_deals_system, _switch),
    "SetDealsSystem": by_name(switch.set_deals_system, lambda enabled: {"enabled": enabled}),
    **requisites.METHODS,
}
