"""Transfers of one merchant, invoice or withdrawal in the order of time, and sums of them.

Sums read the two indexes by account only. A balance of the past is that of the end of a day with the transfers since,
or that of this moment without the transfers since, so call these functions in one snapshot (`begin_snapshot` of
`checks`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

from services.withdrawals.domain import MERCHANT_KINDS, STEPS, AccountKind, Held, TransferKind
from services.withdrawals.models import NO_CREDIT
from services.withdrawals.store.views import TransferSum, TransferView

_NOTHING: Final = Decimal(0)
_FIRST_ID: Final = UUID(int=0)
_ALWAYS: Final = "-infinity"
_NEVER: Final = "infinity"
_NO_CREDIT: Final = f"({NO_CREDIT})"


@dataclass(frozen=True)
class Place:
    """A place in the order of time and id. The one without a transfer stands before all transfers of its time."""

    at: datetime
    id: UUID = _FIRST_ID


@dataclass(frozen=True)
class Span:
    """The transfers after one place and before another; a null one is no bound."""

    after: Place | None = None
    before: Place | None = None

    def values(self) -> dict[str, Any]:
        """Returns the values of `_IN_SPAN`."""
        after, before = self.after, self.before
        return {
            "after_at": _ALWAYS if after is None else after.at,
            "after_id": _FIRST_ID if after is None else after.id,
            "before_at": _NEVER if before is None else before.at,
            "before_id": _FIRST_ID if before is None else before.id,
        }


@dataclass(frozen=True)
class MerchantAccounts:
    """The ids of a merchant's accounts, and the money in them."""

    available: int
    reserved: int
    owed: int
    held: Held


_ACCOUNTS: Final = text("SELECT kind, id, balance FROM accounts WHERE merchant_id = :merchant_id")
_PLACE: Final = text("SELECT created_at FROM transfers WHERE id = :id")
_OWN_PLACE: Final = text(
    "SELECT created_at FROM transfers WHERE id = :id"
    " AND (credit_account = ANY(:accounts) OR debit_account = ANY(:accounts))"
)
_IN_SPAN: Final = (
    "(created_at, id) > (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid))"
    " AND (created_at, id) < (CAST(:before_at AS timestamptz), CAST(:before_id AS uuid))"
)


def accounts_of(tx: Session, merchant_id: UUID) -> MerchantAccounts | None:
    """Returns the merchant's accounts; None while nothing was ever credited."""
    rows = tx.execute(_ACCOUNTS, {"merchant_id": merchant_id})
    found = {AccountKind(kind): (id, balance) for kind, id, balance in rows if balance is not None}
    if not found:
        return None
    (available, held), (reserved, pending), (owed, debt) = (found[kind] for kind in MERCHANT_KINDS)
    return MerchantAccounts(available, reserved, owed, Held(held, pending, debt))


def place_of(tx: Session, transfer_id: UUID, accounts: MerchantAccounts | None = None) -> Place | None:
    """Returns the place of a transfer; None for an unknown one, and with a merchant's accounts for one of another."""
    if accounts is None:
        at = tx.scalar(_PLACE, {"id": transfer_id})
    else:
        own = [accounts.available, accounts.reserved, accounts.owed]
        at = tx.scalar(_OWN_PLACE, {"id": transfer_id, "accounts": own})
    return None if at is None else Place(at, transfer_id)


def _first(*alternatives: str) -> TextClause:
    """Returns a statement for the first transfers that fit one of the conditions; each is read from its index in
    order, to the limit.
    """
    parts = " UNION ALL ".join(
        "(SELECT id, reference, amount, created_at, debit_account, credit_account FROM transfers"  # noqa: S608  made of constants
        f" WHERE {each} AND {_IN_SPAN} ORDER BY created_at, id LIMIT :limit)"
        for each in alternatives
    )
    return text(
        "SELECT moved.id, reference, coalesce(credit.merchant_id, debit.merchant_id),"  # noqa: S608  made of constants
        " debit.merchant_id IS NULL, amount, created_at"
        f" FROM ({parts}) AS moved JOIN accounts AS debit ON debit.id = debit_account"
        " JOIN accounts AS credit ON credit.id = credit_account ORDER BY created_at, moved.id LIMIT :limit"
    )


