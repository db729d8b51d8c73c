"""fiatgate.merchants.v1.MerchantsService: message, operation, message. kit's server translates errors.

- `servicer`: the methods
- `converters`: values to messages, and back
"""

from typing import Final

import grpc

from fiatgate.merchants.v1 import merchants_pb2_grpc
from kit.rpc import audit, books, find, status
from kit.rpc.callers import ALL, Callers
from kit.rpc.permissions import (
    OF_OBJECT,
    READERS,
    Permissions,
    everyone,
    for_no_person,
    machine,
    members,
    staff,
)
from kit.rpc.slots import Slots, of_people
from services.merchants.rpc.servicer import MerchantsServicer
from services.merchants.store import finding
from services.merchants.store.books import PARTS
from services.merchants.wiring import Deps

# Each waits for the end of a lease (operations/leases.py).
_ENDS_LEASES: Final = frozenset(
    {
        "MerchantsService/BanMerchant",
        "MerchantsService/BlockOwner",
        "MerchantsService/ConfigureMerchant",  # also commissions, and the addresses that get webhooks
        "MerchantsService/ConfigureOwnMerchant",
        "MerchantsService/DeactivateApiKey",
        "MerchantsService/SetCategory",
    }
)
_OF_DESK: Final = frozenset(
    {
        "FindService/Find",
        "MerchantsService/ActivateMerchant",
        "MerchantsService/CreateApiKey",
        "MerchantsService/CreateMerchant",
        "MerchantsService/GetOwner",
        "MerchantsService/KeepLogo",
        "MerchantsService/ListApiKeys",
        "MerchantsService/ListCategories",
        "MerchantsService/ListMerchants",
        "MerchantsService/NameMerchants",
        "MerchantsService/UnbanMerchant",
        "MerchantsService/UnblockOwner",
    }
)

CALLERS: Final[Callers] = {
    "cli": frozenset({ALL}),
    "console-desk": _OF_DESK
    | _ENDS_LEASES - {"MerchantsService/ConfigureOwnMerchant"}
    | {audit.LIST, status.GET, "MerchantsService/GetLogo", "MerchantsService/GetMerchant"},
    "console-dashboard": frozenset(
        {
            audit.LIST,
            "MerchantsService/ConfigureOwnMerchant",
            "MerchantsService/CreateApiKey",
            "MerchantsService/DeactivateApiKey",
            "MerchantsService/GetLogo",
            "MerchantsService/GetMerchant",
            "MerchantsService/KeepLogo",
            "MerchantsService/ListApiKeys",
            "MerchantsService/NameMerchants",
        }
    ),
    "gateway": frozenset({"MerchantsService/Authenticate", "MerchantsService/GetLogo"}),
    "invoices": frozenset({"MerchantsService/GetMerchant"}),
    "webhooks": frozenset({"MerchantsService/GetMerchant", "MerchantsService/GetSigningSecrets"}),
    "withdrawals": frozenset({"MerchantsService/GetMerchant"}),
}

# Every merchant's request waits for Authenticate: many such calls must not stop the pages, nor the pages stop them.
SLOTS: Final = (
    Slots(name="keys", methods=frozenset({"MerchantsService/Authenticate"}), waiting=160),
    of_people(
        "services",
        frozenset({"MerchantsService/GetMerchant", "MerchantsService/GetSigningSecrets"}),
        working=2,
        waiting=64,
    ),
    of_people("logos", frozenset({"MerchantsService/GetLogo"}), working=1),
    of_people("desk", _OF_DESK | {"FindService/CompleteId", *books.PERMISSIONS}, working=2),
    # A call occupies a thread for a second and a connection for a moment. The last that waits begins in time to answer
    # within its caller's 5 seconds. An operator closes a leaked key in places of its own.
    of_people(
        "leases", _ENDS_LEASES, working=8, waiting=16, in_all=16, arriving=256, threads_per_connection=8
    ),
)


# A key and a secret open a merchant's money, so both sides step up for them.
PERMISSIONS: Final[Permissions] = {
    **status.PERMISSIONS,
    **find.PERMISSIONS,
    **books.PERMISSIONS,
    "MerchantsService/Authenticate": machine(for_api=True),
    "MerchantsService/GetSigningSecrets": machine(),
    "MerchantsService/GetLogo": machine() | everyone(),  # customers see them too
    "MerchantsService/KeepLogo": staff("admin", changes=True) | members("developer"),
    "MerchantsService/GetOwner": staff(*READERS),
    "MerchantsService/GetMerchant": machine() | staff(*READERS) | members("developer", "finance", "viewer"),
    "MerchantsService/ListMerchants": staff(*READERS),
    "MerchantsService/NameMerchants": everyone() | for_no_person(),  # also before the sign-in
    "MerchantsService/ListCategories": staff(*READERS),
    "MerchantsService/CreateMerchant": staff("admin", changes=True),
    "MerchantsService/ConfigureMerchant": staff("admin", changes=True, steps_up=True),
    "MerchantsService/ConfigureOwnMerchant": members("developer", changes=True, steps_up=True),
    "MerchantsService/ActivateMerchant": staff("admin", changes=True),
    "MerchantsService/BanMerchant": staff("admin", changes=True),
    "MerchantsService/UnbanMerchant": staff("admin", changes=True),
    "MerchantsService/BlockOwner": staff("admin", changes=True),
    "MerchantsService/UnblockOwner": staff("admin", changes=True),
    "MerchantsService/SetCategory": staff("admin", changes=True),
    "MerchantsService/ListApiKeys": staff(*READERS) | members("developer"),
    "MerchantsService/CreateApiKey": staff("admin", changes=True, steps_up=True) | members("developer"),
    "MerchantsService/DeactivateApiKey": staff("admin", changes=True, steps_up=True)
    | members("developer", merchant_field=OF_OBJECT),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    merchants_pb2_grpc.add_MerchantsServiceServicer_to_server(MerchantsServicer(deps), server)
    find.add_to(server, deps.db, finding.IDS, finding.SEARCHES)
    books.add_to(server, deps.db, PARTS)
