"""The states of a withdrawal and the money that each step moves, as tables (docs/api.md#withdrawal-status)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID

# Far more than all USDT in existence, far less than a balance column holds.
MAX_AMOUNT: Final = Decimal(10) ** 12
MAX_ADDRESS_CHARACTERS: Final = 128
METHOD_NAME_MAX_CHARACTERS: Final = 128
# The space beside the opcode in one cell of a TON transfer.
MAX_MEMO_CHARACTERS: Final = 120
MAX_TX_ID_CHARACTERS: Final = 128
ADDRESS_NAME_MAX_CHARACTERS: Final = 64
ADDRESSES_MOST: Final = 100
"""Addresses in the book of one merchant."""
ADDRESSES_PER_DAY_MOST: Final = 20
"""Addresses that one merchant may add in 24 hours, removed ones included."""


# -- the life of a withdrawal


class WithdrawalStatus(StrEnum):
    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class State:
    """A status with its substatus; null where the status has none."""

    status: WithdrawalStatus
    substatus: str | None = None

    def __str__(self) -> str:
        return f"{self.status} ({self.substatus})" if self.substatus else str(self.status)


PENDING: Final = State(WithdrawalStatus.PENDING)
PROCESSING: Final = State(WithdrawalStatus.PENDING, "processing")
SUCCESS: Final = State(WithdrawalStatus.SUCCESS)
FAILED: Final = State(WithdrawalStatus.FAILED, "failed")
INVALID_ADDRESS: Final = State(WithdrawalStatus.FAILED, "invalid_address")
UNKNOWN: Final = State(WithdrawalStatus.FAILED, "unknown")
CANCELLED_BY_USER: Final = State(WithdrawalStatus.CANCELLED, "cancelled_by_user")
CANCELLED_BY_ADMIN: Final = State(WithdrawalStatus.CANCELLED, "cancelled_by_admin")


class Stage(StrEnum):
    """The operator's piles of withdrawals: by what is left to do."""

    REQUESTED = "requested"
    PROCESSING = "processing"
    DONE = "done"


# The states from which each state may be reached. All other steps are refused, so every final state stays.
REACHED_FROM: Final[Mapping[State, frozenset[State]]] = MappingProxyType(
    {
        PENDING: frozenset(),
        PROCESSING: frozenset({PENDING}),
        SUCCESS: frozenset({PENDING, PROCESSING}),
        FAILED: frozenset({PENDING, PROCESSING}),
        INVALID_ADDRESS: frozenset({PENDING, PROCESSING}),
        UNKNOWN: frozenset({PENDING, PROCESSING}),
        CANCELLED_BY_USER: frozenset({PENDING}),
        CANCELLED_BY_ADMIN: frozenset({PENDING, PROCESSING}),
    }
)
FAILURES: Final[Mapping[str, State]] = MappingProxyType(
    {state.substatus or "": state for state in (FAILED, INVALID_ADDRESS, UNKNOWN)}
)


def may_become(current: State, target: State) -> bool:
    """Returns whether the table has this step. A state is no step to itself: the caller recognises repeated steps."""
    return current in REACHED_FROM[target]


# -- the money it moves


class AccountKind(StrEnum):
    """Accounts of the ledger. Each merchant has the first two; the others exist once."""

    AVAILABLE = "merchant_available"
    RESERVED = "merchant_reserved"
    # The source of credits: its balance is minus everything that was ever credited.
    SETTLEMENT = "settlement"
    PAID_OUT = "paid_out"
    FEES = "fees"


FIRST_METHODS: Final = tuple(
    {
        "id": str(id),
        "code": f"USDT-{network}",
        "network": network,
        "name": f"USDT on {name}",
        "network_fee": fee,
        "min_amount": least,
        "memo_allowed": memo,
        "enabled": "yes",
    }
    for id, network, name, fee, least, memo in (
        (1, "TRC20", "Tron", "1", "5", "no"),
        (2, "ERC20", "Ethereum", "5", "20", "no"),
        (3, "TON", "TON", "0.5", "2", "yes"),
        (4, "BEP20", "BNB Smart Chain", "0.5", "5", "no"),
        (5, "POLYGON", "Polygon", "0.5", "5", "no"),
    )
)
"""The withdrawal methods that the first migration makes, as acts write values: no act is older than these."""


MERCHANT_KINDS: Final = (AccountKind.AVAILABLE, AccountKind.RESERVED)


@dataclass(frozen=True)
class Movement:
    """An amount above zero that leaves `debit` and arrives at `credit`, once per reference for ever."""

    reference: str
    debit: AccountKind
    credit: AccountKind
    amount: Decimal


class TransferKind(StrEnum):
    """The purposes of transfers of a merchant's money. Those of withdrawals are the ends of the references."""

    CREDIT = "credit"
    RESERVE = "reserve"
    PAY = "pay"
    FEE = "fee"
    RELEASE = "release"


STEPS: Final = tuple(kind for kind in TransferKind if kind is not TransferKind.CREDIT)

# The change of a merchant's available and reserved money by one USDT of each kind.
EFFECTS: Final[Mapping[TransferKind, tuple[int, int]]] = MappingProxyType(
    {
        TransferKind.CREDIT: (1, 0),
        TransferKind.RESERVE: (-1, 1),
        TransferKind.PAY: (0, -1),
        TransferKind.FEE: (0, -1),
        TransferKind.RELEASE: (1, -1),
    }
)


@dataclass(frozen=True)
class Held:
    """A merchant's money at one moment, in USDT: what can be withdrawn, and what is held for pending withdrawals."""

    available: Decimal
    reserved: Decimal

    def after(self, kind: TransferKind, amount: Decimal) -> "Held":
        """Returns the money after transfers of one kind, which moved `amount` together."""
        available, reserved = EFFECTS[kind]
        return Held(self.available + available * amount, self.reserved + reserved * amount)


def invoice_credit(invoice_id: UUID, merchant_usdt: Decimal) -> Movement:
    """Returns the movement of a successful invoice."""
    return Movement(f"invoice:{invoice_id}", AccountKind.SETTLEMENT, AccountKind.AVAILABLE, merchant_usdt)


def references_of(withdrawal_id: UUID) -> list[str]:
    """Returns the references that a withdrawal's transfers can have."""
    return [f"withdrawal:{withdrawal_id}:{step}" for step in STEPS]


def withdrawal_movements(
    withdrawal_id: UUID, status: WithdrawalStatus, *, amount: Decimal, network_fee: Decimal
) -> Sequence[Movement]:
    """Returns a withdrawal's movements on reaching `status`: the whole amount is held first, then paid out or given
    back.
    """
    available, reserved = AccountKind.AVAILABLE, AccountKind.RESERVED
    legs = {
        WithdrawalStatus.PENDING: [("reserve", available, reserved, amount)],
        WithdrawalStatus.SUCCESS: [
            ("pay", reserved, AccountKind.PAID_OUT, amount - network_fee),
            ("fee", reserved, AccountKind.FEES, network_fee),
        ],
        WithdrawalStatus.FAILED: [("release", reserved, available, amount)],
        WithdrawalStatus.CANCELLED: [("release", reserved, available, amount)],
    }[status]
    return [
        Movement(f"withdrawal:{withdrawal_id}:{name}", debit, credit, moved)
        for name, debit, credit, moved in legs
        if moved > 0  # a method without fee moves none
    ]
