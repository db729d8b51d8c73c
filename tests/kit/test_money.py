"""kit.base.money: nothing is lost, nothing is gained, nothing odd gets in."""

from decimal import Decimal

import pytest
from babel.core import get_global
from hypothesis import given
from hypothesis import strategies as st

from kit.base.money import (
    amount_text,
    decimals_of,
    fiat_text,
    fraction_of,
    money_text,
    parse_decimal,
    percent_of,
    percent_text,
    plainly,
    rate_text,
    round_down,
    round_up,
    share_text,
    typed_decimal,
    usdt_text,
)

amounts = st.decimals(
    min_value=-(10**25), max_value=10**25, allow_nan=False, allow_infinity=False, places=9
) | st.decimals(min_value=-1, max_value=1, allow_nan=False, places=9)
places = st.integers(min_value=0, max_value=8)


@given(amounts, places)
def test_rounding_keeps_its_direction_and_loses_less_than_one_unit(value: Decimal, digits: int) -> None:
    unit = Decimal(1).scaleb(-digits)
    down, up = round_down(value, digits), round_up(value, digits)
    assert down <= value <= up
    assert value - down < unit
    assert up - value < unit
    assert -down.as_tuple().exponent == digits  # type: ignore[operator]


@given(amounts, places)
def test_rounding_what_is_rounded_changes_nothing(value: Decimal, digits: int) -> None:
    assert round_up(round_down(value, digits), digits) == round_down(value, digits)


@given(st.decimals(min_value=-(10**20), max_value=10**20, allow_nan=False, places=2))
def test_a_fiat_amount_survives_its_own_text(value: Decimal) -> None:
    assert parse_decimal(fiat_text(value)) == value


@given(st.text(max_size=60))
def test_any_text_is_a_finite_number_or_a_value_error(text: str) -> None:
    try:
        value = parse_decimal(text)
    except ValueError:
        return
    assert value.is_finite()
    assert len(text) <= 40


@pytest.mark.parametrize("text", ["100", "100.5", "100.50", "0", "-1.5", "+2", "007.10", "9" * 40])
def test_plain_numbers_are_read_exactly(text: str) -> None:
    assert parse_decimal(text) == Decimal(text)


ODD = [
    "",
    " ",
    "1e3",
    "1E3",
    "NaN",
    "Infinity",
    "-",
    ".5",
    "5.",
    "1,000",
    "1_000",
    " 1",
    "1\n",
    "0x1",
    "٣",
    "½",
]
LONG = ["9" * 41, "1" * 5000, "1.2.3", "--1"]


@pytest.mark.parametrize("text", ODD + LONG)
def test_everything_else_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse_decimal(text)


def test_each_text_has_the_decimals_that_the_api_promises() -> None:
    assert fiat_text(Decimal("100.5")) == "100.50"
    assert fiat_text(Decimal("1E+3")) == "1000.00"
    assert usdt_text(Decimal("1.0869565217")) == "1.086956"
    assert rate_text(Decimal("92.159")) == "92.15"
    assert percent_text(Decimal(5)) == "5.00"
    assert [share_text(part, 3) for part in range(4)] == ["0.00", "33.33", "66.67", "100.00"]
    assert usdt_text(Decimal("-0.0")) == "0.000000"
    assert fiat_text(Decimal(10) ** 39) == "1" + "0" * 39 + ".00"


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        *(
            (each, "51")
            for each in ("51", "51.00", "51,00", " 51,0 ", "EUR 51.00", "51.00 EUR", "€51,00", "51 ₺")
        ),
        *((each, "1234.5") for each in ("1234,5", "1,234.50", "1.234,50", "1 234,50", "1\u202f234,50 €")),
        *((each, "2000") for each in ("2,000", "€2,000", "2 000,00")),
        *((each, "0.123") for each in ("0,123", "0.123")),
        *((each, "1234567") for each in ("1,234,567", "1.234.567", "1'234'567.00", "USD 1,234,567.00")),
    ],
)
def test_an_amount_is_read_as_statements_print_it(text: str, amount: str) -> None:
    assert typed_decimal(text) == Decimal(amount)


def test_a_rate_of_three_decimals_is_not_taken_for_thousands() -> None:
    assert [plainly(each, grouped=False) for each in ("1,085", "92,15", "0,925")] == [
        "1,085",
        "92.15",
        "0.925",
    ]


def test_an_amount_is_shown_with_the_decimals_of_its_currency_and_thousands_apart() -> None:
    assert money_text("12240.00", "JPY") == "12,240 JPY"
    assert [amount_text("1234.50", each) for each in ("EUR", "JPY", "KWD")] == [
        "1,234.50",
        "1,234.50",
        "1,234.500",
    ]
    assert amount_text(Decimal("1234.50")) == "1,234.50"
    assert [amount_text(each) for each in ("-1234.000001", "order-17", "")] == [
        "-1,234.000001",
        "order-17",
        "",
    ]
    usual = {
        code: places for code, (places, *_) in get_global("currency_fractions").items() if code != "DEFAULT"
    }
    assert {code: decimals_of(code) for code in usual} == usual


def test_a_fraction_is_shown_and_typed_in_per_cent() -> None:
    assert [percent_of(each) for each in ("0.05", "0.050000", "1", "half")] == ["5", "5", "100", "half"]
    assert [fraction_of(each) for each in ("5", "5 %", "12,5", "50", "half")] == [
        "0.05",
        "0.05",
        "0.125",
        "0.5",
        "half",
    ]


@pytest.mark.parametrize("text", ["1,23,4", "1.2.3", "12 34", "order-17", "EUR", ""])
def test_an_amount_that_may_be_two_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        typed_decimal(text)
