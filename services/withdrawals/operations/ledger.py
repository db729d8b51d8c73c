"""The ledger: credits of invoices, balances, and the verification of the books."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sqlalchemy.orm import Session

from kit.base.money import usdt_text
from kit.rpc import values
from services.withdrawals.domain import invoice_credit
from services.withdrawals.events import InvoicePaid
from services.withdrawals.store import checks, ledger, other_days, withdrawals
from services.withdrawals.store.ledger import Balance, Credit
from services.withdrawals.store.views import Backlog, WrongWithdrawal
from services.withdrawals.wiring import Deps

MAX_PROBLEMS: Final = 100
MOST_OF_A_KIND: Final = 20


class CreditDiffers(Exception):
    """An invoice that was credited is announced with another amount or merchant: an operator has to check it."""


def credit_invoice(deps: Deps, tx: Session, paid: InvoicePaid) -> None:
    """Credits the merchant in the consumer's transaction, once per invoice for ever.

    Zero moves nothing: there is no transfer of zero. Raises `CreditDiffers`.
    """
    if paid.merchant_usdt > 0:
        movement, now = invoice_credit(paid.invoice_id, paid.merchant_usdt), deps.clock.now()
        if ledger.credit_once(tx, paid.merchant_id, movement, at=now):
            other_days.keep(
                tx,
                invoice_id=paid.invoice_id,
                merchant_id=paid.merchant_id,
                amount=paid.merchant_usdt,
                paid_at=paid.paid_at,
                credited_at=now,
            )
            return
    confirm_credit(tx, paid)


def confirm_credit(tx: Session, paid: InvoicePaid) -> None:
    """Raises `CreditDiffers` unless the invoice has exactly this credit, or none when the amount is zero."""
    credit = ledger.credit(tx, paid.invoice_id)
    expected = Credit(paid.invoice_id, paid.merchant_id, paid.merchant_usdt) if paid.merchant_usdt else None
    if credit != expected:
        raise CreditDiffers(f"announced {paid}, credited {credit}")


def get_balance(deps: Deps, *, merchant_id: str) -> Balance:
    """Returns the merchant's balance; zeros for an unknown merchant."""
    with deps.db.autocommit() as connection:
        return ledger.balance(connection, values.uuid("merchant_id", merchant_id))


def list_credits(deps: Deps, *, after_invoice_id: str, limit: int) -> Sequence[Credit]:
    """Credits in the order of invoice ids; from the start when `after_invoice_id` is empty."""
    after = values.uuid("after_invoice_id", after_invoice_id) if after_invoice_id else None
    limit = values.whole_number("limit", limit, least=1, most=values.LIST_MOST_ROWS)
    with deps.db.transaction() as tx:
        return ledger.credits_after(tx, after, limit=limit)


@dataclass(frozen=True)
class Report:
    """The result of CheckLedger; the books are right when there are no problems."""

    transfers: int
    accounts: int
    sum: Decimal
    problems: Sequence[str]


def check_ledger(deps: Deps) -> Report:
    """Checks the whole ledger and all withdrawals at one moment. Each problem is a sentence; 20 of each kind are
    listed.
    """
    with deps.db.transaction() as tx:
        checks.begin_snapshot(tx)
        checks.allow_long_statements(tx)
        totals = checks.totals(tx)
        kinds = (
            _sum_problems(totals.sum),
            _balance_problems(tx),
            _overdrawn_problems(tx),
            _credit_problems(tx),
            _transfer_problems(tx),
            _step_problems(checks.wrong_withdrawals(tx, limit=MAX_PROBLEMS), "no withdrawal's status"),
            _step_problems(checks.wrong_corrections(tx, limit=MAX_PROBLEMS), "no correction"),
            _step_problems(checks.wrong_refunds(tx, limit=MAX_PROBLEMS), "no refund's status"),
            checks.references_twice(tx, limit=MAX_PROBLEMS),
            checks.wrong_times(tx, limit=MAX_PROBLEMS),
            checks.wrong_debts(tx, limit=MAX_PROBLEMS),
            _day_problems(tx),
            _other_day_problems(tx),
        )
    problems = [each for kind in kinds for each in _some(kind)]
    return Report(totals.transfers, totals.accounts, totals.sum, problems)


def _some(problems: Sequence[str]) -> Sequence[str]:
    """Returns the first problems of one kind and the number of the others, so that they do not hide other kinds."""
    left = len(problems) - MOST_OF_A_KIND
    return (
        problems if left <= 0 else [*problems[:MOST_OF_A_KIND], f"{left} or more like the last are left out."]
    )


def _sum_problems(total: Decimal) -> list[str]:
    return [f"All accounts together hold {usdt_text(total)}, not zero."] if total else []


def _balance_problems(tx: Session) -> list[str]:
    return [
        f"Account {row.id} ({row.kind} of merchant {row.merchant_id}) holds {usdt_text(row.balance)},"
        f" its transfers add up to {usdt_text(row.moved)}."
        for row in checks.wrong_balances(tx, limit=MAX_PROBLEMS)
    ]


def _day_problems(tx: Session) -> list[str]:
    return [
        f"Account {row.id} ({row.kind} of merchant {row.merchant_id}) held {usdt_text(row.balance)} at the end of"
        f" {row.day}, its transfers up to then add up to {usdt_text(row.moved)}."
        for row in checks.wrong_days(tx, limit=MAX_PROBLEMS)
    ]


def _other_day_problems(tx: Session) -> list[str]:
    return [
        f"The statement has a payment of {usdt_text(amount)} for invoice {invoice_id} on another day than its credit,"
        " but there is no such credit."
        for invoice_id, amount in checks.wrong_other_days(tx, limit=MAX_PROBLEMS)
    ]


def _credit_problems(tx: Session) -> list[str]:
    return [
        f"Transfer {row.reference} goes from {row.debit} to {row.credit}, not from settlement to a merchant."
        for row in checks.wrong_credits(tx, limit=MAX_PROBLEMS)
    ]


def _overdrawn_problems(tx: Session) -> list[str]:
    return [
        f"Account {row.id} ({row.kind} of merchant {row.merchant_id}) holds {usdt_text(row.balance)}, below zero."
        for row in checks.overdrawn(tx, limit=MAX_PROBLEMS)
    ]


def _transfer_problems(tx: Session) -> list[str]:
    return [
        f"Transfer {reference} {wrong}."
        for reference, wrong in checks.wrong_transfers(tx, limit=MAX_PROBLEMS)
    ]


def _step_problems(found: Sequence[WrongWithdrawal], fits: str) -> list[str]:
    problems = []
    for wrong in found:
        due, done = (None if each is None else usdt_text(each) for each in (wrong.due, wrong.done))
        if due is None:
            problems.append(f"Transfer {wrong.reference} of {done} fits {fits}.")
        elif done is None:
            problems.append(f"Transfer {wrong.reference} of {due} is missing.")
        else:
            problems.append(
                f"Transfer {wrong.reference} moved {done} where {due} were due, or between other accounts."
            )
    return problems


def backlog(deps: Deps) -> Backlog:
    """Counts the withdrawals that wait to be sent or are being sent, and the parked events."""
    with deps.db.autocommit() as connection:
        return withdrawals.backlog(connection)
