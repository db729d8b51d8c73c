"""The gRPC servicer: message -> operation -> message. kit's server translates errors.

- `catalog`: currencies, methods, rates
- `converters`: values to messages, and back
"""

from collections.abc import Mapping
from typing import Final

import grpc

from fiatgate.catalog.v1 import catalog_pb2_grpc
from kit.audit import approval_lists
from kit.rpc import approvals, audit, books, find, queues, status
from kit.rpc.approvals import Approvable
from kit.rpc.callers import ALL, Callers
from kit.rpc.permissions import OF_NONE, READERS, Permissions, machine, members, staff
from kit.rpc.slots import Slots
from services.catalog.operations import rates
from services.catalog.rpc.catalog import CatalogServicer
from services.catalog.store.books import PARTS
from services.catalog.store.queues import QUEUES
from services.catalog.wiring import Deps

CALLERS: Final[Callers] = {
    "cli": frozenset({ALL}),
    "console-desk": frozenset(
        {
            audit.LIST,
            status.GET,
            queues.LIST,
            "CatalogService/AcceptRate",
            *approvals.METHODS,
            "CatalogService/GetCatalog",
            "CatalogService/GetLogo",
            "CatalogService/GetRateHistory",
            "CatalogService/KeepLogo",
            "CatalogService/ListAcceptedRates",
            "CatalogService/ListRates",
            "CatalogService/PullRates",
            "CatalogService/SetCurrency",
            "CatalogService/SetPaymentMethod",
            "CatalogService/SetRate",
            "FindService/Find",
        }
    ),
    "console-dashboard": frozenset({audit.LIST, "CatalogService/ListMerchantCurrencies"}),
    "gateway": frozenset(
        {
            "CatalogService/GetLogo",
            "CatalogService/ListMerchantCurrencies",
            "CatalogService/ListMethodOffers",
        }
    ),
    "invoices": frozenset(
        {
            "CatalogService/GetCatalog",
            "CatalogService/GetQuote",
            "CatalogService/ListMerchantMethods",
            "CatalogService/ListMethodOffers",
        }
    ),
}

SLOTS: Final = (
    Slots(
        name="offers",
        methods=frozenset({"CatalogService/ListMerchantCurrencies", "CatalogService/ListMethodOffers"}),
        waiting=96,
    ),
    # Creating an invoice needs the catalog, and a deal needs its quote: many readers of offers must not stop them.
    Slots(
        name="deals",
        methods=frozenset({"CatalogService/GetCatalog", "CatalogService/GetQuote"}),
        threads=2,
        waiting=64,
    ),
    Slots(name="logos", methods=frozenset({"CatalogService/GetLogo"}), threads=1),
    Slots(
        name="desk",
        methods=frozenset(
            {
                "CatalogService/AcceptRate",
                "CatalogService/GetRateHistory",
                "CatalogService/KeepLogo",
                "CatalogService/ListAcceptedRates",
                "CatalogService/ListMerchantMethods",
                "CatalogService/ListRates",
                # Markups, commissions and rates are money.
                "CatalogService/SetCurrency",
                "CatalogService/SetPaymentMethod",
                "CatalogService/SetRate",
                "FindService/CompleteId",
                "FindService/Find",
                queues.LIST,
            }
        )
        | approvals.METHODS,
        threads=2,
    ),
    Slots(
        name="proofs",
        methods=frozenset({"BooksService/CheckPage", "BooksService/ListParts"}),
        threads=1,
        waiting=4,
    ),
    # PullRates waits for the sources of rates.
    Slots(name="sources", methods=frozenset({"CatalogService/PullRates"}), threads=1, waiting=4),
)


APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    rates.SET: Approvable(change=rates.set_approved, terms=rates.set_terms, role="prices"),
    rates.ACCEPT: Approvable(change=rates.accept_approved, terms=rates.accept_terms, role="prices"),
}

PERMISSIONS: Final[Permissions] = {
    **status.PERMISSIONS,
    **books.PERMISSIONS,
    **find.PERMISSIONS,
    **queues.PERMISSIONS,
    **approvals.permissions(APPROVABLE),
    # The request has the merchant's terms; the answer has nothing of a merchant.
    "CatalogService/ListMerchantCurrencies": machine(for_api=True)
    | members("developer", "finance", merchant_field=OF_NONE),
    "CatalogService/ListMethodOffers": machine(for_api=True),
    "CatalogService/ListMerchantMethods": machine(),
    "CatalogService/GetQuote": machine(),
    "CatalogService/GetLogo": machine() | staff(*READERS),
    "CatalogService/GetCatalog": machine() | staff(*READERS),
    "CatalogService/ListRates": staff(*READERS),
    "CatalogService/GetRateHistory": staff(*READERS),
    "CatalogService/ListAcceptedRates": staff(*READERS),
    "CatalogService/KeepLogo": staff("prices", changes=True),
    "CatalogService/SetCurrency": staff("prices", changes=True, steps_up=True),
    "CatalogService/SetPaymentMethod": staff("prices", changes=True, steps_up=True),
    "CatalogService/SetRate": staff("prices", changes=True, steps_up=True),
    "CatalogService/PullRates": staff("prices", changes=True),
    "CatalogService/AcceptRate": staff("prices", changes=True),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    catalog_pb2_grpc.add_CatalogServiceServicer_to_server(CatalogServicer(deps), server)
    books.add_to(server, deps.db, PARTS)
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)
    queues.add_to(server, deps, QUEUES)
    find.add_to(server, deps.db, {}, (approval_lists.by_id,))
