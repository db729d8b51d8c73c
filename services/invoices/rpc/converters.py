"""Values as messages, and back."""

from datetime import datetime
from typing import Any, Final

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import fiat_text, percent_text, rate_text, usdt_text
from kit.base.proto import timestamp_from
from kit.rpc import values
from kit.rpc.audit import act_to_message
from kit.rpc.methods import Converters
from services.invoices.domain.creating import NO_KEY, NewInvoice
from services.invoices.domain.late import PictureKind
from services.invoices.domain.money import customer_amount
from services.invoices.domain.rates import RateBasis
from services.invoices.domain.states import DealStatus, InvoiceStatus, LinkStatus
from services.invoices.events import invoice_finished, metadata_to_messages
from services.invoices.operations.deal_money import DealMoney, Received
from services.invoices.operations.forgotten import Forgotten, NotRestored
from services.invoices.operations.verification import Finished
from services.invoices.rpc.lines import accounts_from_messages, parts_from_messages
from services.invoices.store.deal_lists import ListedDeal, StateOfDeal
from services.invoices.store.stories import InvoiceStory
from services.invoices.store.views import (
    CaseView,
    DealView,
    InvoiceView,
    LinkView,
    PictureView,
    RequisiteView,
    TransitionView,
)


def invoice_to_message(view: InvoiceView | NewInvoice) -> pb.Invoice:
    adjusted = None if view.deal is None else view.deal.adjusted_amount
    final = view.amount if adjusted is None else adjusted
    return pb.Invoice(
        invoice_id=str(view.id),
        merchant_id=str(view.merchant_id),
        external_id=view.external_id,
        amount=fiat_text(view.amount),
        currency_code=view.currency_code,
        status=_INVOICE_STATUSES[view.status],
        customer_id=view.customer_id,
        purpose=view.purpose,
        callback_url=view.callback_url,
        success_url=view.success_url,
        fail_url=view.fail_url,
        created_at=timestamp_from(view.created_at),
        expires_at=timestamp_from(view.expires_at),
        finished_at=timestamp_from(view.finished_at),
        deal=None if view.deal is None else deal_to_message(view.deal),
        key_id="" if view.key_id == NO_KEY else str(view.key_id),
        final_amount=None if view.finished_at is None else fiat_text(final),
        is_adjusted=adjusted is not None,
        link_id="" if view.link_id is None else str(view.link_id),
        metadata=metadata_to_messages(view.merchant_data),
    )


def link_to_message(view: LinkView, status: LinkStatus, *, note: str = "", payments: int = 0) -> pb.Link:
    return pb.Link(
        link_id=str(view.id),
        merchant_id=str(view.merchant_id),
        code=view.code,
        amount=fiat_text(view.amount),
        currency_code=view.currency_code,
        purpose=view.purpose,
        note=note,
        created_at=timestamp_from(view.created_at),
        expires_at=timestamp_from(view.expires_at),
        canceled_at=timestamp_from(view.canceled_at),
        status=_LINK_STATUSES[status],
        payments=payments,
    )


def deal_money_fields(found: DealMoney) -> dict[str, Any]:
    """Returns the fields of GetDealMoneyResponse."""
    invoice, deal, received = found.invoice, found.deal, found.received
    asked = customer_amount(deal.invoice_amount, deal.client_percent, deal.currency_decimals)
    credited = deal.merchant_usdt
    return {
        "invoice_id": str(invoice.id),
        "deal_id": str(deal.id),
        "merchant_id": str(invoice.merchant_id),
        "invoice_status": _INVOICE_STATUSES[invoice.status],
        "status": _DEAL_STATUSES[deal.status],
        "sub_status": deal.sub_status,
        "currency_code": deal.currency_code,
        "currency_decimals": deal.currency_decimals,
        "conversion_rate": rate_text(deal.conversion_rate),
        "client_percent": percent_text(deal.client_percent),
        "merchant_percent": percent_text(deal.merchant_percent),
        "amount_to_send": fiat_text(asked),
        "paid_amount": None if credited is None else fiat_text(deal.amount_fiat),
        "merchant_usdt": None if credited is None else usdt_text(credited),
        "refunds_return_commission": found.refunds_return_commission,
        "received": None if received is None else _received_to_message(received),
        "case_number": 0 if found.case is None else found.case.number,
        "case_decided": found.case_decided,
    }


def _received_to_message(received: Received) -> pb.ReceivedMoney:
    return pb.ReceivedMoney(
        order_amount=fiat_text(received.order_amount), credit_usdt=usdt_text(received.credit_usdt)
    )


