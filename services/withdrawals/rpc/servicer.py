"""fiatgate.withdrawals.v1.WithdrawalsService: message, operation, message."""

import grpc

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2_grpc
from kit.base.money import usdt_text
from kit.base.proto import optional, optional_datetime
from kit.rpc.audit import act_to_message
from services.withdrawals.operations import (
    addresses,
    creating,
    ledger,
    methods,
    reading,
    statements,
    stepping,
)
from services.withdrawals.rpc.as_seen import story_as_seen
from services.withdrawals.rpc.converters import (
    address_to_message,
    crossing_to_message,
    entry_to_message,
    held_from_message,
    held_to_message,
    method_to_message,
    newest_first_from_message,
    status_from_message,
    transfer_sum_to_message,
    transfer_to_message,
    wanted_from_message,
    withdrawal_to_message,
)
from services.withdrawals.wiring import Deps

# ruff: noqa: N802  the proto names the methods


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
            wanted_from_message(request),
            limit=request.limit,
            after_withdraw_uuid=request.after_withdraw_uuid,
            oldest_first=request.oldest_first,
        )
        return pb.ListAllWithdrawalsResponse(withdrawals=[withdrawal_to_message(each) for each in found])

    def GetWithdrawalStory(
        self, request: pb.GetWithdrawalStoryRequest, context: grpc.ServicerContext
    ) -> pb.GetWithdrawalStoryResponse:
        story = reading.get_withdrawal_story(self._deps, withdraw_uuid=request.withdraw_uuid)
        return story_as_seen(
            pb.GetWithdrawalStoryResponse(
                withdrawal=withdrawal_to_message(story.withdrawal),
                method=method_to_message(story.method),
                acts=[act_to_message(each, self._deps.settings.service) for each in story.acts],
                transfers=[transfer_to_message(each) for each in story.transfers],
                pending_approval_id=str(story.pending_approval_id or ""),
            )
        )

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
            was={name: getattr(request.was, name) for name in methods.SEEN}
            if request.HasField("was")
            else None,
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

    def RequestWithdrawal(
        self, request: pb.RequestWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.RequestWithdrawalResponse:
        withdrawal = creating.request_withdrawal(
            self._deps,
            merchant_id=request.merchant_id,
            address_id=request.address_id,
            amount=request.amount,
            network_fee=request.network_fee,
            request_key=request.request_key,
        )
        return pb.RequestWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def ListAddresses(
        self, request: pb.ListAddressesRequest, context: grpc.ServicerContext
    ) -> pb.ListAddressesResponse:
        found, now = (
            addresses.list_addresses(self._deps, merchant_id=request.merchant_id),
            self._deps.clock.now(),
        )
        return pb.ListAddressesResponse(addresses=[address_to_message(each, now=now) for each in found])

    def AddAddress(
        self, request: pb.AddAddressRequest, context: grpc.ServicerContext
    ) -> pb.AddAddressResponse:
        added = addresses.add_address(
            self._deps,
            merchant_id=request.merchant_id,
            withdrawal_method_id=request.withdrawal_method_id,
            address=request.address,
            address_memo=optional(request, "address_memo"),
            name=request.name,
        )
        return pb.AddAddressResponse(address=address_to_message(added, now=self._deps.clock.now()))

    def RemoveAddress(
        self, request: pb.RemoveAddressRequest, context: grpc.ServicerContext
    ) -> pb.RemoveAddressResponse:
        addresses.remove_address(self._deps, address_id=request.address_id)
        return pb.RemoveAddressResponse()

    def ProcessWithdrawal(
        self, request: pb.ProcessWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.ProcessWithdrawalResponse:
        withdrawal = stepping.process_withdrawal(
            self._deps, withdraw_uuid=request.withdraw_uuid, expected_stage=request.expected_stage
        )
        return pb.ProcessWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def CompleteWithdrawal(
        self, request: pb.CompleteWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.CompleteWithdrawalResponse:
        withdrawal = stepping.complete_withdrawal(
            self._deps,
            withdraw_uuid=request.withdraw_uuid,
            external_tx_id=request.external_tx_id,
            expected_stage=request.expected_stage,
        )
        return pb.CompleteWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def FailWithdrawal(
        self, request: pb.FailWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.FailWithdrawalResponse:
        withdrawal = stepping.fail_withdrawal(
            self._deps,
            withdraw_uuid=request.withdraw_uuid,
            substatus=request.substatus,
            expected_stage=request.expected_stage,
        )
        return pb.FailWithdrawalResponse(withdrawal=withdrawal_to_message(withdrawal))

    def CancelWithdrawal(
        self, request: pb.CancelWithdrawalRequest, context: grpc.ServicerContext
    ) -> pb.CancelWithdrawalResponse:
        withdrawal = stepping.cancel_withdrawal(
            self._deps,
            withdraw_uuid=request.withdraw_uuid,
            by_user=request.by_user,
            expected_stage=request.expected_stage,
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

    def ListTransfers(
        self, request: pb.ListTransfersRequest, context: grpc.ServicerContext
    ) -> pb.ListTransfersResponse:
        found = statements.list_transfers(
            self._deps,
            merchant_id=request.merchant_id,
            invoice_id=request.invoice_id,
            withdraw_uuid=request.withdraw_uuid,
            created_from=optional_datetime(request, "created_from"),
            created_before=optional_datetime(request, "created_before"),
            after_transfer_id=request.after_transfer_id,
            limit=request.limit,
            with_balances=request.with_balances,
            after_balance=held_from_message(request),
        )
        return pb.ListTransfersResponse(transfers=[entry_to_message(each) for each in found])

    def GetStatement(
        self, request: pb.GetStatementRequest, context: grpc.ServicerContext
    ) -> pb.GetStatementResponse:
        found = statements.get_statement(
            self._deps,
            merchant_id=request.merchant_id,
            created_from=optional_datetime(request, "created_from"),
            created_before=optional_datetime(request, "created_before"),
        )
        return pb.GetStatementResponse(
            opening=held_to_message(found.opening),
            sums=[transfer_sum_to_message(each) for each in found.sums],
            closing=held_to_message(found.closing),
            crossing=crossing_to_message(found.crossing),
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
