"""Bank lines that have paid deals."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from services.invoices.models import ACCOUNT_KEY, DEAL_IS_OPEN

DEALS_MOST: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of a line that pays a deal."""

    line_id: UUID
    amount: Decimal
    line_amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePayment:
    number: int
    line_id: UUID
    deal_id: UUID
    invoice_id: UUID
    amount: Decimal
    line_amount: Decimal
    paid_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DealOfLine:
    """A deal that a line may have paid. `account` has letters and digits only."""

    deal_id: UUID
    invoice_id: UUID
    reference: str | None
    account: str
    currency_code: str
    amount_fiat: Decimal
    is_open: bool
    is_paid: bool
    is_linked: bool
    created_at: datetime
    expires_at: datetime
    sender_name: str | None
    is_automatic: bool


_KEY_OF_REQUISITE: Final = ACCOUNT_KEY.replace("account", "requisites.account")
_FIND: Final = text(f"""
WITH ours AS (SELECT id, {ACCOUNT_KEY} AS account FROM requisites WHERE {ACCOUNT_KEY} = ANY(CAST(:accounts AS text[])))
SELECT deals.id AS deal_id, deals.invoice_id, deals.reference, ours.account, deals.currency_code, deals.amount_fiat,
       deals.{DEAL_IS_OPEN} AS is_open, deals.status = 'completed' AS is_paid,
       EXISTS (SELECT FROM line_payments WHERE line_payments.deal_id = deals.id) AS is_linked,
       deals.created_at, deals.expires_at, deals.sender_name,
       deals.status = 'pending' AND EXISTS (
         SELECT FROM line_rules WHERE line_rules.method_code = deals.method_code AND enabled) AS is_automatic
FROM deals JOIN ours ON ours.id = deals.requisite_id
WHERE deals.sub_status <> 'replaced' AND deals.id IN (
  SELECT id FROM deals WHERE reference = ANY(CAST(:references AS text[]))
  UNION ALL
  SELECT id FROM deals WHERE {DEAL_IS_OPEN} AND requisite_id IN (SELECT id FROM ours)
    AND amount_fiat = ANY(CAST(:amounts AS numeric[])))
ORDER BY deals.created_at DESC, deals.id DESC LIMIT {DEALS_MOST}
""")  # noqa: S608  made of constants
_UNLINKED: Final = text(f"""
SELECT deals.id AS deal_id, deals.invoice_id, deals.reference, has.account, deals.currency_code, deals.amount_fiat,
       false AS is_open, true AS is_paid, false AS is_linked, deals.created_at, deals.expires_at, deals.sender_name,
       false AS is_automatic
FROM deals JOIN requisites ON requisites.id = deals.requisite_id
JOIN unnest(CAST(:accounts AS text[]), CAST(:first_days AS date[])) AS has (account, first_day)
  ON has.account = {_KEY_OF_REQUISITE} AND deals.created_at >= CAST(has.first_day AS timestamp) AT TIME ZONE 'UTC'
WHERE deals.status = 'completed'
  AND deals.created_at >= CAST(CAST(:first_day AS date) AS timestamp) AT TIME ZONE 'UTC'
  AND deals.created_at < CAST(CAST(:last_day AS date) + 1 AS timestamp) AT TIME ZONE 'UTC'
  AND (CAST(:after AS uuid) IS NULL
       OR (deals.created_at, deals.id) < (SELECT created_at, id FROM deals WHERE id = :after))
  AND NOT EXISTS (SELECT FROM line_payments WHERE line_payments.deal_id = deals.id)
ORDER BY deals.created_at DESC, deals.id DESC LIMIT :most
""")  # noqa: S608  made of constants
_LOCK: Final = text("SELECT lock_line_payments()")
_ADD: Final = text("""
INSERT INTO line_payments (line_id, deal_id, amount, line_amount, paid_at, rule)
VALUES (:line_id, :deal_id, :amount, :line_amount, :paid_at, :rule) RETURNING number
""")
_PAYMENTS: Final = """
SELECT number, line_id, deal_id, invoice_id, line_payments.amount, line_amount, paid_at
FROM line_payments JOIN deals ON deals.id = deal_id WHERE number > :after {wanted} ORDER BY number LIMIT :most
"""
_ALL: Final = text(_PAYMENTS.format(wanted=""))
_OF_DEAL: Final = text(_PAYMENTS.format(wanted="AND deal_id = :deal_id"))


def deals_of_lines(
    tx: Session | Connection,
    *,
    accounts: Sequence[str],
    references: Sequence[str],
    amounts: Sequence[Decimal],
) -> list[DealOfLine]:
    """Returns deals on these accounts with one of the references, and open ones of one of the amounts; newest first."""
    given = {"accounts": list(accounts), "references": list(references), "amounts": list(amounts)}
    return [DealOfLine(**row) for row in tx.execute(_FIND, given).mappings()]


def unlinked_deals(
    tx: Session | Connection,
    most: int,
    *,
    accounts: Sequence[tuple[str, date]],
    first_day: date,
    last_day: date,
    after: UUID | None,
) -> list[DealOfLine]:
    """Returns confirmed deals without a line that were opened on these days, newest first; on each account since its
    day.
    """
    given: dict[str, Any] = {"first_day": first_day, "last_day": last_day, "after": after, "most": most}
    given |= {"accounts": [name for name, _ in accounts], "first_days": [day for _, day in accounts]}
    return [DealOfLine(**row) for row in tx.execute(_UNLINKED, given).mappings()]


def lock(tx: Session) -> None:
    """Lets payments and changes of rules wait until the commit."""
    tx.execute(_LOCK)


def add(tx: Session, deal_id: UUID, parts: Sequence[Part], *, at: datetime, rule: str | None) -> list[int]:
    """Returns the numbers of the payments. IntegrityError `line_pays_once` or `uq_line_payments_line_id_deal_id` when a
    line has not enough left.
    """
    lock(tx)
    of_all = {"deal_id": deal_id, "paid_at": at, "rule": rule}
    return [tx.execute(_ADD, asdict(part) | of_all).scalar_one() for part in parts]


def payments(
    tx: Session | Connection, *, after: int, most: int, deal_id: UUID | None = None
) -> list[LinePayment]:
    """Returns payments in the order of their commits."""
    given: dict[str, Any] = {"after": after, "most": most}
    if deal_id is not None:
        given["deal_id"] = deal_id
    found = tx.execute(_ALL if deal_id is None else _OF_DEAL, given)
    return [LinePayment(**row) for row in found.mappings()]
