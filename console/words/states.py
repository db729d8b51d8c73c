"""States in words: the same on pages, in timelines and in tables of the command. Programs get the raw ones."""

from collections.abc import Mapping
from typing import Final

_WORDS: Final[Mapping[str, str]] = {
    "success": "paid",
    "withdrawal success": "sent",
    "webhook success": "delivered",
    "completed": "paid",
    "successfully_paid": "paid",
    "completed_with_adjustment": "paid in part",
    "awaiting_payment": "not paid yet",
    "awaiting_confirmation": "marked paid",
    "opened_by_customer": "appeal, customer",
    "opened_by_operator": "appeal, operator",
    "confirmation_overdue": "appeal, overdue",
    "canceled_by_operator": "canceled by operator or merchant",
    "fail": "failed",
    "unmatched": "without a deal",
    "amount_differs": "another amount",
    "confirmed": "confirmed without a line",
    "ended": "deal has ended",
    "cancelled": "canceled",
    "cancelled_by_user": "canceled by the merchant",
    "cancelled_by_admin": "canceled by the operator",
}
"""States whose word is another one than the state itself, of one kind of things with its name before it."""


def words_of(state: str, of: str = "") -> str:
    """Returns the state of a thing of this kind as people read it: "paid in part"."""
    return _WORDS.get(f"{of} {state}") or _WORDS.get(state) or state.replace("_", " ")
