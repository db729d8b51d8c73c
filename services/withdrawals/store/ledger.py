"""Accounts, transfers and balances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.base.ids import new_id
from kit.db import prepared
from kit.db.database import table_of
from kit.db.prepared import Prepared
from services.withdrawals.domain import MERCHANT_KINDS, AccountKind, Held, Movement
from services.withdrawals.models import Account, Transfer

Accounts = Mapping[AccountKind, int]
"""The ids of the accounts that one merchant's money can move between: its own three and the system's three."""


@dataclass(frozen=True)
class Balance:
    """A merchant's money, present and past, in USDT."""

    available: Decimal
    reserved: Decimal
    withdrawn: Decimal
    owed: Decimal

    @property
    def credited(self) -> Decimal:
        """Everything that ever came in and was not taken back or refunded: it is available, held, or withdrawn, less
        what is owed (CheckLedger verifies this).
        """
        return self.available + self.reserved + self.withdrawn - self.owed


@dataclass(frozen=True)
class Credit:
    """The credit of one invoice."""

    invoice_id: UUID
    merchant_id: UUID
    amount: Decimal


def accounts(tx: Session, merchant_id: UUID) -> Accounts:
    """Returns the accounts of the merchant, made if it had none, and those of the system."""
    found = _find_accounts(tx, merchant_id)
    if not found.keys() >= set(MERCHANT_KINDS):
        own = [{"kind": kind, "merchant_id": merchant_id, "balance": 0} for kind in MERCHANT_KINDS]
        tx.execute(insert(Account).values(own).on_conflict_do_nothing())
        found = _find_accounts(tx, merchant_id)
    return found


_ACCOUNTS = Prepared(
    "accounts_of_merchant",
    "SELECT kind, id FROM accounts WHERE merchant_id = :merchant_id OR merchant_id IS NULL",
    {"merchant_id": "uuid"},
    lambda kind, account_id: (AccountKind(kind), account_id),
)
_TRANSFER = insert(table_of(Transfer))
# Hot: each credit runs it.
_CREDIT_ONCE = Prepared(
    "credit_once",
    """
INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
SELECT :id, :reference, debit.id, credit.id, :amount, :created_at FROM accounts AS debit, accounts AS credit
WHERE debit.kind = :debit AND debit.merchant_id IS NULL
  AND credit.kind = :credit AND credit.merchant_id = :merchant_id
ON CONFLICT (reference) DO NOTHING RETURNING id
""",
    {
        "id": "uuid",
        "reference": "text",
        "debit": "text",
        "credit": "text",
        "merchant_id": "uuid",
        "amount": "numeric",
        "created_at": "timestamptz",
    },
    lambda id: id,
)


def _find_accounts(tx: Session, merchant_id: UUID) -> Accounts:
    return dict(prepared.rows(tx, _ACCOUNTS, {"merchant_id": merchant_id}))


def transfer(tx: Session, among: Accounts, movements: Sequence[Movement], *, at: datetime) -> None:
    """Moves the money. IntegrityError `ck_accounts_balance_not_negative` when there is not enough."""
    tx.execute(_TRANSFER, [_transfer_row(among, movement, at) for movement in movements])


_HELD = "SELECT balance FROM accounts WHERE merchant_id = :merchant_id ORDER BY id"


def locked(tx: Session, merchant_id: UUID) -> Held:
    """Returns the money of the merchant, locked until this transaction ends; makes its accounts if it had none.

    Everything that decides by the money, or by what an invoice may still lose, takes this lock first. Accounts are
    locked in the order of their ids everywhere; those of a merchant are made in the order of `MERCHANT_KINDS`.
    """
    accounts(tx, merchant_id)
    return Held(*tx.scalars(text("SELECT lock_accounts(:merchant_id)"), {"merchant_id": merchant_id}))


def held(tx: Session, merchant_id: UUID) -> Held:
    """Returns the money of the merchant; zeros for one without accounts."""
    found = tx.scalars(text(_HELD), {"merchant_id": merchant_id}).all()
    return Held(*found) if found else Held(Decimal(0), Decimal(0))


def credit_once(tx: Session, merchant_id: UUID, movement: Movement, *, at: datetime) -> bool:
    """Moves the money to the merchant unless a transfer with its reference exists; returns whether it moved."""
    values = {
        "id": new_id(),
        "reference": movement.reference,
        "debit": movement.debit,
        "credit": movement.credit,
        "merchant_id": merchant_id,
        "amount": movement.amount,
        "created_at": at,
    }
    if prepared.rows(tx, _CREDIT_ONCE, values):
        return True
    accounts(tx, merchant_id)  # there are none before its first credit
    return bool(prepared.rows(tx, _CREDIT_ONCE, values))


def _transfer_row(among: Accounts, movement: Movement, at: datetime) -> dict[str, Any]:
    return {
        "id": new_id(),
        "reference": movement.reference,
        "debit_account": among[movement.debit],
        "credit_account": among[movement.credit],
        "amount": movement.amount,
        "created_at": at,
    }


_BALANCE = text("""
SELECT coalesce(sum(balance) FILTER (WHERE kind = 'merchant_available'), 0) AS available,
       coalesce(sum(balance) FILTER (WHERE kind = 'merchant_reserved'), 0) AS reserved,
       coalesce(sum(balance) FILTER (WHERE kind = 'merchant_owed'), 0) AS owed,
       (SELECT coalesce(sum(amount), 0) FROM withdrawals
        WHERE merchant_id = :merchant_id AND status = 'success') AS withdrawn
FROM accounts WHERE merchant_id = :merchant_id
""")


def balance(connection: Connection, merchant_id: UUID) -> Balance:
    """Returns the balance at one moment, because it is one statement; zeros for an unknown merchant."""
    row = connection.execute(_BALANCE, {"merchant_id": merchant_id}).one()
    return Balance(available=row.available, reserved=row.reserved, withdrawn=row.withdrawn, owed=row.owed)


def is_finite(tx: Session, merchant_id: UUID) -> bool:
    """Returns whether the merchant's balances are numbers. NaN and Infinity are above zero after every withdrawal."""
    balances = tx.scalars(select(Account.balance).where(Account.merchant_id == merchant_id))
    return all(each is not None and each.is_finite() for each in balances)


def credit(tx: Session, invoice_id: UUID) -> Credit | None:
    """Returns the credit of the invoice; None when it has none."""
    return next(iter(_credits(tx, Transfer.reference == f"invoice:{invoice_id}", limit=1)), None)


def credits_after(tx: Session, invoice_id: UUID | None, *, limit: int) -> list[Credit]:
    """Returns the next credits after the given invoice id, in the order of invoice ids."""
    after = f"invoice:{invoice_id or ''}"
    is_of_invoice = Transfer.reference.regexp_match("^invoice:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
    return _credits(
        tx, Transfer.reference > after, Transfer.reference < "invoice;", is_of_invoice, limit=limit
    )


def _credits(tx: Session, *which: ColumnElement[bool], limit: int) -> list[Credit]:
    query = (
        select(Transfer.reference, Account.merchant_id, Transfer.amount)
        .join(Account, Account.id == Transfer.credit_account)
        .where(Account.merchant_id.is_not(None), *which)
        .order_by(Transfer.reference)
        .limit(limit)
    )
    return [
        Credit(UUID(reference.removeprefix("invoice:")), merchant_id, amount)
        for reference, merchant_id, amount in tx.execute(query)
        if merchant_id is not None
    ]
