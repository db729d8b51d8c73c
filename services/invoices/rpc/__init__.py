"""The gRPC servicers: message -> operation -> message. kit's server translates errors.

- `merchants`: merchants' calls on invoices
- `customers`: the payment page
- `desk`: the operator's desk, with `requisites`
- `reports`: what the business earned
- `as_seen`: answers without what members of merchants may not see
- `converters`: rows and values to messages, and back
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import grpc

from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from kit.audit import approval_lists
from kit.rpc import approvals, audit, books, find, queues, status
from kit.rpc.approvals import Approvable
from kit.rpc.callers import ALL, Callers
from kit.rpc.permissions import OF_OBJECT, READERS, Permissions, machine, members, staff
from kit.rpc.slots import Slots, lists, of_people, proofs
from services.invoices.operations.desk import ADJUST, adjust_approved, adjust_terms
from services.invoices.operations.verification import ACCEPT, accept_approved, accept_terms
from services.invoices.rpc.customers import CheckoutServicer
from services.invoices.rpc.desk import DealDeskServicer
from services.invoices.rpc.merchants import InvoicesServicer
from services.invoices.rpc.reports import ReportsServicer
from services.invoices.store.books import PARTS
from services.invoices.store.finding import IDS, OWN_SEARCHES, SEARCHES
from services.invoices.store.queues import QUEUES
from services.invoices.wiring import Deps

CALLERS: Final[Callers] = {
    "cli": frozenset({ALL}),
    "console-desk": frozenset(
        {
            audit.LIST,
            status.GET,
            queues.LIST,
            "DealDeskService/AddRequisites",
            "DealDeskService/CheckAdjustment",
            "DealDeskService/CheckRequisites",
            "DealDeskService/ConfirmDeal",
            "DealDeskService/DisableRequisite",
            "DealDeskService/EnableRequisite",
            "DealDeskService/GetCase",
            "DealDeskService/GetDeal",
            "DealDeskService/GetDealsSystem",
            "DealDeskService/GetInvoiceStory",
            "DealDeskService/GetProof",
            "DealDeskService/GetRequisite",
            "DealDeskService/ListAllInvoices",
            "DealDeskService/ListCases",
            "DealDeskService/ListDealStates",
            "DealDeskService/ListDeals",
            "DealDeskService/ListMerchantMethods",
            "DealDeskService/ListMethodPlaces",
            "DealDeskService/ListRequisiteDeals",
            "DealDeskService/ListRequisites",
            "DealDeskService/OpenAppeal",
            "DealDeskService/RejectDeal",
            "DealDeskService/ResolveAppeal",
            "DealDeskService/ResolveCase",
            "DealDeskService/SetDealsSystem",
            "FindService/Find",
            "InvoicesService/CancelInvoice",
            *approvals.METHODS,
            "ReportsService/GetReport",
        }
    ),
    "console-dashboard": frozenset(
        {
            audit.LIST,
            "DealDeskService/GetInvoiceStory",
            "DealDeskService/ListAllInvoices",
            "FindService/Find",
            "InvoicesService/CreateInvoiceByHand",
            "InvoicesService/GetInvoice",
            "ReportsService/GetReport",
        }
    ),
    "gateway": frozenset(
        {
            "InvoicesService/CreateInvoice",
            "InvoicesService/GetInvoice",
            "InvoicesService/ListInvoices",
            "CheckoutService/CancelCheckout",
            "CheckoutService/FindMissingInvoices",
            "CheckoutService/GetCheckout",
            "CheckoutService/MarkPaid",
            "CheckoutService/OpenCase",
            "CheckoutService/OpenCustomerAppeal",
            "CheckoutService/SelectPaymentMethod",
        }
    ),
}

# Creating an invoice and marking it paid wait for nothing but the database; the rest must not take their threads.
# As many calls of each kind may wait as four workers of the gateway send at a time.
SLOTS: Final = (
    Slots(name="creates", methods=frozenset({"InvoicesService/CreateInvoice"}), waiting=256),
    # FindMissingInvoices is about all payments that are new to a worker of the gateway.
    Slots(
        name="reads",
        methods=frozenset({"InvoicesService/GetInvoice", "CheckoutService/FindMissingInvoices"}),
        threads=2,
        waiting=136,
    ),
    Slots(
        name="customers",
        methods=frozenset({"CheckoutService/CancelCheckout", "CheckoutService/MarkPaid"}),
        threads=2,
        waiting=128,
    ),
    # These two carry a picture of up to 5 MiB, which is checked here and written to the database.
    Slots(
        name="pictures",
        methods=frozenset({"CheckoutService/OpenCase", "CheckoutService/OpenCustomerAppeal"}),
        threads=2,
        waiting=16,
    ),
    # These two may wait for catalog and merchants. A page can do without them, a choice can't.
    Slots(name="pages", methods=frozenset({"CheckoutService/GetCheckout"}), threads=3, waiting=64),
    Slots(name="choices", methods=frozenset({"CheckoutService/SelectPaymentMethod"}), threads=3, waiting=64),
    lists("InvoicesService/ListInvoices"),
    # A program may decide for operators, as many deals as are paid, and those of an outage come all at once: they wait
    # neither for lists nor behind a bound that a second of them fills.
    Slots(
        name="decisions",
        methods=frozenset(
            {
                "DealDeskService/ConfirmDeal",
                "DealDeskService/OpenAppeal",
                "DealDeskService/RejectDeal",
                "DealDeskService/ResolveAppeal",
            }
        ),
        threads=2,
        waiting=128,
    ),
    of_people(
        "desk",
        frozenset(
            {
                "DealDeskService/AddRequisite",
                "DealDeskService/AddRequisites",
                "DealDeskService/CheckAdjustment",
                "DealDeskService/CheckRequisites",
                "DealDeskService/DisableRequisite",
                "DealDeskService/EnableRequisite",
                "DealDeskService/GetCase",
                "DealDeskService/GetDeal",
                "DealDeskService/GetDealsSystem",
                "DealDeskService/GetInvoiceStory",
                "DealDeskService/GetProof",
                "DealDeskService/GetRequisite",
                "DealDeskService/ListAllInvoices",
                "DealDeskService/ListCases",
                "DealDeskService/ListDealStates",
                "DealDeskService/ListDeals",
                "DealDeskService/ListMerchantMethods",
                "DealDeskService/ListMethodPlaces",
                "DealDeskService/ListRequisiteDeals",
                "DealDeskService/ListRequisites",
                "DealDeskService/ResolveCase",
                "DealDeskService/SetDealsSystem",
                "FindService/CompleteId",
                "InvoicesService/CancelInvoice",
                # It waits for merchants.
                "InvoicesService/CreateInvoiceByHand",
                queues.LIST,
            }
        )
        | approvals.METHODS,
        working=2,
        waiting=20,
        arriving=16,
    ),
    # A search reads many indexes for a text that anyone may choose; it must not delay decisions.
    replace(of_people("searches", frozenset({"FindService/Find"}), working=1, waiting=7), waiting=3),
    # A report over a year and all merchants takes a second, that of a merchant's month some milliseconds. Each member's
    # start page has one.
    of_people("reports", frozenset({"ReportsService/GetReport"}), working=1, waiting=15, arriving=48),
    proofs(
        "InvoicesService/ListFinishedInvoices",
        "InvoicesService/ReannounceInvoices",
        "InvoicesService/ListForgottenFacts",
        "InvoicesService/RestoreForgotten",
    ),
)


_CUSTOMER: Final = machine(changes=True)
_DESK: Final = staff("desk", changes=True)
_READ: Final = staff(*READERS)

APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    ADJUST: Approvable(change=adjust_approved, terms=adjust_terms, role="desk"),
    ACCEPT: Approvable(change=accept_approved, terms=accept_terms, role="admin"),
}

PERMISSIONS: Final[Permissions] = {
    **status.PERMISSIONS,
    **books.PERMISSIONS,
    **find.permissions("developer", "finance", "viewer"),
    **queues.PERMISSIONS,
    **approvals.permissions(APPROVABLE),
    "InvoicesService/CreateInvoice": machine(for_api=True, changes=True),
    "InvoicesService/CreateInvoiceByHand": members("developer", "finance", changes=True),
    "InvoicesService/GetInvoice": machine(for_api=True) | _READ | members("developer", "finance", "viewer"),
    "InvoicesService/ListInvoices": machine(for_api=True) | _READ | members("developer", "finance", "viewer"),
    "InvoicesService/CancelInvoice": _DESK,
    "InvoicesService/ListFinishedInvoices": staff("auditor"),
    "InvoicesService/ReannounceInvoices": staff("admin", changes=True),
    "InvoicesService/ListForgottenFacts": staff("auditor"),
    "InvoicesService/RestoreForgotten": staff("admin", changes=True),
    "CheckoutService/GetCheckout": machine(),
    "CheckoutService/FindMissingInvoices": machine(),
    "CheckoutService/SelectPaymentMethod": _CUSTOMER,
    "CheckoutService/MarkPaid": _CUSTOMER,
    "CheckoutService/CancelCheckout": _CUSTOMER,
    "CheckoutService/OpenCustomerAppeal": _CUSTOMER,
    "CheckoutService/OpenCase": _CUSTOMER,
    "DealDeskService/ListAllInvoices": _READ | members("developer", "finance", "viewer"),
    "DealDeskService/GetInvoiceStory": _READ
    | members("developer", "finance", "viewer", merchant_field=OF_OBJECT),
    "DealDeskService/ListDeals": _READ,
    "DealDeskService/ListDealStates": _READ,
    "DealDeskService/GetDeal": _READ,
    "DealDeskService/GetProof": _READ,
    "DealDeskService/ConfirmDeal": _DESK,
    "DealDeskService/RejectDeal": _DESK,
    "DealDeskService/OpenAppeal": _DESK,
    "DealDeskService/ResolveAppeal": _DESK,
    "DealDeskService/CheckAdjustment": _READ,
    "DealDeskService/ListCases": _READ,
    "DealDeskService/GetCase": _READ,
    "DealDeskService/ResolveCase": _DESK,
    "DealDeskService/ListMerchantMethods": _READ,
    "DealDeskService/ListRequisites": _READ,
    "DealDeskService/ListMethodPlaces": _READ,
    "DealDeskService/GetRequisite": _READ,
    "DealDeskService/ListRequisiteDeals": _READ,
    "DealDeskService/CheckRequisites": _READ,
    # Customers pay to it: a stolen session must not put in an account of its own.
    "DealDeskService/AddRequisite": staff("desk", changes=True, steps_up=True),
    "DealDeskService/AddRequisites": staff("desk", changes=True, steps_up=True),
    "DealDeskService/EnableRequisite": staff("desk", changes=True, steps_up=True),
    "DealDeskService/DisableRequisite": _DESK,
    "DealDeskService/GetDealsSystem": _READ,
    "DealDeskService/SetDealsSystem": _DESK,
    "ReportsService/GetReport": _READ | members("developer", "finance", "viewer"),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    """Registers all servicers of this service."""
    pb_grpc.add_InvoicesServiceServicer_to_server(InvoicesServicer(deps), server)
    pb_grpc.add_CheckoutServiceServicer_to_server(CheckoutServicer(deps), server)
    pb_grpc.add_DealDeskServiceServicer_to_server(DealDeskServicer(deps), server)
    pb_grpc.add_ReportsServiceServicer_to_server(ReportsServicer(deps), server)
    books.add_to(server, deps.db, PARTS)
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)
    find.add_to(server, deps.db, IDS, (*SEARCHES, approval_lists.by_id), OWN_SEARCHES)
    queues.add_to(server, deps, QUEUES)