_OF_MERCHANT: Final = _first(
    "credit_account = :available",
    f"debit_account = :available AND {_NO_CREDIT}",
    f"debit_account = :reserved AND credit_account <> :available AND {_NO_CREDIT}",
    f"debit_account = :owed AND {_NO_CREDIT}",
)
_OF_REFERENCES: Final = _first("reference = ANY(:references)")


def of_merchant(tx: Session, accounts: MerchantAccounts, span: Span, *, limit: int) -> list[TransferView]:
    """Returns the first transfers of the merchant in the span, oldest first."""
    own = {"available": accounts.available, "reserved": accounts.reserved, "owed": accounts.owed}
    return [_transfer(row) for row in tx.execute(_OF_MERCHANT, {**own, **span.values(), "limit": limit})]


def of_references(tx: Session, references: Sequence[str], span: Span, *, limit: int) -> list[TransferView]:
    """Returns the first transfers with these references in the span, oldest first."""
    values = {"references": list(references), **span.values(), "limit": limit}
    return [_transfer(row) for row in tx.execute(_OF_REFERENCES, values)]


_REFERENCES_OF_INVOICE: Final = text("""
SELECT unnest(ARRAY[whole, 'debt:' || whole]) FROM (
  SELECT 'invoice:' || :invoice_id UNION ALL
  SELECT 'correction:' || id FROM corrections WHERE invoice_id = CAST(:invoice_id AS uuid) UNION ALL
  SELECT 'correction:' || id || '\\:owed' FROM corrections WHERE invoice_id = CAST(:invoice_id AS uuid) UNION ALL
  SELECT 'refund:' || id || ':' || step FROM refunds CROSS JOIN unnest(ARRAY['reserve', 'pay', 'release']) AS step
  WHERE invoice_id = CAST(:invoice_id AS uuid)
) AS moved (whole)
""")


def references_of_invoice(tx: Session, invoice_id: UUID) -> Sequence[str]:
    """Returns the references that transfers of the invoice, its corrections and its refunds can have."""
    return tx.scalars(_REFERENCES_OF_INVOICE, {"invoice_id": str(invoice_id)}).all()


_KINDS: Final[Mapping[tuple[str, str], TransferKind]] = {
    ("invoice", ""): TransferKind.CREDIT,
    ("correction", "owed"): TransferKind.OWED,
    **{("withdrawal", step): step for step in STEPS},
    ("refund", "reserve"): TransferKind.REFUND_RESERVE,
    ("refund", "pay"): TransferKind.REFUND_PAY,
    ("refund", "release"): TransferKind.REFUND_RELEASE,
}


def _transfer(row: Any) -> TransferView:
    id, reference, merchant_id, arrived, amount, created_at = row
    of, _, rest = reference.removeprefix("debt:").partition(":")
    object_id, _, step = rest.partition(":")
    if reference.startswith("debt:"):
        kind = TransferKind.DEBT_PAID
    elif (of, step) == ("correction", ""):
        kind = TransferKind.CORRECTION_CREDIT if arrived else TransferKind.CORRECTION_DEBIT
    else:
        kind = _KINDS[of, step]
    ids = {
        each: UUID(object_id) if each == of else None
        for each in ("invoice", "withdrawal", "correction", "refund")
    }
    return TransferView(
        id=id,
        kind=kind,
        merchant_id=merchant_id,
        invoice_id=ids["invoice"],
        withdrawal_id=ids["withdrawal"],
        correction_id=ids["correction"],
        refund_id=ids["refund"],
        amount=amount,
        created_at=created_at,
    )


def _net(since: str, until: str) -> str:
    """Returns what the transfers after one place and up to another added to the account `given.account`."""
    span = f"(created_at, id) > {since} AND (created_at, id) <= {until}"
    total = "(SELECT coalesce(sum(amount), 0) FROM transfers WHERE"
    return (
        f"{total} credit_account = given.account AND {span})"
        f" - {total} debit_account = given.account AND {_NO_CREDIT} AND {span})"
    )


