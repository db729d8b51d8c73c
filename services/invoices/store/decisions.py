"""The values of this service that acts decide (kit.audit.decisions), and the terms of deals, which have a seal."""

from collections.abc import Sequence
from typing import Final

from kit.audit.decisions import Decided
from kit.base.seals import Seals, canonical
from services.invoices.domain.places import NewDeal
from services.invoices.models import Deal

REQUISITE: Final = Decided(
    "requisite",
    ("requisite.add", "requisite.enable", "requisite.disable"),
    ("method_code", "holder", "account", "bank", "max_deals", "enabled"),
)
DEAL: Final = Decided(
    "deal",
    ("deal.confirm", "deal.reject", "deal.appeal", "deal.resolve", "deal.adjust"),
    ("status", "sub_status", "adjusted_amount", "merchant_usdt"),
)
# On before the first act.
SWITCH: Final = Decided("switch", ("deals-system.set",), ("enabled",), first={"deals": {"enabled": "yes"}})

_TERMS: Final[Sequence[str]] = (
    *("id", "invoice_id", "merchant_id", "method_code", "currency_code", "currency_decimals"),
    *("invoice_amount", "conversion_rate", "client_percent", "merchant_percent"),
)
_SEALED: Final = "terms of a deal"


def seal_of_terms(seals: Seals, deal: NewDeal) -> bytes:
    """Returns the seal of what a deal locks when it is opened: its credit follows from it."""
    return seals.seal(_SEALED, _terms_of(deal))


def has_its_terms(seals: Seals, deal: Deal) -> bool:
    """Returns whether a process of the service opened the deal with these terms."""
    return seals.is_right(_SEALED, _terms_of(deal), bytes(deal.seal))


def _terms_of(deal: object) -> bytes:
    return canonical([getattr(deal, name) for name in _TERMS])