def deal_to_message(deal: DealView) -> pb.Deal:
    return pb.Deal(
        deal_id=str(deal.id),
        invoice_id=str(deal.invoice_id),
        merchant_id=str(deal.merchant_id),
        status=_DEAL_STATUSES[deal.status],
        sub_status=deal.sub_status,
        payment_method_code=deal.method_code,
        payment_method_name=deal.method_name,
        currency_code=deal.currency_code,
        amount_fiat=fiat_text(deal.amount_fiat),
        conversion_rate=rate_text(deal.conversion_rate),
        merchant_usdt=None if deal.merchant_usdt is None else usdt_text(deal.merchant_usdt),
        client_percent=percent_text(deal.client_percent),
        merchant_percent=percent_text(deal.merchant_percent),
        created_at=timestamp_from(deal.created_at),
        expires_at=timestamp_from(deal.expires_at),
        finished_at=timestamp_from(deal.finished_at),
        mark_paid_at=timestamp_from(deal.mark_paid_at),
        requisite_id=str(deal.requisite_id),
        adjusted_amount=None if deal.adjusted_amount is None else fiat_text(deal.adjusted_amount),
        invoice_amount=fiat_text(deal.invoice_amount),
        reference=deal.reference,
        takes_reference=deal.takes_reference,
        sender_name=deal.sender_name,
        amount_to_send=fiat_text(deal.amount_to_send),
    )


def deal_context_to_message(listed: ListedDeal) -> pb.DealContext:
    return pb.DealContext(
        account=listed.account,
        holder=listed.holder,
        customer_id=listed.customer_id,
        external_id=listed.external_id,
    )


def deal_state_to_message(state: StateOfDeal) -> pb.DealState:
    return pb.DealState(
        deal_id=str(state.id),
        status=_DEAL_STATUSES[state.status],
        sub_status=state.sub_status,
        actor=state.actor,
        at=timestamp_from(state.at),
    )


def finished_to_message(finished: Finished) -> pb.FinishedInvoice:
    invoice, deal = finished.invoice, finished.deal
    credited = deal.merchant_usdt if deal else None
    return pb.FinishedInvoice(
        invoice_id=str(invoice.id),
        merchant_id=str(invoice.merchant_id),
        status=_INVOICE_STATUSES[invoice.status],
        finished_at=timestamp_from(invoice.finished_at),
        has_callback=invoice.callback_url is not None,
        merchant_usdt=None if credited is None else usdt_text(credited),
        event_id=str(invoice.event_id),
        fact=invoice_finished(invoice, deal),
        unproven=finished.unproven,
    )


def forgotten_to_message(forgotten: Forgotten) -> pb.ForgottenFact:
    message = pb.ForgottenFact(fact=forgotten.fact)
    if forgotten.status is not None:
        message.status = _INVOICE_STATUSES[forgotten.status]
    return message


def not_restored_to_message(refused: NotRestored) -> pb.NotRestored:
    return pb.NotRestored(
        invoice_id=str(refused.invoice_id), reason=refused.reason, has_other_deal=refused.has_other_deal
    )


def requisite_to_message(requisite: RequisiteView) -> pb.Requisite:
    return pb.Requisite(
        requisite_id=str(requisite.id),
        method_code=requisite.method_code,
        holder=requisite.holder,
        account=requisite.account,
        bank=requisite.bank,
        max_deals=requisite.max_deals,
        open_deals=requisite.open_deals,
        enabled=requisite.enabled,
        created_at=timestamp_from(requisite.created_at),
    )


def transition_to_message(step: TransitionView) -> pb.DealTransition:
    return pb.DealTransition(
        at=timestamp_from(step.at),
        status=_DEAL_STATUSES[step.status],
        sub_status=step.sub_status,
        actor=step.actor,
        note=step.note,
    )


def case_to_message(case: CaseView, at: datetime) -> pb.Case:
    return pb.Case(
        number=case.number,
        invoice_id=str(case.invoice_id),
        merchant_id=str(case.merchant_id),
        deal_id=str(case.deal_id),
        opened_at=timestamp_from(case.opened_at),
        note=case.note,
        resolved_at=timestamp_from(case.resolved_at),
        outcome=case.outcome,
        actor=case.actor,
        policy=case.policy,
        answer_by=timestamp_from(case.answer_by),
        merchant_answer=case.merchant_answer,
        merchant_text=case.merchant_text,
        answered_by=case.answered_by,
        answered_at=timestamp_from(case.answered_at),
        due=case.due(at),
        ended_as=case.ended_as,
        line_id=None if case.line_id is None else str(case.line_id),
    )


def case_for_customer(case: CaseView) -> pb.Case:
    """Returns the case without what merchant and operator tell each other."""
    return pb.Case(
        number=case.number,
        invoice_id=str(case.invoice_id),
        opened_at=timestamp_from(case.opened_at),
        resolved_at=timestamp_from(case.resolved_at),
        outcome=case.outcome,
    )


