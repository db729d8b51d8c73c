"""Every payment method with what keeps it from one merchant's customers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.rpc import values
from services.invoices.domain.places import PLACE_IS_FREE, Wanted
from services.invoices.store import deals, shares
from services.invoices.wiring import Deps


@dataclass(frozen=True)
class MerchantMethods:
    """Every method as one merchant's customers get it.

    no_place  by the code of an active method, why no account has a place for a deal of the merchant now
    refused   the reason that refuses every new deal of the merchant; empty: none
    """

    methods: Sequence[catalog_pb2.MerchantMethod]
    no_place: Mapping[str, str]
    refused: str


_REFUSED: Final[Mapping[int, str]] = MappingProxyType(
    {
        merchants_pb2.MERCHANT_STATUS_BANNED: "MERCHANT_BLOCKED",
        merchants_pb2.MERCHANT_STATUS_INACTIVE: "MERCHANT_NOT_ACTIVE",
    }
)


def list_merchant_methods(deps: Deps, *, merchant_id: str) -> MerchantMethods:
    """Returns every method with what keeps it from this merchant's customers. Raises MERCHANT_NOT_FOUND."""
    id = values.uuid("merchant_id", merchant_id)
    merchant = deps.identity.merchant_to_show(id)
    methods = deps.catalog.methods_of(merchant)
    wanted = [
        Wanted(each.method.method_code, None, each.method.takes_reference)
        for each in methods
        if each.method.active
    ]
    with deps.db.transaction() as tx:
        rooms = shares.rooms(tx.connection(), id, wanted) if wanted else ()
        enabled = deals.deals_enabled(tx)
    causes = {room.method_code: room.refusal(deps.settings.method_share_percent) for room in rooms}
    refused = "OWNER_BLOCKED" if merchant.owner_blocked else _REFUSED.get(merchant.status, "")
    return MerchantMethods(
        methods,
        {code: cause for code, cause in causes.items() if cause != PLACE_IS_FREE},
        refused or ("" if enabled else "DEALS_SYSTEM_DISABLED"),
    )
