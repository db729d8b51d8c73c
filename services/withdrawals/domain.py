"""The states of a withdrawal and the money that each step moves, as tables (docs/api.md#withdrawal-status)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Decimal, localcontext
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
    """Accounts of the ledger. Each merchant has the first three; the others exist once."""

    AVAILABLE = "merchant_available"
    RESERVED = "merchant_reserved"
    # The debt of the merchant: it grows when it is debited. Each transfer to `available` pays it first.
    OWED = "merchant_owed"
    # The source of credits: its balance is minus everything that was ever credited and not taken back.
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


MERCHANT_KINDS: Final = (AccountKind.AVAILABLE, AccountKind.RESERVED, AccountKind.OWED)


@dataclass(frozen=True)
class Movement:
    """An amount above zero that leaves `debit` and arrives at `credit`, once per reference for ever."""

    reference: str
    debit: AccountKind
    credit: AccountKind
    amount: Decimal


class TransferKind(StrEnum):
    """The purposes of transfers of a merchant's money."""

    CREDIT = "credit"
    RESERVE = "reserve"
    PAY = "pay"
    FEE = "fee"
    RELEASE = "release"
    CORRECTION_CREDIT = "correction_credit"
    CORRECTION_DEBIT = "correction_debit"
    OWED = "owed"
    DEBT_PAID = "debt_paid"
    REFUND_RESERVE = "refund_reserve"
    REFUND_PAY = "refund_pay"
    REFUND_RELEASE = "refund_release"


STEPS: Final = (TransferKind.RESERVE, TransferKind.PAY, TransferKind.FEE, TransferKind.RELEASE)
"""Those of withdrawals: the ends of their references."""

# The change of a merchant's available, reserved and owed money by one USDT of each kind.
EFFECTS: Final[Mapping[TransferKind, tuple[int, int, int]]] = MappingProxyType(
    {
        TransferKind.CREDIT: (1, 0, 0),
        TransferKind.RESERVE: (-1, 1, 0),
        TransferKind.PAY: (0, -1, 0),
        TransferKind.FEE: (0, -1, 0),
        TransferKind.RELEASE: (1, -1, 0),
        TransferKind.CORRECTION_CREDIT: (1, 0, 0),
        TransferKind.CORRECTION_DEBIT: (-1, 0, 0),
        TransferKind.OWED: (0, 0, 1),
        TransferKind.DEBT_PAID: (-1, 0, -1),
        TransferKind.REFUND_RESERVE: (-1, 1, 0),
        TransferKind.REFUND_PAY: (0, -1, 0),
        TransferKind.REFUND_RELEASE: (1, -1, 0),
    }
)


@dataclass(frozen=True)
class Held:
    """A merchant's money at one moment, in USDT: what can be withdrawn, what is held for pending withdrawals and
    refunds, and what the merchant owes.
    """

    available: Decimal
    reserved: Decimal
    owed: Decimal = Decimal(0)

    def after(self, kind: TransferKind, amount: Decimal) -> "Held":
        """Returns the money after transfers of one kind, which moved `amount` together."""
        available, reserved, owed = EFFECTS[kind]
        return Held(
            self.available + available * amount, self.reserved + reserved * amount, self.owed + owed * amount
        )


def invoice_credit(invoice_id: UUID, merchant_usdt: Decimal) -> Movement:
    """Returns the movement of a successful invoice."""
    return Movement(f"invoice:{invoice_id}", AccountKind.SETTLEMENT, AccountKind.AVAILABLE, merchant_usdt)


def references_of(withdrawal_id: UUID) -> list[str]:
    """Returns the references that a withdrawal's transfers can have."""
    own = [f"withdrawal:{withdrawal_id}:{step}" for step in STEPS]
    return [*own, f"debt:withdrawal:{withdrawal_id}:release"]


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


# -- corrections


class CorrectionKind(StrEnum):
    """The reasons for a change beside invoices and withdrawals (docs/operators.md)."""

    REVERSAL = "reversal"
    LATE_CREDIT = "late_credit"
    SURPLUS = "surplus"
    MANUAL_CREDIT = "manual_credit"
    MANUAL_DEBIT = "manual_debit"


