"""The tones of states; their words are in console/words/states.py."""

from collections.abc import Mapping
from typing import Final

_TONES: Final[Mapping[str, tuple[str, ...]]] = {
    "good": (
        "success",
        "succeeded",
        "completed",
        "active",
        "approved",
        "delivered",
        "enabled",
        "healthy",
        "verified",
        "certain",
        "matched",
        "taken",
        "yes",
    ),
    "wait": (
        "pending",
        "ready",
        "sent",
        "awaiting_confirmation",
        "awaiting_payment",
        "processing",
        "retrying",
        "open",
        "held",
        "requested",
        "invited",
        "waiting",
        "proposed",
        "confirmed",
    ),
    "ask": (
        "waiting_for_account",
        "unmatched",
        "amount_differs",
        "ended",
        "hint",
        "appeal",
        "review",
        "overdue",
        "adjusted",
        "lapsing",
    ),
    "bad": (
        "fail",
        "failed",
        "dead",
        "banned",
        "rejected",
        "blocked",
        "disabled",
        "unhealthy",
        "away",
        "lapsed",
        "refused",
        "reversed",
    ),
    "off": ("canceled", "cancelled", "expired", "inactive", "closed", "no", "none", "ignored", "outgoing"),
}
_TONE_OF: Final = {word: tone for tone, words in _TONES.items() for word in words}


def tone_of(word: str) -> str:
    """Returns the tone of a state: good, wait, ask, bad or off; empty for a word without one."""
    return _TONE_OF.get(word, "")
