"""The gRPC servicer: message -> operation -> message. kit's server translates errors.

- `servicer`: fiatgate.withdrawals.v1.WithdrawalsService
- `converters`: values to messages, and back
- `as_seen`: answers without what members of merchants may not see
"""

from collections.abc import Mapping
from typing import Final

import grpc

from fiatgate.withdrawals.v1 import withdrawals_pb2_grpc
from kit.audit import approval_lists
from kit.rpc import approvals, audit, books, find, parked, queues, status
from kit.rpc.approvals import Approvable
from kit.rpc.callers import ALL, Callers
from kit.rpc.permissions import OF_NONE, OF_OBJECT, READERS, Permissions, machine, members, staff
from kit.rpc.slots import Slots, lists, of_people, proofs
from services.withdrawals import workers
from services.withdrawals.operations import stepping
from services.withdrawals.rpc.servicer import WithdrawalsServicer
from services.withdrawals.store.books import PARTS
from services.withdrawals.store.finding import IDS, OWN_SEARCHES, SEARCHES
from services.withdrawals.store.queues import QUEUES
from services.withdrawals.wiring import Deps

CALLERS: Final[Callers] = {
    "cli": frozenset({ALL}),
    "console-desk": frozenset(
        {
            audit.LIST,
            status.GET,
            queues.LIST,
            "FindService/Find",
            *approvals.METHODS,
            "ParkedService/DiscardParked",
            "ParkedService/ListParked",
            "ParkedService/RetryParked",
            "WithdrawalsService/CancelWithdrawal",
            "WithdrawalsService/CompleteWithdrawal",
            "WithdrawalsService/CreateWithdrawal",
            "WithdrawalsService/FailWithdrawal",
            "WithdrawalsService/GetBalance",
            "WithdrawalsService/GetStatement",
            "WithdrawalsService/GetWithdrawalStory",
            "WithdrawalsService/ListAddresses",
            "WithdrawalsService/ListAllWithdrawals",
            "WithdrawalsService/ListTransfers",
            "WithdrawalsService/ListWithdrawalMethods",
            "WithdrawalsService/ProcessWithdrawal",
            "WithdrawalsService/SetWithdrawalMethod",
        }
    ),
    "console-dashboard": frozenset(
        {
            audit.LIST,
            "FindService/Find",
            "WithdrawalsService/AddAddress",
            "WithdrawalsService/CancelWithdrawal",
            "WithdrawalsService/GetBalance",
            "WithdrawalsService/GetStatement",
            "WithdrawalsService/GetWithdrawalStory",
            "WithdrawalsService/ListAddresses",
            "WithdrawalsService/ListAllWithdrawals",
            "WithdrawalsService/ListTransfers",
            "WithdrawalsService/ListWithdrawalMethods",
            "WithdrawalsService/RemoveAddress",
            "WithdrawalsService/RequestWithdrawal",
        }
    ),
    "gateway": frozenset({"WithdrawalsService/GetWithdrawal", "WithdrawalsService/ListWithdrawals"}),
}

SLOTS: Final = (
    Slots(name="merchants", methods=frozenset({"WithdrawalsService/GetWithdrawal"}), waiting=128),
    lists("WithdrawalsService/ListWithdrawals"),
    of_people(
        "desk",
        frozenset(
            {
                "FindService/CompleteId",
                "FindService/Find",
                "ParkedService/DiscardParked",
                "ParkedService/ListParked",
                "ParkedService/RetryParked",
                queues.LIST,
                "WithdrawalsService/AddAddress",
                "WithdrawalsService/CancelWithdrawal",
                "WithdrawalsService/CompleteWithdrawal",
                "WithdrawalsService/CreateWithdrawal",
                "WithdrawalsService/FailWithdrawal",
                "WithdrawalsService/GetBalance",
                "WithdrawalsService/GetStatement",
                "WithdrawalsService/GetWithdrawalStory",
                "WithdrawalsService/ListAddresses",
                "WithdrawalsService/ListAllWithdrawals",
                "WithdrawalsService/ListTransfers",
                "WithdrawalsService/ListWithdrawalMethods",
                "WithdrawalsService/ProcessWithdrawal",
                "WithdrawalsService/RemoveAddress",
                "WithdrawalsService/RequestWithdrawal",
                "WithdrawalsService/SetWithdrawalMethod",
            }
        )
        | approvals.METHODS,
        working=3,
    ),
    proofs("WithdrawalsService/CheckLedger", "WithdrawalsService/ListCredits"),
)


APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    stepping.PROCESS: Approvable(
        change=stepping.process_approved, terms=stepping.process_terms, role="treasury"
    ),
}

# All that pays out, or holds money for it, needs a step-up.
PERMISSIONS: Final[Permissions] = {
    **status.PERMISSIONS,
    **books.PERMISSIONS,
    **find.permissions("finance", "viewer"),
    **queues.PERMISSIONS,
    **parked.permissions("treasury"),
    **approvals.permissions(APPROVABLE),
    "WithdrawalsService/ListWithdrawals": machine(for_api=True)
    | staff(*READERS)
    | members("finance", "viewer"),
    "WithdrawalsService/GetWithdrawal": machine(for_api=True)
    | staff(*READERS)
    | members("finance", "viewer"),
    "WithdrawalsService/ListAllWithdrawals": staff(*READERS) | members("finance", "viewer"),
    "WithdrawalsService/ListWithdrawalMethods": staff(*READERS)
    | members("finance", "viewer", merchant_field=OF_NONE),
    "WithdrawalsService/GetBalance": staff(*READERS) | members("finance", "viewer"),
    "WithdrawalsService/GetWithdrawalStory": staff(*READERS)
    | members("finance", "viewer", merchant_field=OF_OBJECT),
    "WithdrawalsService/ListTransfers": staff(*READERS) | members("finance", "viewer"),
    "WithdrawalsService/GetStatement": staff(*READERS) | members("finance", "viewer"),
    "WithdrawalsService/SetWithdrawalMethod": staff("treasury", changes=True, steps_up=True),
    "WithdrawalsService/CreateWithdrawal": staff("treasury", changes=True, steps_up=True),
    # A member's money goes to addresses of the book only. To remove one is the defence, so nothing delays it.
    "WithdrawalsService/RequestWithdrawal": members("finance", changes=True, steps_up=True),
    "WithdrawalsService/ListAddresses": staff(*READERS) | members("finance", "viewer"),
    "WithdrawalsService/AddAddress": members("finance", changes=True, steps_up=True),
    "WithdrawalsService/RemoveAddress": members("finance", merchant_field=OF_OBJECT, changes=True),
    "WithdrawalsService/ProcessWithdrawal": staff("treasury", changes=True, steps_up=True),
    "WithdrawalsService/CompleteWithdrawal": staff("treasury", changes=True, steps_up=True),
    "WithdrawalsService/FailWithdrawal": staff("treasury", changes=True, steps_up=True),
    "WithdrawalsService/CancelWithdrawal": staff("treasury", changes=True, steps_up=True)
    | members("finance", merchant_field=OF_OBJECT),
    "WithdrawalsService/CheckLedger": staff("auditor"),
    "WithdrawalsService/ListCredits": staff("auditor"),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    withdrawals_pb2_grpc.add_WithdrawalsServiceServicer_to_server(WithdrawalsServicer(deps), server)
    parked.add_to(server, workers.consumer(deps))
    books.add_to(server, deps.db, PARTS)
    find.add_to(server, deps.db, IDS, (*SEARCHES, approval_lists.by_id), OWN_SEARCHES)
    queues.add_to(server, deps, QUEUES)
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)
