"""The gRPC servicer: message -> operation -> message. kit's server translates errors.

- `withdrawals`: fiatgate.withdrawals.v1.WithdrawalsService
- `corrections`: fiatgate.withdrawals.v1.CorrectionsService
- `converters`: values to messages, and back
- `as_seen`: answers without what members of merchants may not see
"""

from collections.abc import Mapping
from typing import Final

import grpc

from fiatgate.withdrawals.v1 import corrections_pb2, withdrawals_pb2
from kit.audit import approval_lists
from kit.rpc import approvals, books, find, parked, queues
from kit.rpc.approvals import Approvable
from kit.rpc.methods import serve
from kit.rpc.slots import Slots, lists, of_people, proofs
from services.withdrawals import workers
from services.withdrawals.operations import corrections as making
from services.withdrawals.operations import stepping
from services.withdrawals.rpc import corrections, withdrawals
from services.withdrawals.rpc.converters import FROM_MESSAGE
from services.withdrawals.store.books import PARTS
from services.withdrawals.store.finding import IDS, OWN_SEARCHES, SEARCHES
from services.withdrawals.store.queues import QUEUES
from services.withdrawals.wiring import Deps

SLOTS: Final = (
    Slots(name="merchants", waiting=128),
    lists(),
    of_people("desk", working=3),
    proofs(),
)


APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    stepping.PROCESS: Approvable(
        change=stepping.process_approved, terms=stepping.process_terms, role="treasury"
    ),
    making.MAKE: Approvable(change=making.make_approved, terms=making.make_terms, role="treasury"),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    for contract, methods in (
        (withdrawals_pb2.DESCRIPTOR.services_by_name["WithdrawalsService"], withdrawals.METHODS),
        (corrections_pb2.DESCRIPTOR.services_by_name["CorrectionsService"], corrections.METHODS),
    ):
        serve(server, contract, deps, methods, FROM_MESSAGE)
    parked.add_to(server, workers.consumer(deps))
    books.add_to(server, deps.db, PARTS)
    find.add_to(server, deps.db, IDS, (*SEARCHES, approval_lists.by_id), OWN_SEARCHES)
    queues.add_to(server, deps, QUEUES)
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)
