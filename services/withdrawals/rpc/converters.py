"""Values to messages, and back."""

from datetime import datetime
from decimal import Decimal
from typing import Final

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import usdt_text
from kit.base.proto import optional_datetime, timestamp_from
from kit.rpc import values
from kit.rpc.methods import Converters
from services.withdrawals import transactions
from services.withdrawals.domain import Held, Stage, TransferKind, WithdrawalStatus
from services.withdrawals.operations.reading import Wanted
from services.withdrawals.operations.statements import Entry
from services.withdrawals.store.other_days import Crossing
from services.withdrawals.store.views import (
    AddressView,
    MethodView,
    TransferSum,
    TransferView,
    WithdrawalView,
)

_STATUSES = {
    WithdrawalStatus.PENDING: pb.WITHDRAWAL_STATUS_PENDING,
    WithdrawalStatus.SUCCESS: pb.WITHDRAWAL_STATUS_SUCCESS,
    WithdrawalStatus.FAILED: pb.WITHDRAWAL_STATUS_FAILED,
    WithdrawalStatus.CANCELLED: pb.WITHDRAWAL_STATUS_CANCELLED,
}
_STATUS_FILTERS = {pb.WITHDRAWAL_STATUS_UNSPECIFIED: None} | {
    number: status for status, number in _STATUSES.items()
}
_STAGE_FILTERS = {
    pb.WITHDRAWAL_STAGE_UNSPECIFIED: None,
    pb.WITHDRAWAL_STAGE_REQUESTED: Stage.REQUESTED,
    pb.WITHDRAWAL_STAGE_PROCESSING: Stage.PROCESSING,
    pb.WITHDRAWAL_STAGE_DONE: Stage.DONE,
}
_TRANSFER_KINDS: Final = {kind: pb.TransferKind.Value(f"TRANSFER_KIND_{kind.name}") for kind in TransferKind}
_OLDEST_FIRST = {
    pb.SORT_ORDER_UNSPECIFIED: False,
    pb.SORT_ORDER_DESC: False,
    pb.SORT_ORDER_ASC: True,
}


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


def address_to_message(address: AddressView, *, now: datetime) -> pb.WithdrawalAddress:
    return pb.WithdrawalAddress(
        address_id=str(address.id),
        merchant_id=str(address.merchant_id),
        withdrawal_method_id=address.method_id,
        network=address.network,
        address=address.address,
        address_memo=address.address_memo,
        name=address.name,
        added_by=address.added_by,
        created_at=timestamp_from(address.created_at),
        usable_at=timestamp_from(address.usable_at),
        waits=now < address.usable_at,
    )


def entry_to_message(entry: Entry) -> pb.Transfer:
    message = transfer_to_message(entry.transfer)
    if entry.after is not None:
        message.after.CopyFrom(held_to_message(entry.after))
        change = Held(Decimal(0), Decimal(0)).after(entry.transfer.kind, entry.transfer.amount)
        message.change.CopyFrom(held_to_message(change))
    return message


def transfer_to_message(transfer: TransferView) -> pb.Transfer:
    return pb.Transfer(
        transfer_id=str(transfer.id),
        kind=_TRANSFER_KINDS[transfer.kind],
        merchant_id=str(transfer.merchant_id),
        amount=usdt_text(transfer.amount),
        invoice_id=str(transfer.invoice_id or ""),
        withdraw_uuid=str(transfer.withdrawal_id or ""),
        correction_id=str(transfer.correction_id or ""),
        refund_id=str(transfer.refund_id or ""),
        created_at=timestamp_from(transfer.created_at),
    )


def transfer_sum_to_message(sum: TransferSum) -> pb.TransferSum:
    return pb.TransferSum(kind=_TRANSFER_KINDS[sum.kind], count=sum.count, amount=usdt_text(sum.amount))


def crossing_to_message(found: Crossing) -> pb.Crossing:
    return pb.Crossing(
        paid=usdt_text(found.paid),
        credited=usdt_text(found.credited),
        credits=[
            pb.CreditOfOtherDay(
                invoice_id=str(each.invoice_id),
                amount=usdt_text(each.amount),
                paid_at=timestamp_from(each.paid_at),
                credited_at=timestamp_from(each.credited_at),
            )
            for each in found.rows
        ],
    )


def held_to_message(held: Held) -> pb.MerchantBalance:
    return pb.MerchantBalance(
        available=usdt_text(held.available), reserved=usdt_text(held.reserved), owed=usdt_text(held.owed)
    )


def held_from_message(request: pb.ListTransfersRequest) -> Held | None:
    """Returns the balance that a page begins with, if it is given."""
    if not request.HasField("after_balance"):
        return None
    given = request.after_balance
    return Held(
        *(
            values.decimal("after_balance", each)
            for each in (given.available, given.reserved, given.owed or "0")
        )
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
        transaction_pattern=transactions.pattern(method.network),
    )


def status_from_message(status: pb.WithdrawalStatus.ValueType) -> WithdrawalStatus | None:
    """Returns the status; None for UNSPECIFIED, which means all."""
    if status not in _STATUS_FILTERS:
        raise values.query_invalid("status", "Expected pending, success, failed or cancelled")
    return _STATUS_FILTERS[status]


def wanted_from_message(request: pb.ListAllWithdrawalsRequest) -> Wanted:
    return Wanted(
        merchant_id=request.merchant_id,
        status=status_from_message(request.status),
        stage=stage_from_message(request.stage),
        method_id=request.withdrawal_method_id,
        address=request.address,
        external_tx_id=request.external_tx_id,
        amount_from=request.amount_from,
        amount_to=request.amount_to,
        created_from=optional_datetime(request, "created_from"),
        created_before=optional_datetime(request, "created_before"),
    )


def stage_from_message(stage: pb.WithdrawalStage.ValueType) -> Stage | None:
    """Returns the stage; None for UNSPECIFIED, which means all."""
    if stage not in _STAGE_FILTERS:
        raise values.invalid("stage", "Expected requested, processing or done")
    return _STAGE_FILTERS[stage]


def newest_first_from_message(order: pb.SortOrder.ValueType) -> bool:
    if order not in _OLDEST_FIRST:
        raise values.query_invalid("order", "Expected desc or asc")
    return _OLDEST_FIRST[order]


FROM_MESSAGE: Final[Converters] = {
    "fiatgate.withdrawals.v1.WithdrawalStatus": status_from_message,
    "fiatgate.withdrawals.v1.SortOrder": newest_first_from_message,
}
