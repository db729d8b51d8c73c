"""Checks of values from outside. Each function returns a value of the documented form or raises VALIDATION_ERROR."""

import re
from decimal import Decimal
from typing import Final
from uuid import UUID

from kit.base.ids import parse_id
from kit.base.money import parse_decimal, round_down
from services.withdrawals import errors
from services.withdrawals.addresses import NETWORKS
from services.withdrawals.domain import (
    MAX_ADDRESS_CHARACTERS,
    MAX_MEMO_CHARACTERS,
    MAX_TX_ID_CHARACTERS,
    METHOD_NAME_MAX_CHARACTERS,
    USDT_PLACES,
)

_METHOD_CODE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch


def uuid(field: str, text: str) -> UUID:
    parsed = parse_id(text)
    if parsed is None:
        raise errors.field_invalid(field, "Expected a UUID")
    return parsed


def amount(text: str, *, field: str = "amount") -> Decimal:
    """A number of USDT with at most 6 decimals, possibly below zero: the caller checks the bounds."""
    try:
        value = parse_decimal(text)
    except ValueError:
        raise errors.field_invalid(field, "Expected digits, with at most 6 decimals") from None
    if value != round_down(value, USDT_PLACES):
        raise errors.field_invalid(field, "USDT has at most 6 decimals")
    return value


def method_code(text: str) -> str:
    if not _METHOD_CODE(text):
        message = "A method code has 1 to 64 characters of A-Z, a-z, 0-9, - and _"
        raise errors.field_invalid("method.code", message)
    return text


def method_name(text: str) -> str:
    """A text for people: not blank, no unprintable characters."""
    if not text.strip() or len(text) > METHOD_NAME_MAX_CHARACTERS or not text.isprintable():
        message = f"Expected 1 to {METHOD_NAME_MAX_CHARACTERS} printable characters"
        raise errors.field_invalid("method.name", message)
    return text


def network(text: str) -> str:
    if text not in NETWORKS:
        raise errors.field_invalid("method.network", f"Expected one of {', '.join(sorted(NETWORKS))}")
    return text


def address(text: str) -> str:
    if not 0 < len(text) <= MAX_ADDRESS_CHARACTERS or not text.isprintable():
        message = f"Expected 1 to {MAX_ADDRESS_CHARACTERS} printable characters"
        raise errors.field_invalid("address", message)
    return text


def memo(text: str | None) -> str | None:
    """An empty memo means none."""
    if text and (len(text) > MAX_MEMO_CHARACTERS or not text.isprintable()):
        message = f"Expected at most {MAX_MEMO_CHARACTERS} printable characters"
        raise errors.field_invalid("address_memo", message)
    return text or None


def external_tx_id(text: str) -> str:
    printable = text.isascii() and text.isprintable() and " " not in text
    if not 0 < len(text) <= MAX_TX_ID_CHARACTERS or not printable:
        message = f"Expected 1 to {MAX_TX_ID_CHARACTERS} printable ASCII characters without spaces"
        raise errors.field_invalid("external_tx_id", message)
    return text


def limit(value: int, *, most: int, default: int | None = None) -> int:
    """Returns the number; 0 means `default`, if there is one."""
    if value == 0 and default is not None:
        return default
    if not 1 <= value <= most:
        raise errors.field_invalid("limit", f"Expected 1 to {most}")
    return value
