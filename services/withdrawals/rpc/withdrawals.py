"""WithdrawalsService: the methods."""

from dataclasses import fields
from typing import Any, Final

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import usdt_text
from kit.base.proto import optional, optional_datetime
from kit.rpc import values
from kit.rpc.audit import act_to_message
from kit.rpc.methods import Methods, by_name
from services.withdrawals.operations import (
    addresses,
    creating,
    ledger,
    methods,
    movements,
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
    transfer_sum_to_message,
    transfer_to_message,
    wanted_from_message,
    withdrawal_to_message,
)
from services.withdrawals.store.movements import By, Movements
from services.withdrawals.store.views import WithdrawalView
from services.withdrawals.wiring import Deps


def list_all_withdrawals(deps: Deps, request: pb.ListAllWithdrawalsRequest) -> pb.ListAllWithdrawalsResponse:
    found = reading.list_all_withdrawals(
        deps,
        wanted_from_message(request),
        limit=request.limit,
        after_withdraw_uuid=request.after_withdraw_uuid,
        oldest_first=request.oldest_first,
        by_amount=request.by_amount,
    )
    return pb.ListAllWithdrawalsResponse(
        withdrawals=map(withdrawal_to_message, found), by_operator=reading.reasons_of_operators(deps, found)
    )


def get_withdrawal_story(deps: Deps, request: pb.GetWithdrawalStoryRequest) -> pb.GetWithdrawalStoryResponse:
    story = reading.get_withdrawal_story(deps, withdraw_uuid=request.withdraw_uuid)
    return story_as_seen(
        pb.GetWithdrawalStoryResponse(
            withdrawal=withdrawal_to_message(story.withdrawal),
            method=method_to_message(story.method),
            acts=[act_to_message(each, deps.settings.service) for each in story.acts],
            transfers=map(transfer_to_message, story.transfers),
            pending_approval_id=str(story.pending_approval_id or ""),
        )
    )


def set_withdrawal_method(
    deps: Deps, request: pb.SetWithdrawalMethodRequest
) -> pb.SetWithdrawalMethodResponse:
    given = request.method
    method = methods.set_withdrawal_method(
        deps,
        code=given.code,
        network=given.network,
        name=given.name,
        network_fee=given.network_fee,
        min_amount=given.min_amount,
        memo_allowed=given.memo_allowed,
        enabled=given.enabled,
        was={name: getattr(request.was, name) for name in methods.SEEN} if request.HasField("was") else None,
    )
    return pb.SetWithdrawalMethodResponse(method=method_to_message(method))


def list_addresses(deps: Deps, request: pb.ListAddressesRequest) -> pb.ListAddressesResponse:
    found = addresses.list_addresses(deps, merchant_id=request.merchant_id)
    now = deps.clock.now()
    return pb.ListAddressesResponse(
        addresses=[address_to_message(each, now=now) for each in found],
        wait_seconds=deps.settings.address_wait_seconds,
    )


def add_address(deps: Deps, request: pb.AddAddressRequest) -> pb.AddAddressResponse:
    added = addresses.add_address(
        deps,
        merchant_id=request.merchant_id,
        withdrawal_method_id=request.withdrawal_method_id,
        address=request.address,
        address_memo=optional(request, "address_memo"),
        name=request.name,
    )
    return pb.AddAddressResponse(address=address_to_message(added, now=deps.clock.now()))


def get_balance(deps: Deps, request: pb.GetBalanceRequest) -> pb.GetBalanceResponse:
    balance = ledger.get_balance(deps, merchant_id=request.merchant_id)
    return pb.GetBalanceResponse(
        merchant_id=request.merchant_id,
        available=usdt_text(balance.available),
        reserved=usdt_text(balance.reserved),
        credited=usdt_text(balance.credited),
        withdrawn=usdt_text(balance.withdrawn),
        owed=usdt_text(balance.owed),
    )


def list_transfers(deps: Deps, request: pb.ListTransfersRequest) -> pb.ListTransfersResponse:
    found = statements.list_transfers(
        deps,
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
    return pb.ListTransfersResponse(transfers=map(entry_to_message, found))


_BY: Final = {
    pb.MOVEMENTS_BY_UNSPECIFIED: By.DAY,
    **{pb.MovementsBy.Value(f"MOVEMENTS_BY_{each.name}"): each for each in By},
}


def get_movements(deps: Deps, request: pb.GetMovementsRequest) -> pb.GetMovementsResponse:
    if request.by not in _BY:
        raise values.invalid("by", f"Expected one of {', '.join(By)}")
    found = movements.get_movements(
        deps,
        first_day=request.first_day,
        last_day=request.last_day,
        by=_BY[request.by],
        merchant_id=request.merchant_id,
        after_key=request.after_key,
        limit=request.limit,
    )
    sums = [each.name for each in fields(Movements) if each.name != "key"]
    return pb.GetMovementsResponse(
        movements=[
            pb.Movements(key=row.key, **{each: usdt_text(getattr(row, each)) for each in sums})
            for row in found
        ]
    )


def _withdrawal(withdrawal: WithdrawalView) -> dict[str, Any]:
    return {"withdrawal": withdrawal_to_message(withdrawal)}


METHODS: Final[Methods] = {
    "ListWithdrawals": by_name(
        reading.list_withdrawals,
        lambda page: {"withdrawals": map(withdrawal_to_message, page.withdrawals), "total": page.total},
        oldest_first="order",
    ),
    "GetWithdrawal": by_name(reading.get_withdrawal, _withdrawal),
    "ListAllWithdrawals": list_all_withdrawals,
    "GetWithdrawalStory": get_withdrawal_story,
    "ListWithdrawalMethods": by_name(
        methods.list_withdrawal_methods, lambda found: {"methods": map(method_to_message, found)}
    ),
    "SetWithdrawalMethod": set_withdrawal_method,
    "CreateWithdrawal": by_name(creating.create_withdrawal, _withdrawal),
    "CheckAddress": by_name(creating.check_address),
    "RequestWithdrawal": by_name(creating.request_withdrawal, _withdrawal),
    "ListAddresses": list_addresses,
    "AddAddress": add_address,
    "RemoveAddress": by_name(addresses.remove_address),
    "ProcessWithdrawal": by_name(stepping.process_withdrawal, _withdrawal),
    "CompleteWithdrawal": by_name(stepping.complete_withdrawal, _withdrawal),
    "FailWithdrawal": by_name(stepping.fail_withdrawal, _withdrawal),
    "CancelWithdrawal": by_name(stepping.cancel_withdrawal, _withdrawal),
    "GetBalance": get_balance,
    "ListTransfers": list_transfers,
    "GetStatement": by_name(
        statements.get_statement,
        lambda found: {
            "opening": held_to_message(found.opening),
            "sums": map(transfer_sum_to_message, found.sums),
            "closing": held_to_message(found.closing),
            "crossing": crossing_to_message(found.crossing),
        },
    ),
    "GetMovements": get_movements,
    "CheckLedger": by_name(
        ledger.check_ledger,
        lambda report: {
            "transfers": report.transfers,
            "accounts": report.accounts,
            "sum": usdt_text(report.sum),
            "problems": report.problems,
        },
    ),
    "ListCredits": by_name(
        ledger.list_credits,
        lambda found: {
            "credits": [
                pb.Credit(
                    invoice_id=str(each.invoice_id),
                    merchant_id=str(each.merchant_id),
                    amount=usdt_text(each.amount),
                )
                for each in found
            ]
        },
    ),
}
