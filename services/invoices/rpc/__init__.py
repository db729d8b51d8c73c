"""The gRPC servicers: message -> operation -> message. kit's server translates errors.

- `invoices`: merchants' calls on invoices
- `customers`: the payment page, and the simulation of test mode
- `desk`: the operator's desk, with `requisites`
- `reports`: what the business earned
- `lines`: bank lines that pay deals
- `as_seen`: answers without what members of merchants may not see
- `converters`: rows and values to messages, and back
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import grpc

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import lines_pb2, simulation_pb2
from kit.audit import approval_lists
from kit.rpc import approvals, books, find, queues
from kit.rpc.approvals import Approvable
from kit.rpc.methods import serve
from kit.rpc.slots import Slots, lists, of_people, proofs
from services.invoices.operations.desk import ADJUST, adjust_approved, adjust_terms
from services.invoices.operations.line_rules import SET, rule_terms, set_approved
from services.invoices.operations.verification import ACCEPT, accept_approved, accept_terms
from services.invoices.rpc import customers, desk, invoices, lines, reports
from services.invoices.rpc.converters import FROM_MESSAGE
from services.invoices.store.books import PARTS
from services.invoices.store.finding import IDS, OWN_SEARCHES, SEARCHES
from services.invoices.store.queues import QUEUES
from services.invoices.wiring import Deps

# Creating an invoice and marking it paid wait for nothing but the database; the rest must not take their threads.
# As many calls of each kind may wait as four workers of the gateway send at a time.
SLOTS: Final = (
    Slots(name="creates", waiting=256),
    # FindMissingInvoices is about all payments that are new to a worker of the gateway.
    Slots(name="reads", threads=2, waiting=136),
    Slots(name="customers", threads=2, waiting=128),
    # Calls with a picture of up to 5 MiB, which is checked here and written to the database.
    Slots(name="pictures", threads=2, waiting=16),
    # Pages and choices may wait for catalog and identity. A page can do without them, a choice can't.
    Slots(name="pages", threads=3, waiting=64),
    Slots(name="choices", threads=3, waiting=64),
    lists(),
    # A program may decide for operators, as many deals as are paid, and those of an outage come all at once: they wait
    # neither for lists nor behind a bound that a second of them fills.
    Slots(name="decisions", threads=2, waiting=128),
    of_people("desk", working=2, waiting=20, arriving=16),
    # A search reads many indexes for a text that anyone may choose; it must not delay decisions.
    replace(of_people("searches", working=1, waiting=7), waiting=3),
    # A report over a year and all merchants takes a second, that of a merchant's month some milliseconds. Each member's
    # start page has one.
    of_people("reports", working=1, waiting=15, arriving=48),
    proofs(),
)


APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    ADJUST: Approvable(change=adjust_approved, terms=adjust_terms, role="desk"),
    ACCEPT: Approvable(change=accept_approved, terms=accept_terms, role="admin"),
    SET: Approvable(change=set_approved, terms=rule_terms, role="desk"),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    """Registers all servicers of this service."""
    served = {
        "InvoicesService": invoices.METHODS,
        "CheckoutService": customers.METHODS,
        "DealDeskService": desk.METHODS,
        "ReportsService": reports.METHODS,
    }
    for name, methods in served.items():
        serve(server, pb.DESCRIPTOR.services_by_name[name], deps, methods, FROM_MESSAGE)
    payments = lines_pb2.DESCRIPTOR.services_by_name["LinePaymentsService"]
    serve(server, payments, deps, lines.METHODS, FROM_MESSAGE)
    if deps.settings.is_test:
        simulated = simulation_pb2.DESCRIPTOR.services_by_name["SimulationService"]
        serve(server, simulated, deps, customers.SIMULATION, FROM_MESSAGE)
    books.add_to(server, deps.db, PARTS)
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)
    find.add_to(server, deps.db, IDS, (*SEARCHES, approval_lists.by_id), OWN_SEARCHES)
    queues.add_to(server, deps, QUEUES)
