"""The states of invoices and deals, the steps between them, and the steps that time takes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class InvoiceStatus(StrEnum):
    """The states of docs/api.md#invoice-status. All but `pending` are final."""

    PENDING = "pending"
    SUCCESS = "success"
    FAIL = "fail"
    EXPIRED = "expired"
    CANCELED = "canceled"


class LinkStatus(StrEnum):
    """The states of a payment link; only an open one makes invoices."""

    OPEN = "open"
    EXPIRED = "expired"
    CANCELED = "canceled"


class DealStatus(StrEnum):
    """The states of docs/api.md#deal-status. `pending` and `appeal` are open: they hold a requisite."""

    PENDING = "pending"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"
    APPEAL = "appeal"
    EXPIRED = "expired"


OPEN_DEAL_STATUSES = (DealStatus.PENDING, DealStatus.APPEAL)


class Trigger(StrEnum):
    """The events that can happen to an open deal."""

    MARK_PAID = "mark_paid"
    EXPIRE = "expire"
    CANCEL_BY_CUSTOMER = "cancel_by_customer"
    CANCEL_BY_OPERATOR = "cancel_by_operator"
    REPLACE = "replace"
    CONFIRM = "confirm"
    REJECT = "reject"
    APPEAL_BY_OPERATOR = "appeal_by_operator"
    APPEAL_BY_CUSTOMER = "appeal_by_customer"
    CONFIRMATION_OVERDUE = "confirmation_overdue"
    RESOLVE_PAID = "resolve_paid"
    RESOLVE_ADJUSTED = "resolve_adjusted"
    RESOLVE_REJECTED = "resolve_rejected"


@dataclass(frozen=True)
class DealState:
    """A deal's `status` with its `sub_status`. The rules need no more."""

    status: DealStatus
    sub_status: str


@dataclass(frozen=True)
class Transition:
    """The target state of a trigger; `invoice` is the invoice's new status, None when it stays pending."""

    target: DealState
    invoice: InvoiceStatus | None = None


AWAITING_PAYMENT = DealState(DealStatus.PENDING, "awaiting_payment")
AWAITING_CONFIRMATION = DealState(DealStatus.PENDING, "awaiting_confirmation")
OPENED_BY_OPERATOR = DealState(DealStatus.APPEAL, "opened_by_operator")
OPENED_BY_CUSTOMER = DealState(DealStatus.APPEAL, "opened_by_customer")
CONFIRMATION_OVERDUE = DealState(DealStatus.APPEAL, "confirmation_overdue")
PAID = Transition(DealState(DealStatus.COMPLETED, "successfully_paid"), InvoiceStatus.SUCCESS)

_UNPAID = (AWAITING_PAYMENT,)
_MARKED = (AWAITING_CONFIRMATION,)
_PENDING = (AWAITING_PAYMENT, AWAITING_CONFIRMATION)
_APPEAL = (OPENED_BY_OPERATOR, OPENED_BY_CUSTOMER, CONFIRMATION_OVERDUE)

