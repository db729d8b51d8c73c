"""Bank lines that pay deals. bank proposes; what counts is written here, in the transaction of the deal's step."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.base.codes import parse_code
from kit.base.money import FIAT_PLACES, has_decimals
from kit.db.database import refusing, retry_conflicts
from kit.rpc import deadline, values
from kit.rpc.errors import database_unavailable
from services.invoices import errors
from services.invoices.domain.states import DealStatus
from services.invoices.models import Deal
from services.invoices.operations import fields, lifecycle
from services.invoices.store import lines
from services.invoices.store.lines import DealOfLine, LinePayment, Part
from services.invoices.wiring import Deps

PARTS_MOST: Final = 20
ACCOUNTS_MOST: Final = 100
REFERENCES_MOST: Final = 10_000
AMOUNTS_MOST: Final = 1_000
IMPORTED_ACCOUNTS_MOST: Final = 1_000
UNLINKED_MOST_DAYS: Final = 31
_USED_UP: Final = {
    "line_pays_once": errors.line_used_up,
    "uq_line_payments_line_id_deal_id": errors.line_used_up,
}


def find_deals_of_lines(
    deps: Deps, *, accounts: Sequence[str], references: Sequence[str], amounts: Sequence[str]
) -> Sequence[DealOfLine]:
    """Returns the deals that lines with these values may have paid, newest first."""
    values.at_most("accounts", accounts, ACCOUNTS_MOST)
    values.at_most("references", references, REFERENCES_MOST)
    values.at_most("amounts", amounts, AMOUNTS_MOST)
    keys = [fields.account_key(each) for each in accounts]
    codes = [code for each in references if (code := parse_code(each)) is not None]
    sums = [values.decimal("amounts", each) for each in amounts]
    with deps.db.autocommit() as connection:
        return lines.deals_of_lines(connection, accounts=keys, references=codes, amounts=sums)


def list_unlinked_deals(
    deps: Deps,
    *,
    first_day: str,
    last_day: str,
    accounts: Sequence[tuple[str, date]],
    after_deal_id: str,
    limit: int,
) -> Sequence[DealOfLine]:
    """Returns confirmed deals that no line has paid, newest first; on each account since its day. Raises
    VALIDATION_ERROR, DEAL_NOT_FOUND.
    """
    first, last = day("first_day", first_day), day("last_day", last_day)
    if not timedelta(0) <= last - first < timedelta(days=UNLINKED_MOST_DAYS):
        message = f"Expected the first day or a later one, at most {UNLINKED_MOST_DAYS} days"
        raise values.invalid("last_day", message)
    values.at_most("accounts", accounts, IMPORTED_ACCOUNTS_MOST)
    after = fields.deal_id(after_deal_id) if after_deal_id else None
    with deps.db.autocommit() as connection:
        span = {"first_day": first, "last_day": last}
        return lines.unlinked_deals(connection, values.rows(limit), accounts=accounts, after=after, **span)


def day(field: str, text: str) -> date:
    return values.parsed(field, text, date.fromisoformat)


@retry_conflicts
def link_deal(deps: Deps, *, deal_id: str, lines: Sequence[Part]) -> None:
    """Links lines to a deal that was confirmed without any. Raises DEAL_NOT_FOUND, DEAL_STATE_CONFLICT,
    BANK_LINE_CONFLICT.
    """
    id = fields.deal_id(deal_id)
    with deps.db.transaction() as tx:
        _, deal = lifecycle.locked_by_deal(tx, id)
        if not lines:
            raise values.invalid("lines", "Expected at least one line")
        if deal.status != DealStatus.COMPLETED:
            message = "Only a confirmed deal can be linked"
            raise errors.deal_state_conflict(message, status=deal.status, sub_status=deal.sub_status)
        lifecycle.require_as_decided(tx, deal)
        if _payments(tx, deal):
            raise errors.deal_linked()
        pay(tx, deps, deal, lines)


def pay(tx: Session, deps: Deps, deal: Deal, parts: Sequence[Part], *, rule: str | None = None) -> None:
    """Records that the parts of lines paid the deal, by the rule of this method if there is one. Raises
    BANK_LINE_CONFLICT unless they come to its amount and each line has its part left.
    """
    if sum(part.amount for part in parts) != deal.amount_fiat:
        raise errors.lines_differ(deal.amount_fiat)
    now = deps.clock.now()
    with refusing(_USED_UP):
        numbers = lines.add(tx, deal.id, parts, at=now, rule=rule)
    left_seconds = deadline.remaining_seconds()
    if left_seconds is not None and left_seconds <= 0:
        raise database_unavailable()  # the caller has given up: its claims of the lines may end before the commit
    for number, part in zip(numbers, parts, strict=True):
        after = {
            "line_id": part.line_id,
            "deal_id": deal.id,
            "amount": part.amount,
            "line_amount": part.line_amount,
            "rule": rule,
            "paid_at": now,
        }
        acts.record(
            tx, "line-payment.record", f"line-payment:{number}", merchant_id=deal.merchant_id, after=after
        )


def list_line_payments(deps: Deps, *, after: int, limit: int, deal_id: str = "") -> Sequence[LinePayment]:
    """Returns payments by lines in the order of their commits."""
    of = fields.deal_id(deal_id) if deal_id else None
    first = values.whole_number("after", after, least=0)
    with deps.db.autocommit() as connection:
        return lines.payments(connection, after=first, most=values.rows(limit), deal_id=of)


def part(*, line_id: str, amount: str, line_amount: str) -> Part:
    """Returns a part of a line with its values checked."""
    paid, whole = values.decimal("amount", amount), values.decimal("line_amount", line_amount)
    if not 0 < paid <= whole or not has_decimals(whole, at_most=FIAT_PLACES) or whole >= 10**18:
        raise values.invalid("amount", "Expected an amount above zero, at most that of its line")
    return Part(line_id=values.uuid("line_id", line_id), amount=paid, line_amount=whole)


def _payments(tx: Session, deal: Deal) -> Sequence[LinePayment]:
    return lines.payments(tx, after=0, most=1, deal_id=deal.id)
