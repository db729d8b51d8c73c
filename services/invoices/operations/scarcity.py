"""The causes for which a customer can't pay by a method: for operators, in the log and at the desk. Merchants get no
causes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from uuid import UUID

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.observe.log import get_logger
from kit.rpc import values
from kit.rpc.errors import Refused
from services.invoices import errors
from services.invoices.domain.places import PLACE_IS_FREE, Wanted
from services.invoices.store import deals, shares
from services.invoices.wiring import Deps

EXPLAINED_MAX = 10
"""The most methods that are explained. All take one statement together, so a refused call costs one more."""

_log = get_logger()


def no_available_requisites(deps: Deps, merchant_id: UUID, wanted: Sequence[Wanted]) -> Refused:
    """Returns NO_AVAILABLE_REQUISITES with the cause of each wanted method."""
    share_percent = deps.settings.method_share_percent
    with deps.db.autocommit() as connection:
        rooms = shares.rooms(connection, merchant_id, wanted[:EXPLAINED_MAX])
    causes = {room.method_code: room.refusal(share_percent) for room in rooms}
    _log.info("accounts_exhausted", merchant_id=str(merchant_id), causes=causes)
    return errors.no_available_requisites(causes)


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
    merchant = deps.merchants.merchant_to_show(id)
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
