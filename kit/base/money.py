"""Decimal amounts: read from text, rounded in a stated direction, written as the API writes them.

Never float. Results are exact: the arithmetic here runs at a precision that no accepted input can exceed.
docs/api.md#conventions has the numbers of decimals, docs/api.md#commission how amounts are rounded.
"""

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Final

MAX_LENGTH = 40
FIAT_PLACES = 2
USDT_PLACES = 6
RATE_PLACES = 2
PERCENT_PLACES = 2
FRACTION_PLACES = 6
PER_CENT: Final = "expected 0 to 100 per cent, with at most 4 decimals"
"""The sentence for people about a fraction that is none."""
_DECIMALS: Final[Mapping[str, int]] = {
    code: places
    for places, codes in (
        (0, "AFN ALL BIF CLP DJF GNF IQD IRR ISK JPY KMF KPW KRW LAK LBP MGA MMK PYG RSD RWF SLL SOS SYP"),
        (0, "UGX UYI VND VUV XAF XOF XPF YER ADP BYR ESP ITL LUF MGF MRO STD TMM TRL ZMK ZWD"),
        (3, "BHD JOD KWD LYD OMR TND"),
        (4, "CLF UYW"),
        (USDT_PLACES, "USDT"),
    )
    for code in codes.split()
}
"""The usual decimals of currencies that have another number than two, as CLDR has them."""

_PLAIN = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_CURRENCY = r"(?:[A-Za-z]{3}|[$€£¥₹₺₽₸₴₩])"
_TYPED = re.compile(rf"(?:{_CURRENCY}\s*)?(?P<number>[0-9][0-9.,'’\s]*[0-9]|[0-9])(?:\s*{_CURRENCY})?")
_GROUPED = re.compile(
    r"(?P<whole>[1-9][0-9]{0,2}(?P<mark>[.,'’\s])[0-9]{3}(?:(?P=mark)[0-9]{3})*)(?:[.,](?P<rest>[0-9]{1,2}))?"
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


def typed_decimal(text: str, *, grouped: bool = True) -> Decimal:
    """Returns the amount that a person typed or copied from a statement: `51.00`, `51,00`, `2,000`, `1 234,50`,
    `1.234,50 €`, `EUR 1,234.50`. `1.234` is as the API writes it.

    Raises `ValueError` for other text; also for `1,234` unless it is `grouped`: a rate may have three decimals.
    """
    typed = _TYPED.fullmatch(text.strip())
    number = typed["number"] if typed else text
    if _PLAIN.fullmatch(number):
        return parse_decimal(number)
    if not grouped and re.fullmatch(r"[1-9][0-9]{0,2},[0-9]{3}", number):
        whole, point = number.replace(",", ""), number.replace(",", ".")
        raise ValueError(f"{number} may be either number: write {whole} or {point}")
    if found := _GROUPED.fullmatch(number):
        whole = found["whole"].replace(found["mark"], "")
        return parse_decimal(f"{whole}.{found['rest']}" if found["rest"] else whole)
    return parse_decimal(number.replace(",", "."))


def plainly(text: str, *, grouped: bool = True) -> str:
    """Returns the amount that a person typed as services take it; a text that is none as it is: they refuse it."""
    try:
        return f"{typed_decimal(text, grouped=grouped):f}"
    except ValueError:
        return text.strip()


def fraction_of(percent: str) -> str:
    """Returns `0.05` for the `5`, `5,0` or `5 %` that a person typed; a text that is no number as it is."""
    try:
        return f"{typed_decimal(percent.strip().removesuffix('%')).scaleb(-2).normalize():f}"
    except ValueError:
        return percent


def percent_of(fraction: str) -> str:
    """Returns `5` for the fraction `0.05`; a text that is none as it is."""
    try:
        return f"{(parse_fraction(fraction) * 100).normalize():f}"
    except ValueError:
        return fraction


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


def decimals_of(currency: str) -> int:
    """Returns the currency's usual number of decimals; two for unknown currencies."""
    return _DECIMALS.get(currency, FIAT_PLACES)


def own_text(amount: str, currency: str) -> str:
    """Returns the amount with the currency's usual decimals, but never fewer than it has: `12240` yen."""
    value, places = Decimal(amount), decimals_of(currency)
    return _text(value, places) if has_decimals(value, at_most=places) else amount


def amount_text(amount: str | Decimal, currency: str = "") -> str:
    """Returns the amount for people: `12,240` yen, `1,234.50`. A text that is no amount stays as it is."""
    text = amount if isinstance(amount, str) else f"{amount:f}"
    try:
        value = parse_decimal(text)
    except ValueError:
        return text
    return f"{Decimal(own_text(text, currency)) if currency else value:,f}"


def money_text(amount: str, currency: str) -> str:
    """Returns `12,240 JPY`; empty for an empty amount."""
    return f"{amount_text(amount, currency)} {currency}" if amount else ""


def _text(value: Decimal, places: int) -> str:
    if value.as_tuple().exponent != -places:  # as it comes from a column of that scale, it needs nothing
        value = round_down(value, places)
    return f"{abs(value) if value.is_zero() else value:f}"  # no "-0.00"
