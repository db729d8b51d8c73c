"""Checks of request values that are rules of this service; those of all services are in kit/rpc/values.py."""

from decimal import Decimal

from kit.base.money import USDT_PLACES, has_decimals
from kit.rpc import values
from services.withdrawals.addresses import NETWORKS
from services.withdrawals.domain import MAX_ADDRESS_CHARACTERS, MAX_MEMO_CHARACTERS, MAX_TX_ID_CHARACTERS


def amount(field: str, text: str) -> Decimal:
    """Returns a number of USDT with at most 6 decimals, possibly below zero: the caller checks the bounds."""
    value = values.decimal(field, text)
    if not has_decimals(value, at_most=USDT_PLACES):
        raise values.invalid(field, "USDT has at most 6 decimals")
    return value


def network(text: str) -> str:
    if text not in NETWORKS:
        raise values.invalid("method.network", f"Expected one of {', '.join(sorted(NETWORKS))}")
    return text


def address(text: str) -> str:
    if not 0 < len(text) <= MAX_ADDRESS_CHARACTERS or not text.isprintable():
        message = f"Expected 1 to {MAX_ADDRESS_CHARACTERS} printable characters"
        raise values.invalid("address", message)
    return text


def memo(text: str | None) -> str | None:
    """Returns the memo; null for an empty one."""
    if text and (len(text) > MAX_MEMO_CHARACTERS or not text.isprintable()):
        message = f"Expected at most {MAX_MEMO_CHARACTERS} printable characters"
        raise values.invalid("address_memo", message)
    return text or None


def external_tx_id(text: str) -> str:
    printable = text.isascii() and text.isprintable() and " " not in text
    if not 0 < len(text) <= MAX_TX_ID_CHARACTERS or not printable:
        message = f"Expected 1 to {MAX_TX_ID_CHARACTERS} printable ASCII characters without spaces"
        raise values.invalid("external_tx_id", message)
    return text
