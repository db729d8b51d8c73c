"""fiatgate.merchants.v1.MerchantsService: message, operation, message. kit's server translates errors.

- `merchants`: the methods
- `converters`: values to messages, and back
"""

from typing import Final

import grpc

from fiatgate.merchants.v1 import merchants_pb2
from kit.rpc import books, find
from kit.rpc.methods import serve
from kit.rpc.slots import Slots, of_people
from services.merchants.rpc import merchants
from services.merchants.store import finding
from services.merchants.store.books import parts
from services.merchants.wiring import Deps

# Every merchant's request waits for Authenticate: many such calls must not stop the pages, nor the pages stop them.
SLOTS: Final = (
    Slots(name="keys", waiting=160),
    of_people("services", working=2, waiting=64),
    of_people("logos", working=1),
    of_people("desk", working=2),
    # Calls that wait for the end of a lease (operations/leases.py): each occupies a thread for a second and a
    # connection for a moment. The last that waits begins in time to answer within its caller's 5 seconds. An operator
    # closes a leaked key in places of its own.
    of_people("leases", working=8, waiting=16, in_all=16, arriving=256, threads_per_connection=8),
)


def add_to(server: grpc.Server, deps: Deps) -> None:
    serve(server, merchants_pb2.DESCRIPTOR.services_by_name["MerchantsService"], deps, merchants.METHODS)
    find.add_to(server, deps.db, finding.IDS, finding.SEARCHES)
    books.add_to(server, deps.db, parts(deps.vault))
