"""Lines of bank statements: their values, their sums, what makes two of them the same, and the references in them."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Final
from uuid import UUID

from kit.base.codes import codes_in

REFERENCES_MOST: Final = 100
"""Candidates that are looked up for one line. Of the windows of a random text, 1 of 32 is one."""


class Direction(StrEnum):
    CREDIT = "credit"
    DEBIT = "debit"


class Status(StrEnum):
    PENDING = "pending"
    BOOKED = "booked"
    REVERSED = "reversed"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One movement of money on an account. `amount` is above zero, `direction` is that of this movement.

    In a file, `reversed` marks the booking that takes an earlier one back. `source_id` is the bank's id, if it gives
    one; `references` are the fields for references, apart from the text; `position` is the place in the file.
    """

    account: str
    direction: Direction
    amount: Decimal
    currency: str
    status: Status
    booked_on: date | None
    valued_on: date | None
    position: str
    source_id: str | None = None
    counterparty_name: str = ""
    counterparty_account: str = ""
    text: str = ""
    references: tuple[str, ...] = ()

    @property
    def signed_amount(self) -> Decimal:
        return self.amount if self.direction is Direction.CREDIT else -self.amount


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The lines of one account in a file. `number` and the days are as the bank gives them; balances may be missing."""

    account: str
    currency: str
    lines: tuple[Line, ...]
    opening: Decimal | None = None
    closing: Decimal | None = None
    opened_on: date | None = None
    closed_on: date | None = None
    number: str = ""


def difference_of(statement: Statement) -> Decimal | None:
    """Returns closing balance - opening balance - booked lines; None if the statement lacks a balance."""
    if statement.opening is None or statement.closing is None:
        return None
    booked = (line.signed_amount for line in statement.lines if line.status is not Status.PENDING)
    return statement.closing - statement.opening - sum(booked, Decimal(0))


# -- the same line twice


def identities(lines: Sequence[Line]) -> Sequence[str]:
    """Returns the identity of each line of one file, for use with the line's account: a fingerprint with the line's
    number among equal ones. So the same file again gives the same identities, and two equal payments in it have two.
    """
    equal: Counter[str] = Counter()
    found = []
    for line in lines:
        print_ = fingerprint(line)
        equal[print_] += 1
        found.append(f"fp:{print_}:{equal[print_]}")
    return found


def line_id(account: str, identity: str, day: date) -> UUID:
    """Returns a UUIDv8: 24 bits of the day, then those of a hash. A line that comes again after a restore has its id
    again, so invoices knows what it has paid. Ids of later days are greater.
    """
    days = max(0, (day - date(1970, 1, 1)).days)
    rest = int.from_bytes(hashlib.sha256(f"{account}\n{identity}".encode()).digest())
    bits = days << 104 | rest >> 152
    return UUID(int=bits & ~(0xF << 76 | 0b11 << 62) | 8 << 76 | 0b10 << 62)


def fingerprint(line: Line) -> str:
    """Returns 32 hexadecimal digits of account, day, amount, direction, text and counterparty.

    Blanks, punctuation and upper or lower case do not count: the same line comes with others in the bank's next file.
    """
    day = line.booked_on or line.valued_on
    texts = (line.account, line.text, line.counterparty_name, line.counterparty_account)
    parts = [f"{day} {line.signed_amount.normalize():f} {line.currency}", *map(_letters_and_digits, texts)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text)).upper()


# -- references


def references_in(texts: Iterable[str], *, most: int = REFERENCES_MOST) -> Sequence[str]:
    """Returns what may be payment references, each once, those of the first text first.

    Give the fields for references before the text. Blanks, line breaks and punctuation may stand within a reference.
    """
    found: dict[str, None] = {}
    for text in texts:
        for code in codes_in(text):
            found.setdefault(code)
            if len(found) == most:
                return tuple(found)
    return tuple(found)
