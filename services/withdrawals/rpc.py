"""fiatgate.withdrawals.v1.WithdrawalsService: message, operation, message. kit's interceptor translates errors."""

from collections.abc import Mapping
from typing import Final

import grpc

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2_grpc
from kit.base.money import usdt_text
from kit.base.proto import optional, optional_datetime, timestamp_from
from kit.rpc import approvals, audit, books, find, parked, status, values
from kit.rpc.approvals import Approvable
from kit.rpc.callers import ALL, Callers
from kit.rpc.permissions import OF_NONE, OF_OBJECT, READERS, Permissions, machine, members, staff
from kit.rpc.slots import Slots, lists, proofs
from services.withdrawals import workers
from services.withdrawals.domain import WithdrawalStatus
from services.withdrawals.operations import creating, ledger, methods, reading, stepping
from services.withdrawals.store.books import PARTS
from services.withdrawals.store.finding import IDS, SEARCHES
from services.withdrawals.store.views import MethodView, WithdrawalView
from services.withdrawals.wiring import Deps

# ruff: noqa: N802  the proto names the methods

_STATUSES = {
    WithdrawalStatus.PENDING: pb.WITHDRAWAL_STATUS_PENDING,
    WithdrawalStatus.SUCCESS: pb.WITHDRAWAL_STATUS_SUCCESS,
    WithdrawalStatus.FAILED: pb.WITHDRAWAL_STATUS_FAILED,
    WithdrawalStatus.CANCELLED: pb.WITHDRAWAL_STATUS_CANCELLED,
}
_STATUS_FILTERS = {pb.WITHDRAWAL_STATUS_UNSPECIFIED: None} | {
    number: status for status, number in _STATUSES.items()
}
_NEWEST_FIRST = {
    pb.SORT_ORDER_UNSPECIFIED: True,
    pb.SORT_ORDER_DESC: True,
    pb.SORT_ORDER_ASC: False,
}


CALLERS: Final[Callers] = {
    "cli": frozenset({ALL}),
    "console-desk": frozenset({audit.LIST}),
    "console-dashboard": frozenset({audit.LIST}),
    "gateway": frozenset({"WithdrawalsService/GetWithdrawal", "WithdrawalsService/ListWithdrawals"}),
}

