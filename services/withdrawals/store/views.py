"""The results of queries, as operations and messages see them: values, which change nothing in the database."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from services.withdrawals.domain import State, TransferKind, WithdrawalStatus


@dataclass(frozen=True, slots=True)
class MethodView:
    """A way to withdraw; fee and least amount in USDT."""

    id: int
    code: str
    network: str
    name: str
    network_fee: Decimal
    min_amount: Decimal
    memo_allowed: bool
    enabled: bool


@dataclass(frozen=True, slots=True)
class WithdrawalView:
    """A withdrawal; amounts in USDT, network and fee are those of its creation."""

    id: UUID
    merchant_id: UUID
    request_key: UUID
    method_id: int
    network: str
    address: str
    address_memo: str | None
    amount: Decimal
    network_fee: Decimal
    status: WithdrawalStatus
    substatus: str | None
    external_tx_id: str | None
    created_at: datetime
    updated_at: datetime
    processed_at: datetime | None

    @property
    def state(self) -> State:
        return State(self.status, self.substatus)


@dataclass(frozen=True, slots=True)
class AddressView:
    """An entry of a merchant's address book. It may be used from `usable_at` on, until it is removed."""

    id: UUID
    merchant_id: UUID
    method_id: int
    network: str
    address: str
    address_memo: str | None
    name: str
    added_by: str
    created_at: datetime
    usable_at: datetime
    removed_at: datetime | None


@dataclass(frozen=True, slots=True)
class TransferView:
    """A transfer of a merchant's money: a credit of an invoice, or a step of a withdrawal."""

    id: UUID
    kind: TransferKind
    merchant_id: UUID
    invoice_id: UUID | None
    withdrawal_id: UUID | None
    amount: Decimal
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TransferSum:
    """The number of transfers of one kind, and the sum of their amounts."""

    kind: TransferKind
    count: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Backlog:
    """The numbers of withdrawals that wait to be sent or are being sent, and of events that were set aside."""

    pending: int
    processing: int
    parked: int


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers of transfers and accounts, and the sum of all balances."""

    transfers: int
    accounts: int
    sum: Decimal


@dataclass(frozen=True, slots=True)
class WrongDay:
    """A balance at the end of a day that is not what the transfers up to then add up to."""

    id: int
    kind: str
    merchant_id: UUID
    day: date
    balance: Decimal
    moved: Decimal


@dataclass(frozen=True, slots=True)
class WrongBalance:
    """An account whose `balance` differs from the sum of its transfers, `moved`."""

    id: int
    kind: str
    merchant_id: UUID
    balance: Decimal
    moved: Decimal


@dataclass(frozen=True, slots=True)
class WrongCredit:
    """A transfer of an invoice that does not lead from settlement to a merchant, with the kinds of its accounts."""

    reference: str
    debit: str
    credit: str


@dataclass(frozen=True, slots=True)
class WrongWithdrawal:
    """A transfer of a withdrawal: the amount that is `due` by the status differs from `done`, or other accounts were
    used. `due` is None for a transfer that should not exist, `done` for a missing one.
    """

    reference: str
    due: Decimal | None
    done: Decimal | None
