"""Decimal amounts: read from text, rounded in a stated direction, written as the API writes them.

Never float. Results are exact: the arithmetic here runs at a precision that no accepted input can exceed.
docs/api.md#conventions has the numbers of decimals, docs/api.md#commission how amounts are rounded.
"""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

MAX_LENGTH = 40
FIAT_PLACES = 2
USDT_PLACES = 6
RATE_PLACES = 2
PERCENT_PLACES = 2
FRACTION_PLACES = 6

_PLAIN = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_CURRENCY = r"(?:[A-Za-z]{3}|[$€£¥₹₺₽₸₴₩])"
_TYPED = re.compile(rf"(?:{_CURRENCY}\s*)?(?P<number>[0-9][0-9.,'’\s]*[0-9]|[0-9])(?:\s*{_CURRENCY})?")
_GROUPED = re.compile(
    r"(?P<whole>[0-9]{1,3}(?P<mark>[.,'’\s])[0-9]{3}(?:(?P=mark)[0-9]{3})*)(?:[.,](?P<rest>[0-9]{1,2}))?"
)
_EXACT = Context(prec=120)


def parse_decimal(text: str) -> Decimal:
    """Returns the number written in `text`: ASCII digits with an optional sign and fraction, at most 40 characters.

    No exponent, no NaN, no infinity, no spaces, no grouping. Raises `ValueError` otherwise.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a number has at most {MAX_LENGTH} characters")
    if not _PLAIN.fullmatch(text):
        raise ValueError("not a plain decimal number")
    return Decimal(text)


def typed_decimal(text: str) -> Decimal:
    """Returns the amount that a person typed or copied from a statement: `51.00`, `51,00`, `1 234,50`, `1.234,50 €`,
    `EUR 1,234.50`.

    Raises `ValueError` for other text, also for `1,234`, which may be either number; `1.234` is as the API writes it.
    """
    typed = _TYPED.fullmatch(text.strip())
    number = typed["number"] if typed else text
    if _PLAIN.fullmatch(number):
        return parse_decimal(number)
    if re.fullmatch(r"[0-9]{1,3},[0-9]{3}", number):
        raise ValueError(
            f"{number} may be a whole number or not: write {number.replace(',', '')} or {number}.00"
        )
    if grouped := _GROUPED.fullmatch(number):
        whole = grouped["whole"].replace(grouped["mark"], "")
        return parse_decimal(f"{whole}.{grouped['rest'] or '0'}")
    return parse_decimal(number.replace(",", "."))


def has_decimals(value: Decimal, *, at_most: int) -> bool:
    """Returns whether the number can be written with that many decimals: 100.50 needs one."""
    return value == round_down(value, at_most)


def parse_fraction(text: str) -> Decimal:
    """Returns a share or commission: 0 to 1, with at most 6 decimals. Raises `ValueError` otherwise."""
    value = parse_decimal(text)
    if not 0 <= value <= 1 or not has_decimals(value, at_most=FRACTION_PLACES):
        raise ValueError(f"expected 0 to 1 with at most {FRACTION_PLACES} decimals")
    return abs(value)  # no "-0"


def round_down(value: Decimal, places: int) -> Decimal:
    """Returns the greatest number of `places` decimals that is not above `value`."""
    return value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_FLOOR, context=_EXACT)


def round_up(value: Decimal, places: int) -> Decimal:
    """Returns the smallest number of `places` decimals that is not below `value`."""
    return value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING, context=_EXACT)


def fiat_text(value: Decimal) -> str:
    """Returns `"100.50"`: always two decimals, rounded down."""
    return _text(value, FIAT_PLACES)


def usdt_text(value: Decimal) -> str:
    """Returns `"1.086956"`: always six decimals, rounded down."""
    return _text(value, USDT_PLACES)


def rate_text(value: Decimal) -> str:
    """Returns the rate with two decimals, such as `"92.15"`, rounded down (`Currency` of openapi.yaml)."""
    return _text(value, RATE_PLACES)


def percent_text(value: Decimal) -> str:
    """Returns `"5.00"`: a percentage with two decimals. The value is in percent already, 5 and not 0.05."""
    return _text(value, PERCENT_PLACES)


def share_text(part: int, whole: int) -> str:
    """Returns `"66.67"` for 2 of 3: a percentage with two decimals, rounded half up. The whole is not 0."""
    share = (Decimal(100 * part) / whole).quantize(Decimal(1).scaleb(-PERCENT_PLACES), rounding=ROUND_HALF_UP)
    return percent_text(share)


def _text(value: Decimal, places: int) -> str:
    if value.as_tuple().exponent != -places:  # as it comes from a column of that scale, it needs nothing
        value = round_down(value, places)
    return f"{abs(value) if value.is_zero() else value:f}"  # no "-0.00"
