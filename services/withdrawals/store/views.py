"""The results of queries, as operations and messages see them: values, which change nothing in the database."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from services.withdrawals.domain import (
    CorrectionKind,
    RefundOrigin,
    RefundStatus,
    State,
    TransferKind,
    WithdrawalStatus,
)


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
class CorrectionView:
    """A change of a merchant's money beside invoices and withdrawals; `owed` is the part that became a debt."""

    id: UUID
    kind: CorrectionKind
    merchant_id: UUID
    invoice_id: UUID | None
    case_number: int | None
    amount: Decimal
    owed: Decimal
    received_amount: Decimal | None
    currency_code: str | None
    conversion_rate: Decimal | None
    reason: str
    evidence: str
    request_key: UUID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RefundView:
    """Fiat that goes back to a customer; `amount` is the merchant's USDT that it takes."""

    id: UUID
    merchant_id: UUID
    invoice_id: UUID
    external_id: str
    origin: RefundOrigin
    case_number: int | None
    refund_amount: Decimal
    currency_code: str
    amount: Decimal
    conversion_rate: Decimal
    reason: str
    status: RefundStatus
    account_kind: str | None
    account: str | None
    holder: str | None
    bank: str | None
    account_by_customer: bool
    bank_reference: str | None
    failure: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Debt:
    """The debt of a merchant, and when it last grew."""

    merchant_id: UUID
    owed: Decimal
    since: datetime


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
    """A transfer of a merchant's money: of an invoice, a withdrawal, a correction or a refund."""

    id: UUID
    kind: TransferKind
    merchant_id: UUID
    invoice_id: UUID | None
    withdrawal_id: UUID | None
    correction_id: UUID | None
    refund_id: UUID | None
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
    """The numbers of withdrawals and refunds that wait or are being sent, and of events that were set aside."""

    pending: int
    processing: int
    refunds_ready: int
    refunds_sent: int
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
