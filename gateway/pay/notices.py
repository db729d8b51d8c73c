"""The sentences above the page after a step that was refused, by reason."""

from collections.abc import Mapping
from typing import Final

from gateway.pay.languages import N_

# An empty sentence: the page itself is enough.
# The rate is the currency's, so no method of the invoice has one.
_NO_RATE: Final = N_(
    "There is no valid exchange rate right now, so this cannot be paid. Please try again later, or contact the shop."
)
_SHOP_NOT_READY: Final = N_("The shop cannot take payments right now. Please contact the shop.")
_REFUND_CHANGED: Final = N_(
    "This refund has changed since you loaded the page. Its current state is shown below."
)
NOTICES: Final[Mapping[str, str]] = {
    "INVOICE_FINISHED": "",
    "DEAL_STATE_CONFLICT": N_(
        "This payment has changed since you loaded the page. Its current state is shown below."
    ),
    "PAYMENT_METHOD_NOT_FOUND": N_(
        "That payment method is no longer available for this amount. Please choose another."
    ),
    "NO_AVAILABLE_REQUISITES": N_(
        "All accounts for that method are in use. Choose another method, or try again later."
    ),
    "DEALS_SYSTEM_DISABLED": N_("New payments are briefly paused. Please try again in a few minutes."),
    "RATES_UNAVAILABLE": _NO_RATE,
    "RATES_INVALID": _NO_RATE,
    "RATE_INVALID": _NO_RATE,
    "RATE_NOT_FOUND": _NO_RATE,
    "REFUND_NOT_FOUND": _REFUND_CHANGED,
    "REFUND_STATE_CONFLICT": _REFUND_CHANGED,
    "OWNER_BLOCKED": _SHOP_NOT_READY,
    "MERCHANT_BLOCKED": _SHOP_NOT_READY,
    "MERCHANT_CATEGORY_MISSING": _SHOP_NOT_READY,
    "MERCHANT_CATEGORY_NOT_FOUND": _SHOP_NOT_READY,
    "MERCHANT_CATEGORY_RATE_INVALID": _SHOP_NOT_READY,
    "VALIDATION_ERROR": N_("We could not accept that. Please check it and try again."),
}
METHOD_IN_USE: Final = N_(
    "All accounts for %(method)s are in use. Choose another method, or try again later."
)
PICTURE_REFUSED: Final = N_("We could not accept that picture: it must be JPEG, PNG or WebP, up to 5 MB.")
ACCOUNT_REFUSED: Final = N_("We could not accept that account. Please check each field and try again.")
# After these the customer has to choose again; after the others the page shows its present state.
CHOOSE_AGAIN: Final = frozenset(NOTICES) - {
    *("INVOICE_FINISHED", "DEAL_STATE_CONFLICT", "VALIDATION_ERROR"),
    *("REFUND_NOT_FOUND", "REFUND_STATE_CONFLICT"),
}
NOTHING_TO_CHOOSE: Final = N_(
    "No payment method is available for this amount right now. Please try again in a few minutes."
)
LINK_NOTICES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("CURRENCY_INVALID", "AMOUNT_BELOW_MIN", "AMOUNT_ABOVE_MAX", "PAYMENT_METHOD_NOT_FOUND"),
            "NO_AVAILABLE_REQUISITES",
        ),
        NOTHING_TO_CHOOSE,
    ),
    **dict.fromkeys(("DEALS_SYSTEM_DISABLED", "LINK_BUSY"), NOTICES["DEALS_SYSTEM_DISABLED"]),
    **dict.fromkeys(
        ("OWNER_BLOCKED", "MERCHANT_BLOCKED", "MERCHANT_NOT_ACTIVE", "MERCHANT_NOT_FOUND"), _SHOP_NOT_READY
    ),
    "LINK_ENDED": "",
}
"""The sentences on the page of a payment link that made no invoice, by reason. Empty: the page itself is enough."""
