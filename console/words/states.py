"""States in words: the same on pages, in timelines and in tables of the command. Programs get the raw ones."""

from collections.abc import Mapping
from typing import Final

_WORDS: Final[Mapping[str, str]] = {
    "awaiting_payment": "not paid yet",
    "awaiting_confirmation": "marked paid",
    "opened_by_customer": "appeal, customer",
    "opened_by_operator": "appeal, operator",
    "confirmation_overdue": "appeal, overdue",
    "canceled_by_operator": "canceled by operator or merchant",
    "fail": "failed",
    "cancelled": "canceled",
    "cancelled_by_user": "canceled by the merchant",
    "cancelled_by_admin": "canceled by the operator",
}
"""States whose word is another one than the state itself."""


def words_of(state: str) -> str:
    """Returns the state as people read it: "successfully paid"."""
    return _WORDS.get(state) or state.replace("_", " ")
