"""States and steps of deals in words. The words of open deals are those of `fiatgate deals list`."""

from collections.abc import Mapping
from typing import Final

from console.ui.statuses import words_of
from console.ui.values import time_text
from fiatgate.invoices.v1 import invoices_pb2 as pb

AWAITING_PAYMENT: Final = "awaiting_payment"
AWAITING_CONFIRMATION: Final = "awaiting_confirmation"
OVERDUE: Final = "confirmation_overdue"

_STATES: Final[Mapping[str, str]] = {
    AWAITING_PAYMENT: "not paid yet",
    AWAITING_CONFIRMATION: "marked paid",
    "opened_by_customer": "appeal, customer",
    "opened_by_operator": "appeal, operator",
    OVERDUE: "appeal, overdue",
}
_STEPS: Final[Mapping[str, str]] = {
    AWAITING_PAYMENT: "Method chosen",
    AWAITING_CONFIRMATION: "Marked paid",
    "opened_by_customer": "Appeal opened",
    "opened_by_operator": "Appeal opened",
    OVERDUE: "Not confirmed in time: now an appeal",
    "successfully_paid": "Confirmed",
    "completed_with_adjustment": "Confirmed with a lower amount",
    "rejected_by_operator": "Rejected",
    "appeal_rejected": "Appeal rejected",
    "payment_window_expired": "Expired: not marked paid in time",
    "canceled_by_customer": "Canceled",
    "canceled_by_operator": "Canceled",
    "replaced": "Replaced: the customer chose another method",
}
_TONES: Final[Mapping[int, str]] = {
    pb.DEAL_STATUS_PENDING: "wait",
    pb.DEAL_STATUS_APPEAL: "ask",
    pb.DEAL_STATUS_COMPLETED: "good",
    pb.DEAL_STATUS_FAILED: "bad",
}
_NOT_PEOPLE: Final[Mapping[str, str]] = {"customer": "the customer", "time": "time"}


def state_words(sub_status: str) -> str:
    """Returns the state of a deal as a list shows it."""
    return _STATES.get(sub_status) or words_of(sub_status)


def step_words(sub_status: str) -> str:
    """Returns the step that led to the state: "Confirmed"."""
    return _STEPS.get(sub_status) or words_of(sub_status).capitalize()


def tone(status: int) -> str:
    """Returns the tone of a deal's status, for a badge."""
    return _TONES.get(status, "off")


def author_words(actor: str) -> str:
    """Returns the author of a step as a sentence names it."""
    return _NOT_PEOPLE.get(actor, actor)


def last_step(deal: pb.DealState) -> str:
    """Returns the step that led to the state, with its author and time, as a sentence without a period."""
    return f"{step_words(deal.sub_status)} by {author_words(deal.actor)}, {time_text(deal.at)}"


def waits(deal: pb.Deal | pb.DealState) -> bool:
    """Returns whether the deal is open, so that an operator can decide it."""
    return deal.status in (pb.DEAL_STATUS_PENDING, pb.DEAL_STATUS_APPEAL)