SLOTS: Final = (
    Slots(name="merchants", methods=frozenset({"WithdrawalsService/GetWithdrawal"}), waiting=128),
    lists("WithdrawalsService/ListWithdrawals"),
    Slots(
        name="desk",
        methods=frozenset(
            {
                "FindService/CompleteId",
                "FindService/Find",
                "ParkedService/DiscardParked",
                "ParkedService/ListParked",
                "ParkedService/RetryParked",
                "WithdrawalsService/CancelWithdrawal",
                "WithdrawalsService/CompleteWithdrawal",
                "WithdrawalsService/CreateWithdrawal",
                "WithdrawalsService/FailWithdrawal",
                "WithdrawalsService/GetBalance",
                "WithdrawalsService/ListAllWithdrawals",
                "WithdrawalsService/ListWithdrawalMethods",
                "WithdrawalsService/ProcessWithdrawal",
                "WithdrawalsService/SetWithdrawalMethod",
            }
        )
        | approvals.METHODS,
        threads=3,
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
    **find.PERMISSIONS,
    **parked.permissions("treasury"),
    **approvals.permissions(APPROVABLE),
    "WithdrawalsService/ListWithdrawals": machine(for_api=True)
    | staff(*READERS)
    | members("finance", "viewer"),
    "WithdrawalsService/GetWithdrawal": machine(for_api=True)
    | staff(*READERS)
    | members("finance", "viewer"),
    "WithdrawalsService/ListAllWithdrawals": staff(*READERS),
    "WithdrawalsService/ListWithdrawalMethods": staff(*READERS)
    | members("finance", "viewer", merchant_field=OF_NONE),
    "WithdrawalsService/GetBalance": staff(*READERS) | members("finance", "viewer"),
    "WithdrawalsService/SetWithdrawalMethod": staff("treasury", changes=True, steps_up=True),
    "WithdrawalsService/CreateWithdrawal": staff("treasury", changes=True, steps_up=True)
    | members("finance"),
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
    find.add_to(server, deps.db, IDS, SEARCHES)
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)


class WithdrawalsServicer(withdrawals_pb2_grpc.WithdrawalsServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ListWithdrawals(
        self, request: pb.ListWithdrawalsRequest, context: grpc.ServicerContext
    ) -> pb.ListWithdrawalsResponse:
        page = reading.list_withdrawals(
            self._deps,
            merchant_id=request.merchant_id,
            page=request.page,
            per_page=request.per_page,
            status=status_from_message(request.status),
            newest_first=newest_first_from_message(request.order),
        )
        return pb.ListWithdrawalsResponse(
            withdrawals=[withdrawal_to_message(each) for each in page.withdrawals], total=page.total
        )

    def GetWithdrawal(
        self, request: pb.GetWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.GetWithdrawalResponse:
        withdrawal = reading.get_withdrawal(
            self._deps, merchant_id=request.merchant_id, withdraw_uuid=request.withdraw_uuid
        )
        return pb.GetWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def ListAllWithdrawals(
        self, request: pb.ListAllWithdrawalsRequest, context: grpc.ServicerContext
    ) -> pb.ListAllWithdrawalsResponse:
        found = reading.list_all_withdrawals(
            self._deps,
            merchant_id=request.merchant_id,
            status=status_from_message(request.status),
            limit=request.limit,
            created_from=optional_datetime(request, "created_from"),
            created_before=optional_datetime(request, "created_before"),
            after_withdraw_uuid=request.after_withdraw_uuid,
        )
        return pb.ListAllWithdrawalsResponse(withdrawals=[withdrawal_to_message(each) for each in found])

    def ListWithdrawalMethods(
        self, request: pb.ListWithdrawalMethodsRequest, context: grpc.ServicerContext
    ) -> pb.ListWithdrawalMethodsResponse:
        found = methods.list_withdrawal_methods(self._deps)
        return pb.ListWithdrawalMethodsResponse(methods=[method_to_message(each) for each in found])

    def SetWithdrawalMethod(
        self, request: pb.SetWithdrawalMethodRequest, context: grpc.ServicerContext
    ) -> pb.SetWithdrawalMethodResponse:
        given = request.method
        method = methods.set_withdrawal_method(
            self._deps,
            code=given.code,
            network=given.network,
            name=given.name,
            network_fee=given.network_fee,
            min_amount=given.min_amount,
            memo_allowed=given.memo_allowed,
            enabled=given.enabled,
        )
        return pb.SetWithdrawalMethodResponse(method=method_to_message(method))

    def CreateWithdrawal(
        self, request: pb.CreateWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.CreateWithdrawalResponse:
        withdrawal = creating.create_withdrawal(
            self._deps,
            merchant_id=request.merchant_id,
            withdrawal_method_id=request.withdrawal_method_id,
            address=request.address,
            address_memo=optional(request, "address_memo"),
            amount=request.amount,
            request_key=request.request_key,
        )
        return pb.CreateWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def ProcessWithdrawal(
        self, request: pb.ProcessWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.ProcessWithdrawalResponse:
        withdrawal = stepping.process_withdrawal(self._deps, withdraw_uuid=request.withdraw_uuid)
        return pb.ProcessWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def CompleteWithdrawal(
        self, request: pb.CompleteWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.CompleteWithdrawalResponse:
        withdrawal = stepping.complete_withdrawal(
            self._deps, withdraw_uuid=request.withdraw_uuid, external_tx_id=request.external_tx_id
        )
        return pb.CompleteWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def FailWithdrawal(
        self, request: pb.FailWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.FailWithdrawalResponse:
        withdrawal = stepping.fail_withdrawal(
            self._deps, withdraw_uuid=request.withdraw_uuid, substatus=request.substatus
        )
        return pb.FailWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def CancelWithdrawal(
        self, request: pb.CancelWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.CancelWithdrawalResponse:
        withdrawal = stepping.cancel_withdrawal(
            self._deps, withdraw_uuid=request.withdraw_uuid, by_user=request.by_user
        )
        return pb.CancelWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def GetBalance(
        self, request: pb.GetBalanceRequest, context: grpc.ServicerContext
    ) -> pb.GetBalanceResponse:
        balance = ledger.get_balance(self._deps, merchant_id=request.merchant_id)
        return pb.GetBalanceResponse(
            merchant_id=request.merchant_id,
            available=usdt_text(balance.available),
            reserved=usdt_text(balance.reserved),
            credited=usdt_text(balance.credited),
            withdrawn=usdt_text(balance.withdrawn),
        )

    def CheckLedger(
        self, request: pb.CheckLedgerRequest, context: grpc.ServicerContext
    ) -> pb.CheckLedgerResponse:
        report = ledger.check_ledger(self._deps)
        return pb.CheckLedgerResponse(
            transfers=report.transfers,
            accounts=report.accounts,
            sum=usdt_text(report.sum),
            problems=report.problems,
        )

    def ListCredits(
        self, request: pb.ListCreditsRequest, context: grpc.ServicerContext
    ) -> pb.ListCreditsResponse:
        found = ledger.list_credits(
            self._deps, after_invoice_id=request.after_invoice_id, limit=request.limit
        )
        return pb.ListCreditsResponse(
            credits=[
                pb.Credit(
                    invoice_id=str(each.invoice_id),
                    merchant_id=str(each.merchant_id),
                    amount=usdt_text(each.amount),
                )
                for each in found
            ]
        )


def withdrawal_to_message(withdrawal: WithdrawalView) -> pb.Withdrawal:
    return pb.Withdrawal(
        withdraw_uuid=str(withdrawal.id),
        merchant_id=str(withdrawal.merchant_id),
        withdrawal_method_id=withdrawal.method_id,
        address=withdrawal.address,
        address_memo=withdrawal.address_memo,
        amount=usdt_text(withdrawal.amount),
        network_fee=usdt_text(withdrawal.network_fee),
        amount_to_receive=usdt_text(withdrawal.amount - withdrawal.network_fee),
        status=_STATUSES[withdrawal.status],
        substatus=withdrawal.substatus,
        external_tx_id=withdrawal.external_tx_id,
        created_at=timestamp_from(withdrawal.created_at),
        updated_at=timestamp_from(withdrawal.updated_at),
        processed_at=timestamp_from(withdrawal.processed_at),
    )


def method_to_message(method: MethodView) -> pb.WithdrawalMethod:
    return pb.WithdrawalMethod(
        method_id=method.id,
        code=method.code,
        network=method.network,
        name=method.name,
        network_fee=usdt_text(method.network_fee),
        min_amount=usdt_text(method.min_amount),
        memo_allowed=method.memo_allowed,
        enabled=method.enabled,
    )


def status_from_message(status: pb.WithdrawalStatus.ValueType) -> WithdrawalStatus | None:
    """Returns the status; None for UNSPECIFIED, which means all."""
    if status not in _STATUS_FILTERS:
        raise values.query_invalid("status", "Expected pending, success, failed or cancelled")
    return _STATUS_FILTERS[status]


def newest_first_from_message(order: pb.SortOrder.ValueType) -> bool:
    if order not in _NEWEST_FIRST:
        raise values.query_invalid("order", "Expected desc or asc")
    return _NEWEST_FIRST[order]
