"""The gRPC servicer: message -> operation -> message. kit's server translates errors.

- `bank`: files and lines
- `feed`: connectors
- `converters`: values to messages, and back
"""

from typing import Final

import grpc

from fiatgate.bank.v1 import bank_pb2, feed_pb2
from kit.rpc import books, find, queues
from kit.rpc.methods import serve
from kit.rpc.slots import Slots, proofs
from services.bank.rpc import bank, feed
from services.bank.rpc.converters import FROM_MESSAGE
from services.bank.store.books import PARTS
from services.bank.store.finding import IDS
from services.bank.store.queues import QUEUES
from services.bank.wiring import Deps

SLOTS: Final = (
    # Files of up to 8 MiB, which are written to the database.
    Slots(name="files", threads=1, waiting=4),
    # Posts of connectors, of up to 500 lines.
    Slots(name="feed", threads=2, waiting=16),
    Slots(name="lists", threads=1, waiting=16),
    Slots(name="desk", threads=2, waiting=20),
    proofs(),
)


def add_to(server: grpc.Server, deps: Deps) -> None:
    contract = bank_pb2.DESCRIPTOR.services_by_name["BankService"]
    serve(server, contract, deps, bank.METHODS, FROM_MESSAGE)
    contract = feed_pb2.DESCRIPTOR.services_by_name["FeedService"]
    serve(server, contract, deps, feed.METHODS, feed.FROM_MESSAGE)
    books.add_to(server, deps.db, PARTS)
    find.add_to(server, deps.db, IDS, ())
    queues.add_to(server, deps, QUEUES)
