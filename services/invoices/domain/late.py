"""Late money, and pictures."""

from enum import StrEnum

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