# The rows of docs/api.md#deal-status, which is made from them.
_RULES: Sequence[tuple[Trigger, Iterable[DealState], Transition]] = (
    (Trigger.MARK_PAID, _UNPAID, Transition(AWAITING_CONFIRMATION)),
    (
        Trigger.EXPIRE,
        _UNPAID,
        Transition(DealState(DealStatus.EXPIRED, "payment_window_expired"), InvoiceStatus.EXPIRED),
    ),
    (
        Trigger.CANCEL_BY_CUSTOMER,
        _UNPAID,
        Transition(DealState(DealStatus.CANCELED, "canceled_by_customer"), InvoiceStatus.CANCELED),
    ),
    (
        Trigger.CANCEL_BY_OPERATOR,
        _UNPAID,
        Transition(DealState(DealStatus.CANCELED, "canceled_by_operator"), InvoiceStatus.CANCELED),
    ),
    (Trigger.REPLACE, _UNPAID, Transition(DealState(DealStatus.CANCELED, "replaced"))),
    (Trigger.CONFIRM, _PENDING, PAID),
    (
        Trigger.REJECT,
        _PENDING,
        Transition(DealState(DealStatus.FAILED, "rejected_by_operator"), InvoiceStatus.FAIL),
    ),
    (Trigger.APPEAL_BY_OPERATOR, _PENDING, Transition(OPENED_BY_OPERATOR)),
    (Trigger.APPEAL_BY_CUSTOMER, _MARKED, Transition(OPENED_BY_CUSTOMER)),
    (Trigger.CONFIRMATION_OVERDUE, _MARKED, Transition(CONFIRMATION_OVERDUE)),
    (Trigger.RESOLVE_PAID, _APPEAL, PAID),
    (
        Trigger.RESOLVE_ADJUSTED,
        _APPEAL,
        Transition(DealState(DealStatus.COMPLETED, "completed_with_adjustment"), InvoiceStatus.SUCCESS),
    ),
    (
        Trigger.RESOLVE_REJECTED,
        _APPEAL,
        Transition(DealState(DealStatus.FAILED, "appeal_rejected"), InvoiceStatus.FAIL),
    ),
)

TRANSITIONS: Mapping[tuple[DealState, Trigger], Transition] = {
    (source, trigger): transition for trigger, sources, transition in _RULES for source in sources
}

SUB_STATUSES = {
    state.sub_status: state.status
    for (source, _), step in TRANSITIONS.items()
    for state in (source, step.target)
}
"""Every `sub_status` that a deal can have, with its status."""


def transition(state: DealState, trigger: Trigger) -> Transition | None:
    """Returns the transition of `trigger` from `state`; None when it is not allowed there. Terminal states have
    none.
    """
    return TRANSITIONS.get((state, trigger))


def way_to(state: DealState, sub_status: str, invoice: InvoiceStatus) -> Sequence[Trigger]:
    """Returns the fewest triggers, one or two, by which an open deal ends so that its invoice gets this status; none
    when there is no such way.
    """
    for first in Trigger:
        step = transition(state, first)
        if step is not None and (step.target.sub_status, step.invoice) == (sub_status, invoice):
            return (first,)
    for first in (Trigger.APPEAL_BY_OPERATOR,):
        step = transition(state, first)
        second = () if step is None else way_to(step.target, sub_status, invoice)
        if second:
            return (first, *second)
    return ()


# -- time


def invoice_overdue(*, has_deal: bool, invoice_expires_at: datetime, now: datetime) -> bool:
    """Returns whether the time for choosing a method is over; with a deal, the deal's own time counts instead."""
    return not has_deal and now >= invoice_expires_at


def deal_overdue(state: DealState, deal_expires_at: datetime, now: datetime) -> bool:
    """Returns whether an unpaid deal's payment window is over. Once marked paid, time does not end a deal."""
    return state == AWAITING_PAYMENT and now >= deal_expires_at


def confirmation_overdue(state: DealState, confirm_before: datetime | None, now: datetime) -> bool:
    """Returns whether a deal marked paid has waited too long for the operator."""
    return state == AWAITING_CONFIRMATION and confirm_before is not None and now >= confirm_before


# -- the names of a finished invoice in webhooks

EVENT_TYPES: Mapping[InvoiceStatus, str] = {
    InvoiceStatus.SUCCESS: "invoice.success",
    InvoiceStatus.FAIL: "invoice.fail",
    InvoiceStatus.EXPIRED: "invoice.expired",
    InvoiceStatus.CANCELED: "invoice.canceled",
}
ADJUSTED_EVENT_TYPE = "invoice.adjusted"

REASONS_WITHOUT_METHOD: Mapping[InvoiceStatus, str] = {
    InvoiceStatus.EXPIRED: "ttl_expired",
    InvoiceStatus.CANCELED: "user_canceled",
}
