"""The refusal of a file, the bounds and the text values that all readers share."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from typing import Final

from kit.base.money import FIAT_PLACES, has_decimals, parse_decimal
from services.bank.domain.lines import REFERENCES_MOST

FILE_MOST_BYTES: Final = 8 * 1024 * 1024
LINES_MOST: Final = 50_000
STATEMENTS_MOST: Final = 500
"""A file of each day has one for each account."""
TEXT_MOST_CHARACTERS: Final = 2_000
FIELD_MOST_CHARACTERS: Final = 140
"""The bound of a name, an account, an id or a reference."""
AMOUNT_MOST: Final = Decimal(10) ** 15

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NO_REFERENCE: Final = frozenset(
    {
        "NONREF",
        "NOREF",
        "NOTPROVIDED",
        "NOT PROVIDED",
        "UNKNOWN",
        "NONE",
        "EREF",
        "KREF",
        "MREF",
        "PREF",
        "MARF",
    }
)
"""Words that banks write for a missing reference, or for one that stands in the text."""


class FileRefused(Exception):
    """The file can't be taken. The message is a sentence for people, which names the place in the file."""


@dataclass(frozen=True)
class Place:
    """A place in a file. Its methods read values there and raise FileRefused."""

    name: str

    def refused(self, problem: str, value: str | None = None) -> FileRefused:
        return FileRefused(f"{self.name}: {problem}{'' if value is None else f': {value[:40]!r}'}.")

    def currency(self, text: str) -> str:
        if not re.fullmatch("[A-Z]{3}", text):
            raise self.refused("a currency has three capital letters", text)
        return text

    def amount(self, text: str, currency: str) -> Decimal:
        """Returns the plain decimal number, perhaps below zero, with no more decimals than its currency may have."""
        try:
            amount = parse_decimal(text)
        except ValueError:
            raise self.refused("this is no amount", text) from None
        if abs(amount) >= AMOUNT_MOST:
            raise self.refused("the amount is too large", text)
        if not has_decimals(amount, at_most=FIAT_PLACES):
            raise self.refused(f"an amount has at most {FIAT_PLACES} decimals", text)
        return amount

    def day(self, text: str, form: str) -> date:
        try:
            found = datetime.strptime(text, form).replace(tzinfo=UTC).date()
        except ValueError:
            raise self.refused(f"this is no day as {date(2026, 12, 31).strftime(form)}", text) from None
        if not 1970 <= found.year < 3000:
            raise self.refused("a day lies between 1970 and 2999", text)
        return found


def check_count(count: int) -> None:
    """Raises FileRefused for more lines than a file may have."""
    if count > LINES_MOST:
        raise FileRefused(f"The file has more than {LINES_MOST:,} lines of an account.")


def decoded(content: bytes, *encodings: str) -> str:
    """Returns the text by the first encoding that fits, with `\\n` as line breaks. Raises FileRefused."""
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeError:
            continue
        if found := _CONTROLS.search(text):
            line = text.count("\n", 0, found.start()) + 1
            raise FileRefused(f"Line {line}: the file has control characters: it is no text in {encoding}.")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    raise FileRefused(f"The file is no text in {' or '.join(encodings)}.")


def cleaned(text: str | None) -> str:
    """Returns a name, an account or a number with single blanks, cut to its bound."""
    return " ".join((text or "").split())[:FIELD_MOST_CHARACTERS]


def prose(text: str | None) -> str:
    """Returns the text of a line with single blanks, cut to its bound."""
    return " ".join((text or "").split())[:TEXT_MOST_CHARACTERS]


def references_of(*fields: str | None) -> tuple[str, ...]:
    """Returns the fields that hold a reference, each once, up to a bound."""
    found = dict.fromkeys(cleaned(field) for field in fields)
    kept = (each for each in found if each.strip("-./0 ") and each.upper().strip("+") not in _NO_REFERENCE)
    return tuple(islice(kept, REFERENCES_MOST))
