"""The statement of a merchant: the ledger's transfers with the balance after each, and their sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from kit.rpc import values
from kit.rpc.errors import Refused
from services.withdrawals.domain import Held, references_of
from services.withdrawals.store import checks, other_days, statements
from services.withdrawals.store.other_days import Crossing
from services.withdrawals.store.statements import MerchantAccounts, Place, Span
from services.withdrawals.store.views import TransferSum, TransferView
from services.withdrawals.wiring import Deps

CLOCKS_DIFFER: Final = timedelta(minutes=5)
"""No transfer has a time that is later than this after the time of another process."""
_NOTHING = Held(Decimal(0), Decimal(0))


@dataclass(frozen=True)
class Entry:
    """A transfer, and the merchant's money after it if that was asked for."""

    transfer: TransferView
    after: Held | None


@dataclass(frozen=True)
class Statement:
    """A merchant's money before a span of time, the sums of the transfers in it, and the money after it.

    crossing  the credits that a report counts on the other side of the ends of the span
    """

    opening: Held
    sums: Sequence[TransferSum]
    closing: Held
    crossing: Crossing


def list_transfers(
    deps: Deps,
    *,
    merchant_id: str,
    invoice_id: str,
    withdraw_uuid: str,
    created_from: datetime | None,
    created_before: datetime | None,
    after_transfer_id: str,
    limit: int,
    with_balances: bool,
    after_balance: Held | None,
) -> Sequence[Entry]:
    """Returns the transfers that have all given ids, oldest first."""
    merchant = values.uuid("merchant_id", merchant_id) if merchant_id else None
    if not (merchant_id or invoice_id or withdraw_uuid):
        raise values.invalid("merchant_id", "Expected a merchant, an invoice or a withdrawal")
    after_id = values.uuid("after_transfer_id", after_transfer_id) if after_transfer_id else None
    limit = values.rows(limit)
    with deps.db.transaction() as tx:
        checks.begin_snapshot(tx)
        references = _references(tx, invoice_id, withdraw_uuid)
        span = _span(created_from, created_before)
        accounts = None if merchant is None else statements.accounts_of(tx, merchant)
        if after_id is not None:
            if merchant is not None and accounts is None:  # it has no transfer, so this one is another's
                raise _no_such_transfer()
            span = Span(_place(tx, after_id, accounts), span.before)
        if references is not None:
            found = statements.of_references(tx, references, span, limit=limit)
            found = [each for each in found if merchant in (None, each.merchant_id)]
            return [Entry(each, _held_after(tx, each) if with_balances else None) for each in found]
        if accounts is None:
            return []
        found = statements.of_merchant(tx, accounts, span, limit=limit)
        if not with_balances:
            return [Entry(each, None) for each in found]
        if after_id is None or after_balance is None:
            after_balance = _held_before(tx, accounts, found)
        return _running(after_balance, found)


def get_statement(
    deps: Deps, *, merchant_id: str, created_from: datetime | None, created_before: datetime | None
) -> Statement:
    """Returns the sums of a span of time; zeros for an unknown merchant."""
    merchant = values.uuid("merchant_id", merchant_id)
    span = _span(created_from, created_before)
    with deps.db.transaction() as tx:
        checks.begin_snapshot(tx)
        accounts = statements.accounts_of(tx, merchant)
        if accounts is None:
            return Statement(_NOTHING, [], _NOTHING, Crossing(Decimal(0), Decimal(0), ()))
        sums = statements.sums_of(tx, accounts, span)
        end = None if span.before is None or _is_to_come(deps, span.before) else span.before
        closing = accounts.held if end is None else statements.held_after(tx, accounts, end)
        opening = _NOTHING if span.after is None else statements.held_after(tx, accounts, span.after)
        crossing = other_days.crossing(tx, merchant, since=created_from, until=created_before)
    return Statement(opening, sums, closing, crossing)


def _is_to_come(deps: Deps, place: Place) -> bool:
    return place.at > deps.clock.now() + CLOCKS_DIFFER


def _references(tx: Session, invoice_id: str, withdraw_uuid: str) -> list[str] | None:
    """Returns the references of the transfers of the invoice, with its corrections and refunds, or of the withdrawal;
    None when none is given.
    """
    if not (invoice_id or withdraw_uuid):
        return None
    of_invoice, of_withdrawal = set[str](), set[str]()
    if invoice_id:
        of_invoice = set(statements.references_of_invoice(tx, values.uuid("invoice_id", invoice_id)))
    if withdraw_uuid:
        of_withdrawal = set(references_of(values.uuid("withdraw_uuid", withdraw_uuid)))
    return sorted(of_invoice & of_withdrawal if invoice_id and withdraw_uuid else of_invoice | of_withdrawal)


def _span(created_from: datetime | None, created_before: datetime | None) -> Span:
    return Span(
        None if created_from is None else Place(created_from),
        None if created_before is None else Place(created_before),
    )


def _place(tx: Session, transfer_id: UUID, accounts: MerchantAccounts | None) -> Place:
    place = statements.place_of(tx, transfer_id, accounts)
    if place is None:
        raise _no_such_transfer()
    return place


def _no_such_transfer() -> Refused:
    return values.invalid("after_transfer_id", "No transfer has this id")


def _held_after(tx: Session, transfer: TransferView) -> Held:
    accounts = statements.accounts_of(tx, transfer.merchant_id)
    if accounts is None:
        raise LookupError(f"merchant {transfer.merchant_id} has a transfer and no accounts")
    return statements.held_after(tx, accounts, Place(transfer.created_at, transfer.id))


def _held_before(tx: Session, accounts: MerchantAccounts, found: Sequence[TransferView]) -> Held:
    """Returns the money before the first of these transfers."""
    if not found:
        return accounts.held
    first = found[0]
    after = statements.held_after(tx, accounts, Place(first.created_at, first.id))
    return after.after(first.kind, -first.amount)


def _running(held: Held, found: Sequence[TransferView]) -> list[Entry]:
    entries = []
    for each in found:
        held = held.after(each.kind, each.amount)
        entries.append(Entry(each, held))
    return entries
