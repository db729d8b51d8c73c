"""The values of this service that acts decide (kit.audit.decisions)."""

from typing import Final

from kit.audit.decisions import Decided

CURRENCY: Final = Decided(
    "currency",
    ("currency.set",),
    ("code", "name", "symbol", "decimals", "min_amount", "max_amount", "markup", "enabled"),
)
METHOD: Final = Decided(
    "method",
    ("method.set",),
    (
        *("code", "currency_code", "name", "min_sum", "max_sum", "payment_minutes", "commission", "active"),
        *("takes_reference", "account_kind", "logo_url"),
    ),
)
