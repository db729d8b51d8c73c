"""Checks of values from outside. Each function raises VALIDATION_ERROR with the field's name."""

import re
from decimal import Decimal
from typing import Final

from kit.base.money import parse_decimal
from kit.egress.address import check_url
from services.catalog import errors
from services.catalog.domain import RATE_WHOLE_DIGITS, SOURCE_RATE_PLACES, is_fraction, is_plausible_rate

AMOUNT_BELOW: Final = Decimal(10) ** 18
FRACTION_PLACES: Final = 6

CURRENCY_CODE: Final = re.compile(r"[A-Z]{3}")
METHOD_CODE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def currency_code(text: str, *, field: str) -> str:
    if not CURRENCY_CODE.fullmatch(text):
        raise errors.field_invalid(field, "A currency code is three upper-case letters")
    return text


def method_code(text: str, *, field: str) -> str:
    if not METHOD_CODE.fullmatch(text):
        raise errors.field_invalid(field, "A method code has 1 to 64 characters of A-Z, a-z, 0-9, - and _")
    return text


def label(text: str, *, field: str, max_characters: int) -> str:
    """A text for people: not blank, no unprintable characters (NUL, line breaks, direction marks)."""
    if not text.strip() or len(text) > max_characters or not text.isprintable():
        raise errors.field_invalid(field, f"Expected 1 to {max_characters} printable characters")
    return text


def whole_number(value: int, *, field: str, minimum: int, maximum: int) -> int:
    if not minimum <= value <= maximum:
        raise errors.field_invalid(field, f"Expected {minimum} to {maximum}")
    return value


def amount_range(
    minimum: str, maximum: str, *, minimum_field: str, maximum_field: str, decimals: int
) -> tuple[Decimal, Decimal]:
    """Two fiat amounts above zero, the first not above the second."""
    low = _amount(minimum, field=minimum_field, decimals=decimals)
    high = _amount(maximum, field=maximum_field, decimals=decimals)
    if low > high:
        raise errors.field_invalid(maximum_field, f"Expected not less than {minimum_field}")
    return low, high


def fraction(text: str, *, field: str) -> Decimal:
    value = _decimal(text, field=field)
    if not is_fraction(value) or _places(value) > FRACTION_PLACES:
        raise errors.field_invalid(field, f"Expected 0 to 1 with at most {FRACTION_PLACES} decimals")
    return value


def decimal_or_nan(text: str) -> Decimal:
    """NaN for text that is no number: such a value is refused later, with a reason of its own."""
    try:
        return parse_decimal(text)
    except ValueError:
        return Decimal("NaN")


def rate(text: str, *, field: str) -> Decimal:
    value = _decimal(text, field=field)
    if not is_plausible_rate(value) or _places(value) > SOURCE_RATE_PLACES:
        digits = f"{RATE_WHOLE_DIGITS} digits before and {SOURCE_RATE_PLACES} after the point"
        raise errors.field_invalid(field, f"Expected a number above 0 with at most {digits}")
    return value


def image_url(url: str | None, *, field: str) -> str | None:
    """An http or https address. Merchants receive it; Fiatgate itself never loads it."""
    if url is not None:
        try:
            check_url(url, allow_private=True)
        except ValueError as error:
            raise errors.field_invalid(field, str(error)) from None
    return url


def _amount(text: str, *, field: str, decimals: int) -> Decimal:
    value = _decimal(text, field=field)
    if not 0 < value < AMOUNT_BELOW or _places(value) > decimals:
        raise errors.field_invalid(field, f"Expected an amount above 0 with at most {decimals} decimals")
    return value


def _decimal(text: str, *, field: str) -> Decimal:
    try:
        return parse_decimal(text)
    except ValueError as error:
        raise errors.field_invalid(field, str(error)) from None


def _places(value: Decimal) -> int:
    """The decimals without trailing zeros: 100.50 has one."""
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
