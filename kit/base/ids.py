"""Identifiers: UUIDs that begin with their time, so that newer rows sort after older ones and indexes grow at one end.

new_id       for rows that only the owner of the id or an operator can reach: UUIDv7
secret_id    for things that anyone with the id may open, such as a payment link: UUIDv8 with 88 random bits, and the
             number of the cell, the stack that has the thing
"""

import re
import secrets
import uuid
from datetime import datetime
from typing import Final

import uuid_utils.compat

SECRET_BITS: Final = 88
"""A UUIDv7 has 74 random bits, and ids that one process makes within a millisecond differ in 32 of them only."""
TIME_BITS: Final = 26
UNIT_SECONDS: Final = 64
CELL_BITS: Final = 8
MOST_CELL: Final = (1 << CELL_BITS) - 1

_VERSION_8: Final = 8 << 76
_VARIANT: Final = 0b10 << 62
BEGINNING_DIGITS: Final = 4
"""The fewest digits of the beginning of an id."""

_BEGINNING = re.compile(r"[0-9a-f]{1,32}")
_CANONICAL = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def new_id() -> uuid.UUID:
    """Returns a fresh UUIDv7; each id of a process is greater than the one before."""
    return uuid_utils.compat.uuid7()


def secret_id(at: datetime, *, cell: int) -> uuid.UUID:
    """Returns a fresh UUIDv8 (RFC 9562, 5.8) that can't be guessed, not even from others made at the same time.

    Its first 26 bits are `at` in units of 64 seconds since 1970, its last 8 are the cell, 0 to 255, so its last two
    digits are; all others but version and variant are random. Ids of one unit are in no order. The units begin again at
    zero in February 2106; then new ids sort before old ones, and nothing else changes. All sort after the UUIDv7 that
    invoices had before.
    """
    if not 0 <= cell <= MOST_CELL:
        raise ValueError(f"cell: expected 0 to {MOST_CELL}, not {cell}")
    return _version_8(at, secrets.randbits(SECRET_BITS) << CELL_BITS | cell)


def first_secret_id(at: datetime) -> uuid.UUID:
    """Returns the least id that `secret_id` could have made at that time, in any cell."""
    return _version_8(at, 0)


def _version_8(at: datetime, rest: int) -> uuid.UUID:
    units = int(at.timestamp()) // UNIT_SECONDS % (1 << TIME_BITS)
    bits = units << SECRET_BITS + CELL_BITS | rest
    high, middle, low = bits >> 74, bits >> 62 & 0xFFF, bits & ((1 << 62) - 1)
    return uuid.UUID(int=high << 80 | _VERSION_8 | middle << 64 | _VARIANT | low)


def parse_id(text: str) -> uuid.UUID | None:
    """Returns the UUID if `text` is one in canonical form (8-4-4-4-12 hexadecimal digits, either case), else None.

    `uuid.UUID` also takes braces, `urn:uuid:` and missing hyphens: an external id of such a form is
    a merchant's order number, not an invoice's id (docs/api.md#get-invoice).
    """
    return uuid.UUID(text) if _CANONICAL.fullmatch(text) else None


def ids_beginning_with(text: str) -> tuple[uuid.UUID, uuid.UUID] | None:
    """Returns the least and the greatest id that begin like `text`: 4 hexadecimal digits or more, hyphens left out or
    where an id has them. None for other text.
    """
    digits = text.lower().replace("-", "")
    if not len(digits) >= BEGINNING_DIGITS or not _BEGINNING.fullmatch(digits):
        return None
    least = uuid.UUID(digits.ljust(32, "0"))
    if "-" in text and not str(least).startswith(text.lower().rstrip("-")):
        return None
    return least, uuid.UUID(digits.ljust(32, "f"))
