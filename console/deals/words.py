"""Tones and sentences of deals that only pages need."""

from collections.abc import Mapping
from typing import Final

from console.ui.values import time_text
from console.words.deals import author_words, step_words
from fiatgate.invoices.v1 import invoices_pb2 as pb

_TONES: Final[Mapping[int, str]] = {
    pb.DEAL_STATUS_PENDING: "wait",
    pb.DEAL_STATUS_APPEAL: "ask",
    pb.DEAL_STATUS_COMPLETED: "good",
    pb.DEAL_STATUS_FAILED: "bad",
}


def tone(status: int) -> str:
    """Returns the tone of a deal's status, for a badge."""
    return _TONES.get(status, "off")


def last_step(deal: pb.DealState) -> str:
    """Returns the step that led to the state, with its author and time, as a sentence without a period."""
    return f"{step_words(deal.sub_status)} by {author_words(deal.actor)}, {time_text(deal.at)}"


def waits(deal: pb.Deal | pb.DealState) -> bool:
    """Returns whether the deal is open, so that an operator can decide it."""
    return deal.status in (pb.DEAL_STATUS_PENDING, pb.DEAL_STATUS_APPEAL)
