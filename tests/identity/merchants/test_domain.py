"""Who is let in, and which values are taken."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.base.money import parse_fraction
from services.identity.domain import merchants as domain
from services.identity.domain.merchants import Merchant, MerchantStatus
from services.identity.operations import fields
from tests.support.clock import START

ACTIVE = Merchant(
    merchant_id=UUID(int=1),
    name="A shop",
    owner_email="owner@example.com",
    owner_blocked=False,
    activated_at=START,
    banned_at=None,
    category_code=None,
    category_commission=None,
    client_share=Decimal(0),
    callback_url=None,
    success_url=None,
    fail_url=None,
    allowed_currencies=[],
    allowed_methods=[],
    created_at=START,
)

# Of several reasons the first one of this order is reported (docs/api.md#authentication).
REASONS = ("OWNER_BLOCKED", "MERCHANT_BLOCKED", "MERCHANT_NOT_ACTIVE", None)


@pytest.mark.parametrize(("blocked", "banned", "inactive"), list(product([True, False], repeat=3)))
def test_of_several_obstacles_the_first_in_the_documented_order_is_reported(
    blocked: bool, banned: bool, inactive: bool
) -> None:
    merchant = replace(
        ACTIVE,
        owner_blocked=blocked,
        banned_at=START if banned else None,
        activated_at=None if inactive else START,
    )
    assert domain.obstacle(merchant) == REASONS[[blocked, banned, inactive, True].index(True)]


@pytest.mark.parametrize(
    ("activated", "banned", "status"),
    [
        (False, False, MerchantStatus.INACTIVE),
        (True, False, MerchantStatus.ACTIVE),
        (False, True, MerchantStatus.BANNED),
        (True, True, MerchantStatus.BANNED),
    ],
)
def test_a_ban_hides_whatever_was_before_it(activated: bool, banned: bool, status: MerchantStatus) -> None:
    instants = (START if activated else None, START + timedelta(days=1) if banned else None)
    assert domain.status_of(*instants) is status


@pytest.mark.parametrize("text", ["a", " Padded ", "x" * 128, "Café №1", "店", "👩‍💻 shop"])
def test_a_name_is_kept_without_the_spaces_around_it(text: str) -> None:
    assert fields.parse_name(text) == text.strip()


@pytest.mark.parametrize("text", ["", "   ", "x" * 129, "a\0b", "a\nb", "a\x7fb", "a\u2028b", "a\ud800b"])
def test_a_name_that_is_empty_too_long_or_unprintable_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        fields.parse_name(text)


def test_an_owner_is_the_same_whatever_the_case_of_the_address() -> None:
    assert fields.parse_email(" Owner@Example.COM ") == "owner@example.com"


@pytest.mark.parametrize(
    "text",
    ["", "@", "a@", "@b", "a b@c.d", "a@b@c", "a\0@b.c", "a@b.c\n@d", "a" * 65 + "@b.c", "a@" + "b" * 260],
)
def test_what_cannot_be_an_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        fields.parse_email(text)


@pytest.mark.parametrize(
    ("text", "shortest"), [("0", "0"), ("1.000000", "1"), ("0.050", "0.05"), ("-0", "0")]
)
def test_a_fraction_is_written_as_short_as_it_can_be(text: str, shortest: str) -> None:
    assert domain.fraction_text(parse_fraction(text)) == shortest


@pytest.mark.parametrize(
    "text",
    ["", "1.01", "-0.01", "0.0000001", "1e-2", "NaN", "Infinity", "0,5", " 0.5", ".5", "٠", "5%", "1" * 50],
)
def test_what_is_no_fraction_from_zero_to_one_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|number"):
        parse_fraction(text)


@given(st.integers(0, 10**6).map(lambda millionths: Decimal(millionths).scaleb(-6)))
def test_every_fraction_of_six_decimals_comes_back_from_its_text(fraction: Decimal) -> None:
    text = domain.fraction_text(fraction)
    assert parse_fraction(text) == fraction
    assert "e" not in text.lower()


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    for parse in (
        fields.parse_name,
        fields.parse_key_name,
        fields.parse_email,
        fields.parse_category_code,
        parse_fraction,
    ):
        try:
            value = parse(text)
        except ValueError:
            continue
        assert "\0" not in str(value)
        str(value).encode()  # neither PostgreSQL nor protobuf takes halves of surrogate pairs


def test_allowed_currencies_are_upper_case_and_each_once() -> None:
    assert fields.parse_currency_codes(["rub", "USD", "RUB"]) == ["RUB", "USD"]


def test_allowed_methods_are_kept_to_the_letter() -> None:
    assert fields.parse_method_codes(["sbp", "Card-RU", "sbp"]) == ["sbp", "Card-RU"]


@pytest.mark.parametrize("codes", [["RUBL"], [""], ["R B"], ["ßx"], ["RUB\n"]])
def test_what_is_no_currency_code_is_refused(codes: list[str]) -> None:
    with pytest.raises(ValueError, match="three letters"):
        fields.parse_currency_codes(codes)


def test_the_number_of_allowed_codes_is_bounded() -> None:
    with pytest.raises(ValueError, match="at most 200"):
        fields.parse_method_codes([f"m{number}" for number in range(201)])