_AT: Final = "(CAST(:at AS timestamptz), CAST(:id AS uuid))"
_DAY_AFTER: Final = (
    "(coalesce(CAST(last.day + 1 AS timestamp) AT TIME ZONE 'UTC', '-infinity'),"
    " CAST('00000000-0000-0000-0000-000000000000' AS uuid))"
)
_SINCE_DAY: Final = text(f"""
SELECT given.account, coalesce(last.balance, 0) + {_net(_DAY_AFTER, _AT)}
FROM unnest(CAST(:accounts AS integer[])) AS given (account) LEFT JOIN LATERAL (
  SELECT day, balance FROM daily_balances WHERE account = given.account AND day < :day ORDER BY day DESC LIMIT 1
) AS last ON true
WHERE EXISTS (SELECT FROM daily_balances WHERE account = :available)
""")  # noqa: S608  made of constants
"""No row when no day of the first account is closed yet. In an account without a day before, all transfers count."""
_LATER: Final = text(f"""
SELECT given.account, {_net(_AT, "('infinity', CAST(:id AS uuid))")}
FROM unnest(CAST(:accounts AS integer[])) AS given (account)
""")  # noqa: S608  made of constants


def _by_account(tx: Session, statement: TextClause, values: Mapping[str, Any]) -> dict[int, Decimal]:
    return {row[0]: row[1] for row in tx.execute(statement, values)}


def held_after(tx: Session, accounts: MerchantAccounts, place: Place) -> Held:
    """Returns the merchant's money after the transfers up to this place."""
    own = [accounts.available, accounts.reserved, accounts.owed]
    values = {"accounts": own, "at": place.at, "id": place.id}
    day = place.at.astimezone(UTC).date()
    found = _by_account(tx, _SINCE_DAY, {**values, "available": accounts.available, "day": day})
    if not found:
        now = accounts.held
        later = _by_account(tx, _LATER, values)
        found = {
            id: balance - later[id]
            for id, balance in zip(own, (now.available, now.reserved, -now.owed), strict=True)
        }
    return Held(found[own[0]], found[own[1]], -found[own[2]])


_ARRIVED: Final = text(
    "SELECT count(*), coalesce(sum(amount), 0) FROM transfers"  # noqa: S608  made of constants
    f" WHERE credit_account = :available AND {_IN_SPAN}"
)
_CORRECTED: Final = text(
    "SELECT count(*), coalesce(sum(amount), 0) FROM transfers WHERE credit_account = :available"  # noqa: S608
    f" AND debit_account = (SELECT id FROM accounts WHERE kind = 'settlement') AND {_NO_CREDIT} AND {_IN_SPAN}"
)
_LEFT: Final = text(
    "SELECT CASE WHEN reference LIKE 'debt:%' THEN 'debt_paid'"  # noqa: S608  made of constants
    " WHEN reference LIKE 'correction:%' THEN coalesce(nullif(split_part(reference, ':', 3), ''), 'correction_debit')"
    " WHEN reference LIKE 'refund:%' THEN 'refund_' || split_part(reference, ':', 3)"
    " ELSE split_part(reference, ':', 3) END, count(*), coalesce(sum(amount), 0) FROM transfers"
    f" WHERE debit_account IN (:available, :reserved, :owed) AND {_NO_CREDIT} AND {_IN_SPAN} GROUP BY 1"
)


def sums_of(tx: Session, accounts: MerchantAccounts, span: Span) -> list[TransferSum]:
    """Returns the number and the sum of the merchant's transfers of each kind that the span has, in their order."""
    own = {"available": accounts.available, "reserved": accounts.reserved, "owed": accounts.owed}
    values = {**own, **span.values()}
    arrived = tx.execute(_ARRIVED, values).one()
    found = {TransferKind(kind): (count, amount) for kind, count, amount in tx.execute(_LEFT, values)}
    found[TransferKind.CORRECTION_CREDIT] = corrected = tuple(tx.execute(_CORRECTED, values).one())
    # The rest of what arrived is credited: so the many credits are summed from their index alone.
    nothing = (0, _NOTHING)
    released = found.get(TransferKind.RELEASE, nothing), found.get(TransferKind.REFUND_RELEASE, nothing)
    others = [corrected, *released]
    found[TransferKind.CREDIT] = (
        arrived[0] - sum(count for count, _ in others),
        arrived[1] - sum(amount for _, amount in others),
    )
    return [TransferSum(kind, *found[kind]) for kind in TransferKind if kind in found and found[kind][0]]
