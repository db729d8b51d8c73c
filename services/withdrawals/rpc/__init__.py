"""The gRPC servicer: message -> operation -> message. kit's server translates errors.

- `withdrawals`: fiatgate.withdrawals.v1.WithdrawalsService
- `corrections`: fiatgate.withdrawals.v1.CorrectionsService
- `refunds`: fiatgate.withdrawals.v1.RefundsService
- `converters`: values to messages, and back
- `as_seen`: answers without what members of merchants may not see
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Final

import grpc

from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2, withdrawals_pb2
from kit.audit import approval_lists
from kit.rpc import approvals, books, find, parked, queues
from kit.rpc.approvals import Approvable
from kit.rpc.methods import serve
from kit.rpc.slots import Slots, lists, of_people, proofs
from kit.rpc.turns import Share
from services.withdrawals import workers
from services.withdrawals.operations import correction_terms, refund_steps, stepping
from services.withdrawals.operations import corrections as making
from services.withdrawals.rpc import corrections, refunds, withdrawals
from services.withdrawals.rpc.converters import FROM_MESSAGE
from services.withdrawals.store.books import PARTS
from services.withdrawals.store.finding import IDS, OWN_SEARCHES, SEARCHES
from services.withdrawals.store.queues import QUEUES
from services.withdrawals.wiring import Deps

SLOTS: Final = (
    Slots(name="merchants", waiting=160),
    lists(),
    # Each asks invoices twice.
    Slots(
        name="refunds",
        threads=24,
        waiting=20,
        owner=attrgetter("merchant_id"),
        share=Share(working=1, waiting=7, wait_seconds=3, in_all=2),
    ),
    of_people("desk", working=3),
    proofs(),
)


APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    stepping.PROCESS: Approvable(
        change=stepping.process_approved, terms=stepping.process_terms, role="treasury"
    ),
    refund_steps.SEND: Approvable(
        change=refund_steps.send_approved, terms=refund_steps.send_terms, role="desk"
    ),
    correction_terms.MAKE: Approvable(
        change=making.make_approved,
        terms=correction_terms.make_terms,
        role="treasury",
        before=making.require_undecided,
    ),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    for contract, methods in (
        (withdrawals_pb2.DESCRIPTOR.services_by_name["WithdrawalsService"], withdrawals.METHODS),
        (refunds_pb2.DESCRIPTOR.services_by_name["RefundsService"], refunds.METHODS),
        (corrections_pb2.DESCRIPTOR.services_by_name["CorrectionsService"], corrections.METHODS),
    ):
        serve(server, contract, deps, methods, {**FROM_MESSAGE, **refunds.FROM_MESSAGE})
    parked.add_to(server, workers.consumer(deps))
    books.add_to(server, deps.db, PARTS)
    find.add_to(server, deps.db, IDS, (*SEARCHES, approval_lists.by_id), OWN_SEARCHES)
    queues.add_to(server, deps, QUEUES)
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)
