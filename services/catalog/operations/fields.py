"""Checks of request values that are rules of this service; those of all services are in kit/rpc/values.py."""

import functools
import re
from decimal import Decimal
from typing import Final

from kit.base.money import has_decimals, parse_decimal
from kit.egress.address import check_url
from kit.rpc import values
from services.catalog.domain import CURRENCY_CODE, RATE_WHOLE_DIGITS, SOURCE_RATE_PLACES, is_plausible_rate

AMOUNT_BELOW: Final = Decimal(10) ** 18


is_currency_code: Final = re.compile(CURRENCY_CODE).fullmatch


def currency_code(field: str, text: str) -> str:
    if not is_currency_code(text):
        raise values.invalid(field, "A currency code is three upper-case letters")
    return text


def amount(field: str, text: str, *, decimals: int) -> Decimal:
    """Returns a fiat amount above zero."""
    value = values.decimal(field, text)
    if not 0 < value < AMOUNT_BELOW or not has_decimals(value, at_most=decimals):
        raise values.invalid(field, f"Expected an amount above 0 with at most {decimals} decimals")
    return value


def not_below(field: str, value: Decimal, least: Decimal) -> None:
    if value < least:
        raise values.invalid(field, f"Expected {least:f} or more")


def decimal_or_nan(text: str) -> Decimal:
    """Returns the number; NaN for text that is none, because such a value is refused later, with a reason of its
    own.
    """
    try:
        return parse_decimal(text)
    except ValueError:
        return Decimal("NaN")


def rate(field: str, text: str) -> Decimal:
    value = values.decimal(field, text)
    if not is_plausible_rate(value) or not has_decimals(value, at_most=SOURCE_RATE_PLACES):
        digits = f"{RATE_WHOLE_DIGITS} digits before and {SOURCE_RATE_PLACES} after the point"
        raise values.invalid(field, f"Expected a number above 0 with at most {digits}")
    return value


def image_url(field: str, url: str | None) -> str | None:
    """Returns an http or https address. Merchants receive it; Fiatgate itself never loads it."""
    if url is not None:
        values.parsed(field, url, functools.partial(check_url, allow_private=True))
    return url
