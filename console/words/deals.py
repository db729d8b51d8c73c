"""Steps of deals in words; their states are in states.py."""

from collections.abc import Mapping
from typing import Final

AWAITING_PAYMENT: Final = "awaiting_payment"
AWAITING_CONFIRMATION: Final = "awaiting_confirmation"
OVERDUE: Final = "confirmation_overdue"

_STEPS: Final[Mapping[str, tuple[str, str]]] = {
    AWAITING_PAYMENT: ("Payment method chosen", ""),
    AWAITING_CONFIRMATION: ("Marked paid", "wait"),
    "payment_window_expired": ("Time to pay ran out", "bad"),
    "canceled_by_customer": ("Payment canceled", "bad"),
    "canceled_by_operator": ("Payment canceled", "bad"),
    "replaced": ("Another method chosen in its place", ""),
    "successfully_paid": ("Payment confirmed", "good"),
    "completed_with_adjustment": ("Payment confirmed with a lower amount", "good"),
    "rejected_by_operator": ("Payment rejected", "bad"),
    "opened_by_operator": ("Appeal opened", "wait"),
    "opened_by_customer": ("Appeal opened", "wait"),
    OVERDUE: ("Appeal opened: the time to decide ran out", "wait"),
    "appeal_rejected": ("Appeal rejected", "bad"),
}
_NOT_PEOPLE: Final[Mapping[str, str]] = {"customer": "the customer", "time": "time"}


def step_words(sub_status: str) -> str:
    """Returns the step that led to the state: "Payment confirmed"."""
    return _STEPS[sub_status][0] if sub_status in _STEPS else sub_status.replace("_", " ").capitalize()


def step_tone(sub_status: str) -> str:
    """Returns the tone of the step: good, bad or wait; empty: neither."""
    return _STEPS[sub_status][1] if sub_status in _STEPS else ""


def author_words(actor: str) -> str:
    """Returns the author of a step as a sentence names it."""
    return _NOT_PEOPLE.get(actor, actor)
