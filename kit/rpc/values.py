"""Checks of the values in a request. Each takes the field's name and the value, and returns the checked value.

All raise VALIDATION_ERROR with the field's name. Rules of one service's business are in its `operations/fields.py`.
The gateway checks merchants' input before; these checks hold for every caller.
"""

import re
from collections.abc import Callable, Sized
from decimal import Decimal
from typing import Any, Final, TypeVar
from uuid import UUID

from kit.base.ids import parse_id
from kit.base.money import parse_decimal
from kit.rpc import errors
from kit.rpc.errors import Refused

LIST_ROWS: Final = 100
LIST_MOST_ROWS: Final = 1000
"""The most rows of a list for operators or services, and the most items of a batch in one call."""
PAGE_MOST_ROWS: Final = 500
"""The most rows of a page for merchants."""

_CODE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch

V = TypeVar("V")
T = TypeVar("T")


def invalid(field: str, message: str) -> Refused:
    """Returns the refusal of a value; the caller raises it."""
    return errors.invalid("VALIDATION_ERROR", message, field=field)


def query_invalid(field: str, message: str) -> Refused:
    """Returns the refusal of a merchant's query parameter, which the gateway answers with status 422."""
    return errors.invalid("VALIDATION_ERROR", message, field=field, shape="query")


def parsed(field: str, value: V, parse: Callable[[V], T]) -> T:
    """Returns `parse(value)`, which raises ValueError with the end of the message."""
    try:
        return parse(value)
    except ValueError as error:
        raise invalid(field, f"{field}: {error}") from None


def together(**checks: Callable[[], Any]) -> dict[str, Any]:
    """Returns the value of each check. Raises one VALIDATION_ERROR for all that refuse."""
    checked, refusals = {}, []
    for name, check in checks.items():
        try:
            checked[name] = check()
        except Refused as refused:
            if "field" not in refused.metadata:
                raise
            refusals.append(refused)
    if refusals:
        raise errors.invalid_together(refusals)
    return checked


def decimal(field: str, text: str) -> Decimal:
    return parsed(field, text, parse_decimal)


def uuid(field: str, text: str) -> UUID:
    found = parse_id(text)
    if found is None:
        raise invalid(field, "Expected a UUID")
    return found


def uuid_or(not_found: Callable[[], Refused], text: str) -> UUID:
    """Returns the UUID. Raises `not_found()` for other text, and no VALIDATION_ERROR: it is the id of nothing."""
    found = parse_id(text)
    if found is None:
        raise not_found()
    return found


def text(field: str, value: str, *, most: int, least: int = 1) -> str:
    """Accepts `least` to `most` characters, none of them NUL, which PostgreSQL can't store."""
    if not least <= len(value) <= most:
        raise invalid(field, f"{field} has {least} to {most} characters")
    if "\0" in value:
        raise invalid(field, f"{field} must not hold NUL characters")
    return value


def label(field: str, value: str, *, most: int) -> str:
    """Accepts a text for people: not blank, no unprintable characters (NUL, line breaks, direction marks)."""
    if not value.strip() or len(value) > most or not value.isprintable():
        raise invalid(field, f"Expected 1 to {most} printable characters")
    return value


def is_code(text: str) -> bool:
    return _CODE(text) is not None


def code(field: str, value: str) -> str:
    """Accepts a code that operators choose: it is used in URLs and settings."""
    if not is_code(value):
        raise invalid(field, "Expected 1 to 64 characters of A-Z, a-z, 0-9, - and _")
    return value


def whole_number(field: str, value: int, *, least: int, most: int | None = None) -> int:
    if most is None and value < least:
        raise invalid(field, f"Expected {least} or more")
    if most is not None and not least <= value <= most:
        raise invalid(field, f"Expected {least} to {most}")
    return value


def rows(value: int, *, default: int = LIST_ROWS, most: int = LIST_MOST_ROWS) -> int:
    """Returns the field `limit`, the number of rows of a list; 0 means `default`."""
    return whole_number("limit", value or default, least=1, most=most)


def page(number: int, per_page: int) -> None:
    """Accepts the number of a page, from 1 on, and its rows."""
    if number < 1:
        raise query_invalid("page", "Expected 1 or more")
    if not 1 <= per_page <= PAGE_MOST_ROWS:
        raise query_invalid("per_page", f"Expected 1 to {PAGE_MOST_ROWS}")


def at_most(field: str, values: Sized, most: int) -> None:
    """Accepts a list of at most `most` values."""
    if len(values) > most:
        raise invalid(field, f"Expected at most {most}")