def story_to_message(story: InvoiceStory, service: str, at: datetime) -> pb.GetInvoiceStoryResponse:
    return pb.GetInvoiceStoryResponse(
        invoice=invoice_to_message(story.invoice),
        opened_at=timestamp_from(story.opened_at),
        deals=[
            pb.DealStory(
                deal=deal_to_message(each.deal),
                requisite=requisite_to_message(each.requisite),
                history=[transition_to_message(step) for step in each.history],
                proofs=[picture_to_message(picture) for picture in each.pictures],
                rate_basis=None if each.rate_basis is None else rate_basis_to_message(each.rate_basis),
            )
            for each in story.deals
        ],
        case=None if story.case is None else case_to_message(story.case, at),
        acts=[act_to_message(each, service) for each in story.acts],
    )


def rate_basis_to_message(basis: RateBasis) -> catalog_pb2.RateBasis:
    return catalog_pb2.RateBasis(
        origin=catalog_pb2.RateOrigin.Value(f"RATE_ORIGIN_{basis.origin.upper()}"),
        source_rate=basis.source_rate,
        markup=basis.markup,
        taken_at=timestamp_from(basis.taken_at),
        sources=[
            catalog_pb2.SourceQuote(source=each.source, rate=each.rate, error=each.error)
            for each in basis.sources
        ],
    )


def picture_to_message(picture: PictureView) -> pb.Proof:
    return pb.Proof(
        deal_id=str(picture.deal_id),
        kind=_PICTURE_KINDS[picture.kind],
        content_type=picture.content_type,
        size=picture.size,
        at=timestamp_from(picture.at),
    )


_INVOICE_STATUSES = {
    status.value: pb.InvoiceStatus.Value(f"INVOICE_STATUS_{status.name}") for status in InvoiceStatus
}
_DEAL_STATUSES = {status.value: pb.DealStatus.Value(f"DEAL_STATUS_{status.name}") for status in DealStatus}
_LINK_STATUSES = {status.value: pb.LinkStatus.Value(f"LINK_STATUS_{status.name}") for status in LinkStatus}
_PICTURE_KINDS = {kind.value: pb.ProofKind.Value(f"PROOF_KIND_{kind.name}") for kind in PictureKind}


def invoice_status_from_message(value: int) -> InvoiceStatus | None:
    """Returns the status; None for UNSPECIFIED, which means all. Raises VALIDATION_ERROR for a
    value from a newer proto.
    """
    if value == pb.INVOICE_STATUS_UNSPECIFIED:
        return None
    for status, number in _INVOICE_STATUSES.items():
        if number == value:
            return InvoiceStatus(status)
    raise values.invalid("status", "unknown status")


def deal_status_from_message(value: int) -> DealStatus | None:
    """None for UNSPECIFIED, which means all. Raises VALIDATION_ERROR for a value from a newer proto."""
    if value == pb.DEAL_STATUS_UNSPECIFIED:
        return None
    for status, number in _DEAL_STATUSES.items():
        if number == value:
            return DealStatus(status)
    raise values.invalid("status", "unknown status")


def link_status_from_message(value: int) -> LinkStatus | None:
    """None for UNSPECIFIED, which means all. Raises VALIDATION_ERROR for a value from a newer proto."""
    if value == pb.LINK_STATUS_UNSPECIFIED:
        return None
    for status, number in _LINK_STATUSES.items():
        if number == value:
            return LinkStatus(status)
    raise values.invalid("status", "unknown status")


def picture_kind_from_message(value: int) -> PictureKind:
    """Returns the kind. Raises VALIDATION_ERROR for UNSPECIFIED and for a value from a newer proto."""
    for kind, number in _PICTURE_KINDS.items():
        if number == value:
            return PictureKind(kind)
    raise values.invalid("kind", "Expected the appeal's picture or the case's")


_ASCENDING = {pb.SORT_ORDER_UNSPECIFIED: False, pb.SORT_ORDER_DESC: False, pb.SORT_ORDER_ASC: True}


def ascending_from_message(order: pb.SortOrder.ValueType) -> bool:
    if order not in _ASCENDING:
        raise values.query_invalid("order", "Expected desc or asc")
    return _ASCENDING[order]


FROM_MESSAGE: Final[Converters] = {
    "fiatgate.invoices.v1.InvoiceStatus": invoice_status_from_message,
    "fiatgate.invoices.v1.LinkStatus": link_status_from_message,
    "fiatgate.invoices.v1.DealStatus": deal_status_from_message,
    "fiatgate.invoices.v1.ProofKind": picture_kind_from_message,
    "fiatgate.invoices.v1.SortOrder": ascending_from_message,
    "fiatgate.invoices.v1.ImportedAccount": accounts_from_messages,
    "fiatgate.invoices.v1.LinePart": parts_from_messages,
}
