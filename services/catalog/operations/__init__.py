"""One public function per RPC, one for the poller: `offers` for merchants, `entries` and `rates` for operators."""

from services.catalog.operations.entries import CatalogContent, get_catalog, set_currency, set_payment_method
from services.catalog.operations.logos import get_logo
from services.catalog.operations.offers import (
    CurrencyOffer,
    MethodOffer,
    MethodQuote,
    get_quote,
    list_merchant_currencies,
    list_method_offers,
)
from services.catalog.operations.rates import (
    RateInfo,
    RateState,
    accept_rate,
    list_rates,
    poll_when_due,
    pull_rates,
    set_rate,
)

__all__ = [
    "CatalogContent",
    "CurrencyOffer",
    "MethodOffer",
    "MethodQuote",
    "RateInfo",
    "RateState",
    "accept_rate",
    "get_catalog",
    "get_logo",
    "get_quote",
    "list_merchant_currencies",
    "list_method_offers",
    "list_rates",
    "poll_when_due",
    "pull_rates",
    "set_currency",
    "set_payment_method",
    "set_rate",
]
