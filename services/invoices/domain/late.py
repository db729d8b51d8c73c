"""Late money, and pictures."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from services.invoices.domain.states import InvoiceStatus


class PictureKind(StrEnum):
    """The use of a picture: an open deal's appeal, or a finished invoice's case."""

    APPEAL = "appeal"
    CASE = "case"


PICTURE_MAX_PIXELS = 64 * 1024 * 1024  # enough for a phone's camera; an operator's browser has to decode them


def late_money_possible(status: InvoiceStatus, *, has_deal: bool) -> bool:
    """Returns whether money may have come for an invoice that ended without success: only if a requisite was ever
    shown.
    """
    return has_deal and status in (InvoiceStatus.FAIL, InvoiceStatus.EXPIRED, InvoiceStatus.CANCELED)


class Policy(StrEnum):
    """The use of late money that a merchant chose. ASK_…: it is asked, and without an answer in time the second
    word holds.
    """

    CREDIT = "credit"
    RETURN = "return"
    ASK_CREDIT = "ask_credit"
    ASK_RETURN = "ask_return"

    @property
    def asks(self) -> bool:
        return self in (Policy.ASK_CREDIT, Policy.ASK_RETURN)


class End(StrEnum):
    """The use that an operator made of late money."""

    CREDIT = "credit"
    RETURN = "return"
    ANSWER_ONLY = "answer_only"


ANSWERS: Final = (End.CREDIT, End.RETURN)
"""The answers that a merchant may give."""
UNDECIDED: Final = "undecided"


def due(policy: Policy, answer: str | None, *, answer_by: datetime | None, now: datetime) -> str:
    """Returns what is to be done with late money: "credit", "return", or "undecided" while an answer is awaited."""
    if answer is not None:
        return answer
    if answer_by is not None and now < answer_by:
        return UNDECIDED
    return policy.removeprefix("ask_")
