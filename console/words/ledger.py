"""The kinds of transfers of a merchant's money: their words, and what each changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb


@dataclass(frozen=True)
class Kind:
    """changes  what one USDT of it adds to each of `BALANCES`; 0: it does not touch that one"""

    words: str
    changes: tuple[int, int, int]


BALANCES: Final = ("available", "reserved", "owed")
KINDS: Final[Mapping[int, Kind]] = {
    pb.TRANSFER_KIND_CREDIT: Kind("Paid invoice", (1, 0, 0)),
    pb.TRANSFER_KIND_RESERVE: Kind("Held for a withdrawal", (-1, 1, 0)),
    pb.TRANSFER_KIND_PAY: Kind("Withdrawal sent", (0, -1, 0)),
    pb.TRANSFER_KIND_FEE: Kind("Network fee", (0, -1, 0)),
    pb.TRANSFER_KIND_RELEASE: Kind("Withdrawal failed or canceled", (1, -1, 0)),
    pb.TRANSFER_KIND_CORRECTION_CREDIT: Kind("Credited by the operator", (1, 0, 0)),
    pb.TRANSFER_KIND_CORRECTION_DEBIT: Kind("Taken back by the operator", (-1, 0, 0)),
    pb.TRANSFER_KIND_OWED: Kind("Became a debt", (0, 0, 1)),
    pb.TRANSFER_KIND_DEBT_PAID: Kind("Paid the debt", (-1, 0, -1)),
    pb.TRANSFER_KIND_REFUND_RESERVE: Kind("Held for a refund", (-1, 1, 0)),
    pb.TRANSFER_KIND_REFUND_PAY: Kind("Refunded to the customer", (0, -1, 0)),
    pb.TRANSFER_KIND_REFUND_RELEASE: Kind("Refund failed or canceled", (1, -1, 0)),
}


def transfer_words(row: pb.Transfer | pb.TransferSum) -> str:
    """Returns the kind of the transfer, as people read it."""
    return KINDS[row.kind].words


def changes_of(row: pb.Transfer | pb.TransferSum) -> Sequence[str]:
    """Returns the signed change of each of `BALANCES`; empty for one that the transfer does not touch."""
    signs = {1: "", -1: "-"}
    return [f"{signs[each]}{row.amount}" if each else "" for each in KINDS[row.kind].changes]
