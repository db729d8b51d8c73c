"""The deal that a line may have paid, with how sure that is."""

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final
from uuid import UUID

from services.bank.domain.lines import Direction, Status


class ImportState(StrEnum):
    WAITING = "waiting"
    TAKEN = "taken"
    REFUSED = "refused"


class LineState(StrEnum):
    """WAITING: not looked at, or pending at the bank. MATCHED: the whole of it has paid deals."""

    WAITING = "waiting"
    PROPOSED = "proposed"
    UNMATCHED = "unmatched"
    MATCHED = "matched"
    IGNORED = "ignored"
    OUTGOING = "outgoing"
    REVERSED = "reversed"


DAY_OF_OTHER_ZONES: Final = timedelta(days=1)
"""A bank's day may be the one before that of the deal's opening in UTC."""
OPEN_STATES = (LineState.PROPOSED, LineState.UNMATCHED)
"""The states of lines that wait for an operator."""


def first_state(direction: Direction, status: Status) -> LineState:
    if status is Status.REVERSED:
        return LineState.REVERSED
    return LineState.WAITING if direction is Direction.CREDIT else LineState.OUTGOING


class Tier(StrEnum):
    """How sure a proposal is (fiatgate.bank.v1.Tier)."""

    CERTAIN = "certain"
    AMOUNT_DIFFERS = "amount_differs"
    CONFIRMED = "confirmed"
    ENDED = "ended"
    HINT = "hint"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """A deal that a line may have paid. `account` has letters and digits only; `amount` is what was asked for, of a
    paid one what was paid.
    """

    id: UUID
    invoice_id: UUID
    reference: str
    account: str
    currency_code: str
    amount: Decimal
    is_open: bool
    is_paid: bool
    is_linked: bool
    sender_name: str
    created_at: datetime
    is_automatic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """The values of a line that count for its proposal. `day` is that of its booking."""

    account: str
    currency_code: str
    amount: Decimal
    references: Collection[str]
    counterparty_name: str
    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`deal` is None for Tier.NONE."""

    tier: Tier
    deal: Deal | None = None


def propose(line: Coming, deals: Sequence[Deal]) -> Proposal:
    """Returns the proposal for a booked credit among these deals.

    A reference decides before an amount. There is no tolerance on amounts. Where two deals fit equally, none is
    proposed: a person has to choose.
    """
    here = [
        deal for deal in deals if deal.account == line.account and deal.currency_code == line.currency_code
    ]
    named = [deal for deal in here if deal.reference and deal.reference in line.references]
    for kind, fitting in (
        (None, [deal for deal in named if deal.is_open]),
        (Tier.CONFIRMED, [deal for deal in named if _may_be_linked(deal, line.amount)]),
        (Tier.ENDED, [deal for deal in named if not deal.is_open]),
    ):
        if len(fitting) > 1:
            return Proposal(tier=Tier.NONE)
        if fitting:
            deal = fitting[0]
            exact = Tier.CERTAIN if deal.amount == line.amount else Tier.AMOUNT_DIFFERS
            return Proposal(tier=kind or exact, deal=deal)
    hinted = [
        deal
        for deal in here
        if deal.is_open
        and deal.amount == line.amount
        and line.day >= deal.created_at.date() - DAY_OF_OTHER_ZONES
        and is_same_name(deal.sender_name, line.counterparty_name)
    ]
    return Proposal(tier=Tier.HINT, deal=hinted[0]) if len(hinted) == 1 else Proposal(tier=Tier.NONE)


def _may_be_linked(deal: Deal, amount: Decimal) -> bool:
    return deal.is_paid and not deal.is_linked and deal.amount == amount


def is_same_name(one: str, other: str) -> bool:
    """Returns whether the words of the shorter name are all in the longer one; order, case and accents do not count."""
    words, others = sorted((_words(one), _words(other)), key=len)
    return len(words) >= 2 and words <= others


def _words(name: str) -> frozenset[str]:
    plain = unicodedata.normalize("NFKD", name.casefold())
    letters = "".join(each if each.isalnum() else " " for each in plain if not unicodedata.combining(each))
    return frozenset(letters.split())
