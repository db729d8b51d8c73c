"""The gRPC servicer: message -> operation -> message. kit's server translates errors.

- `catalog`: currencies, methods, rates
- `converters`: values to messages, and back
"""

from collections.abc import Mapping
from typing import Final

import grpc

from fiatgate.catalog.v1 import catalog_pb2
from kit.audit import approval_lists
from kit.rpc import approvals, books, find, queues
from kit.rpc.approvals import Approvable
from kit.rpc.methods import serve
from kit.rpc.slots import Slots
from services.catalog.operations import rates
from services.catalog.rpc import catalog
from services.catalog.rpc.converters import FROM_MESSAGE
from services.catalog.store.books import PARTS
from services.catalog.store.queues import QUEUES
from services.catalog.wiring import Deps

SLOTS: Final = (
    Slots(name="offers", waiting=96),
    # Creating an invoice needs the catalog, and a deal needs its quote: many readers of offers must not stop them.
    Slots(name="deals", threads=2, waiting=64),
    Slots(name="logos", threads=1),
    Slots(name="desk", threads=2),
    Slots(name="proofs", threads=1, waiting=4),
    # PullRates waits for the sources of rates.
    Slots(name="sources", threads=1, waiting=4),
)


APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    rates.SET: Approvable(change=rates.set_approved, terms=rates.set_terms, role="prices"),
    rates.ACCEPT: Approvable(change=rates.accept_approved, terms=rates.accept_terms, role="prices"),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    serve(
        server, catalog_pb2.DESCRIPTOR.services_by_name["CatalogService"], deps, catalog.METHODS, FROM_MESSAGE
    )
    books.add_to(server, deps.db, PARTS)
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)
    queues.add_to(server, deps, QUEUES)
    find.add_to(server, deps.db, {}, (approval_lists.by_id,))