DEBITS: Final = frozenset({CorrectionKind.REVERSAL, CorrectionKind.MANUAL_DEBIT})
MANUAL: Final = frozenset({CorrectionKind.MANUAL_CREDIT, CorrectionKind.MANUAL_DEBIT})
OF_RECEIVED_MONEY: Final = frozenset({CorrectionKind.LATE_CREDIT, CorrectionKind.SURPLUS})
UNPAID: Final = frozenset({"fail", "expired", "canceled"})
"""The statuses of invoices that ended without success, as the API writes them."""
ALWAYS_BY_TWO: Final = frozenset({CorrectionKind.REVERSAL, *MANUAL})


def correction_movements(
    correction_id: UUID, kind: CorrectionKind, *, amount: Decimal, owed: Decimal
) -> Sequence[Movement]:
    """Returns the movements of a correction: the part of a debit that is not available becomes a debt."""
    reference, settlement = f"correction:{correction_id}", AccountKind.SETTLEMENT
    if kind not in DEBITS:
        return [Movement(reference, settlement, AccountKind.AVAILABLE, amount)]
    both = [
        Movement(reference, AccountKind.AVAILABLE, settlement, amount - owed),
        Movement(f"{reference}:owed", AccountKind.OWED, settlement, owed),
    ]
    return [each for each in both if each.amount > 0]


# -- refunds


class RefundStatus(StrEnum):
    WAITING_FOR_ACCOUNT = "waiting_for_account"
    READY = "ready"
    SENT = "sent"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class RefundOrigin(StrEnum):
    """The money that goes back: credited to the merchant, or never credited as it came late or beyond the amount."""

    CREDITED = "credited"
    LATE = "late"
    SURPLUS = "surplus"


ACCOUNT_WAITS_DAYS: Final = 14
"""Days without an account after which people are reminded that a refund holds money: within as many a shop in the
European Union has to pay back (Directive 2011/83/EU, article 13).
"""
OPEN_REFUNDS: Final = frozenset({RefundStatus.WAITING_FOR_ACCOUNT, RefundStatus.READY, RefundStatus.SENT})
REFUND_REACHED_FROM: Final[Mapping[RefundStatus, frozenset[RefundStatus]]] = MappingProxyType(
    {
        RefundStatus.READY: frozenset({RefundStatus.WAITING_FOR_ACCOUNT}),
        RefundStatus.SENT: frozenset({RefundStatus.READY}),
        RefundStatus.SUCCEEDED: frozenset({RefundStatus.SENT}),
        RefundStatus.FAILED: OPEN_REFUNDS,
        RefundStatus.CANCELED: frozenset({RefundStatus.WAITING_FOR_ACCOUNT, RefundStatus.READY}),
    }
)


_UNIT: Final = Decimal(1).scaleb(-6)


def refund_takes(fiat: Decimal, *, rate: Decimal) -> Decimal:
    """Returns the USDT that a refund takes when the operator keeps the commission, rounded up."""
    with localcontext(prec=60):
        return (fiat / rate).quantize(_UNIT, ROUND_UP)


def refund_takes_part(fiat: Decimal, *, paid: Decimal, credited: Decimal) -> Decimal:
    """Returns the USDT that a refund takes when the commission is returned: the part of what was credited, rounded
    up.
    """
    with localcontext(prec=60):
        return min((fiat * credited / paid).quantize(_UNIT, ROUND_UP), credited)


def refund_affordable(available: Decimal, *, fiat: Decimal, takes: Decimal, places: int) -> Decimal:
    """Returns the part of the fiat for which the available USDT is enough, when all of it takes `takes`; rounded
    down.
    """
    if takes <= available:
        return fiat
    with localcontext(prec=60):
        return (fiat * available / takes).quantize(Decimal(1).scaleb(-places), ROUND_DOWN)


def refund_movements(refund_id: UUID, status: RefundStatus, *, amount: Decimal) -> Sequence[Movement]:
    """Returns the movement of a refund on reaching `status`, if it has one: the amount is held from the request on."""
    available, reserved = AccountKind.AVAILABLE, AccountKind.RESERVED
    legs = {
        RefundStatus.WAITING_FOR_ACCOUNT: ("reserve", available, reserved),
        RefundStatus.SUCCEEDED: ("pay", reserved, AccountKind.SETTLEMENT),
        RefundStatus.FAILED: ("release", reserved, available),
        RefundStatus.CANCELED: ("release", reserved, available),
    }
    if not amount or status not in legs:
        return []
    name, debit, credit = legs[status]
    return [Movement(f"refund:{refund_id}:{name}", debit, credit, amount)]
