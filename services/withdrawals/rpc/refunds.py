"""RefundsService: the methods. Only operators see whole accounts."""

from collections.abc import Mapping
from typing import Any, Final

from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.base import actors
from kit.base.groups import masked
from kit.base.money import fiat_text, rate_text, usdt_text
from kit.base.proto import timestamp_from
from kit.rpc import values
from kit.rpc.audit import act_to_message
from kit.rpc.methods import Converters, Methods, by_name
from services.withdrawals.domain import RefundOrigin, RefundStatus
from services.withdrawals.operations import fields, refund_steps, refunds
from services.withdrawals.operations.fields import Account
from services.withdrawals.operations.refunds import Asked
from services.withdrawals.rpc.as_seen import refund_as_seen
from services.withdrawals.store.views import RefundView
from services.withdrawals.wiring import Deps

_STATUSES: Final = {each: pb.RefundStatus.Value(f"REFUND_STATUS_{each.name}") for each in RefundStatus}
_OF_STATUS: Final = {number: status for status, number in _STATUSES.items()}
_ORIGINS: Final = {each: pb.RefundOrigin.Value(f"REFUND_ORIGIN_{each.name}") for each in RefundOrigin}
_OF_ORIGIN: Final = {number: origin for origin, number in _ORIGINS.items()}


def refund_to_message(refund: RefundView, *, of_page: bool = False) -> pb.Refund:
    """Returns the message for the author of this call. That of the customer's page has neither holder nor bank: whoever
    has the link may read it.
    """
    is_whole = actors.current().surface in ("desk", "cli")
    message = pb.Refund(
        refund_id=str(refund.id),
        merchant_id=str(refund.merchant_id),
        invoice_id=str(refund.invoice_id),
        external_id=refund.external_id,
        origin=_ORIGINS[refund.origin],
        refund_amount=fiat_text(refund.refund_amount),
        currency_code=refund.currency_code,
        amount=usdt_text(refund.amount),
        conversion_rate=rate_text(refund.conversion_rate),
        status=_STATUSES[refund.status],
        account_by_customer=refund.account_by_customer,
        bank_reference=refund.bank_reference or "",
        failure=refund.failure or "",
        reason=refund.reason,
        case_number=refund.case_number or 0,
        created_at=timestamp_from(refund.created_at),
        updated_at=timestamp_from(refund.updated_at),
        finished_at=timestamp_from(refund.finished_at),
    )
    if refund.account is not None:
        message.account.kind = refund.account_kind or ""
        message.account.account = refund.account if is_whole else masked(refund.account)
        if not of_page:
            message.account.holder, message.account.bank = refund.holder or "", refund.bank or ""
    return message


def account_from_message(given: pb.RefundAccount) -> Account:
    return fields.account(kind=given.kind, account=given.account, holder=given.holder, bank=given.bank)


def origin_from_message(number: pb.RefundOrigin.ValueType) -> RefundOrigin:
    if number not in _OF_ORIGIN:
        raise values.invalid("origin", f"Expected one of {', '.join(RefundOrigin)}")
    return _OF_ORIGIN[number]


def status_from_message(number: pb.RefundStatus.ValueType) -> RefundStatus:
    if number not in _OF_STATUS:
        raise values.invalid("statuses", f"Expected some of {', '.join(RefundStatus)}")
    return _OF_STATUS[number]


def asked_from_message(request: pb.RequestRefundRequest, merchant_id: str) -> Asked:
    return Asked(
        merchant_id=merchant_id,
        invoice_id=request.invoice_id,
        origin=origin_from_message(request.origin),
        refund_amount=request.refund_amount,
        case_number=request.case_number,
    )


def request_refund(deps: Deps, request: pb.RequestRefundRequest) -> pb.RequestRefundResponse:
    made = refunds.request_refund(
        deps,
        asked_from_message(request, request.merchant_id),
        external_id=request.external_id,
        account=account_from_message(request.account) if request.HasField("account") else None,
        reason=request.reason,
        expected_amount=request.expected_amount,
    )
    return pb.RequestRefundResponse(refund=refund_to_message(made))


def check_refund(deps: Deps, request: pb.CheckRefundRequest) -> pb.CheckRefundResponse:
    quote, available = refunds.check_refund(deps, asked_from_message(request.refund, request.merchant_id))
    return pb.CheckRefundResponse(
        amount=usdt_text(quote.amount),
        refund_amount=fiat_text(quote.refund_amount),
        refundable="" if quote.refundable is None else fiat_text(quote.refundable),
        currency_code=quote.deal.currency_code,
        available=usdt_text(available),
        affordable=fiat_text(quote.affordable(available)),
        returns_commission=quote.deal.refunds_return_commission,
    )


def list_refunds(deps: Deps, request: pb.ListRefundsRequest) -> pb.ListRefundsResponse:
    found = refunds.list_refunds(
        deps,
        merchant_id=request.merchant_id,
        invoice_id=request.invoice_id,
        statuses=[status_from_message(each) for each in request.statuses],
        external_id=request.external_id,
        limit=request.limit,
        after_refund_id=request.after_refund_id,
        oldest_first=request.oldest_first,
        refund_ids=request.refund_ids,
    )
    return pb.ListRefundsResponse(refunds=map(refund_to_message, found))


def get_refund(deps: Deps, request: pb.GetRefundRequest) -> pb.GetRefundResponse:
    story = refunds.get_refund(deps, refund_id=request.refund_id)
    return refund_as_seen(
        pb.GetRefundResponse(
            refund=refund_to_message(story.refund),
            acts=[act_to_message(each, deps.settings.service) for each in story.acts],
            pending_approval_id=str(story.pending_approval_id or ""),
            pending_correction_id=str(story.pending_correction_id or ""),
        )
    )


def _refund(refund: RefundView) -> Mapping[str, Any]:
    return {"refund": refund_to_message(refund)}


FROM_MESSAGE: Final[Converters] = {"fiatgate.withdrawals.v1.RefundAccount": account_from_message}
METHODS: Final[Methods] = {
    "RequestRefund": request_refund,
    "CheckRefund": check_refund,
    "ListRefunds": list_refunds,
    "GetRefund": get_refund,
    "SetRefundAccount": by_name(refund_steps.set_refund_account, _refund),
    "SendRefund": by_name(refund_steps.send_refund, _refund),
    "CompleteRefund": by_name(refund_steps.complete_refund, _refund),
    "FailRefund": by_name(refund_steps.fail_refund, _refund),
    "CancelRefund": by_name(refund_steps.cancel_refund, _refund),
    "ListRefundsOfPage": by_name(
        refunds.list_refunds_of_page,
        lambda found: {
            "refunds": [refund_to_message(each, of_page=True) for each in found[0]],
            "surplus_credited": "" if found[1] is None else fiat_text(found[1]),
        },
    ),
    "GiveRefundAccount": by_name(
        refund_steps.give_refund_account,
        lambda refund: {"refund": refund_to_message(refund, of_page=True)},
    ),
}
