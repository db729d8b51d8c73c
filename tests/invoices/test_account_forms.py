"""The forms of accounts: a mistyped one is refused when it is added, a right one is stored in one form."""

from collections.abc import Iterator
from itertools import product
from string import ascii_uppercase, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fiatgate.catalog.v1 import catalog_pb2
from kit.base.account_forms import AccountKind, normal_form
from services.invoices.operations import requisites
from tests.invoices.conftest import World
from tests.support.acting import refusal

IBAN = "DE02120300000000202051"

RIGHT = [
    (AccountKind.IBAN, "DE02 1203 0000 0000 2020 51", IBAN),
    (AccountKind.IBAN, "de02-1203-0000-0000-2020-51", IBAN),
    (AccountKind.IBAN, "GB82 WEST 1234 5698 7654 32", "GB82WEST12345698765432"),
    (AccountKind.IBAN, "TR330006100519786457841326", "TR330006100519786457841326"),
    (AccountKind.IBAN, "KZ86 125K ZT50 0410 0100", "KZ86125KZT5004100100"),
    (AccountKind.CARD, "4242 4242 4242 4242", "4242424242424242"),
    (AccountKind.CARD, "2200-1234-5678-9019", "2200123456789019"),
    (AccountKind.PHONE, "+49 (170) 123 45 67", "+491701234567"),
    (AccountKind.PHONE, "+7 916 123-45-67", "+79161234567"),
    (AccountKind.UPI, " Shop.Name@OkAxis ", "shop.name@okaxis"),
    (AccountKind.FREE, "hello", "hello"),
    (AccountKind.FREE, "DE03 1203", "DE03 1203"),
]
WRONG = [
    (AccountKind.IBAN, "hello"),
    (AccountKind.IBAN, "DE03120300000000202051"),
    (AccountKind.IBAN, "DE02120300000000202015"),
    (AccountKind.IBAN, IBAN[:-1]),
    (AccountKind.IBAN, IBAN + "0"),
    (AccountKind.IBAN, "XX82WEST12345698765432"),
    (AccountKind.IBAN, "4242424242424242"),
    (AccountKind.CARD, "hello"),
    (AccountKind.CARD, "4242 4242 4242 4224"),
    (AccountKind.CARD, "42424242424"),
    (AccountKind.CARD, "42" * 10),
    (AccountKind.CARD, "\uff14242424242424242"),
    (AccountKind.PHONE, "hello"),
    (AccountKind.PHONE, "0170 1234567"),
    (AccountKind.PHONE, "+49 170 1"),
    (AccountKind.PHONE, "+999 1234567"),
    (AccountKind.PHONE, "+49 170 1234567 ext. 5"),
    (AccountKind.UPI, "hello"),
    (AccountKind.UPI, "a@okaxis"),
    (AccountKind.UPI, "shop@1bank"),
    (AccountKind.UPI, "shop name@okaxis"),
    (AccountKind.UPI, "shop@ok@axis"),
]


@pytest.mark.parametrize(("kind", "typed", "stored"), RIGHT)
def test_an_account_of_its_kind_is_stored_in_one_form(kind: AccountKind, typed: str, stored: str) -> None:
    assert normal_form(kind, typed) == stored
    assert normal_form(kind, stored) == stored


@pytest.mark.parametrize(("kind", "typed"), WRONG)
def test_an_account_of_another_form_is_refused(kind: AccountKind, typed: str) -> None:
    with pytest.raises(ValueError, match=r"IBAN|card|telephone|UPI"):
        normal_form(kind, typed)


def test_an_iban_with_one_wrong_character_is_refused() -> None:
    for place, other in product(range(len(IBAN)), digits + ascii_uppercase):
        mistyped = IBAN[:place] + other + IBAN[place + 1 :]
        if mistyped != IBAN:
            with pytest.raises(ValueError, match="IBAN"):
                normal_form(AccountKind.IBAN, mistyped)


@given(st.sampled_from(AccountKind), st.text(max_size=64))
def test_any_text_is_an_account_or_refused(kind: AccountKind, typed: str) -> None:
    try:
        stored = normal_form(kind, typed)
    except ValueError:
        return
    assert normal_form(kind, stored) == stored


@pytest.fixture
def of_ibans(world: World) -> Iterator[World]:
    """The world where the accounts of card_eur are IBANs."""
    _set_kind(world, "ACCOUNT_KIND_IBAN")
    yield world
    _set_kind(world, "ACCOUNT_KIND_FREE")


def _set_kind(world: World, kind: str) -> None:
    methods = world.catalog.GetCatalog(catalog_pb2.GetCatalogRequest()).methods
    method = next(each for each in methods if each.method_code == "card_eur")
    method.account_kind = catalog_pb2.AccountKind.Value(kind)
    world.catalog.SetPaymentMethod(catalog_pb2.SetPaymentMethodRequest(method=method))


def test_only_accounts_of_the_methods_kind_can_be_added_and_those_from_before_stay(of_ibans: World) -> None:
    before = requisites.list_requisites(of_ibans.deps, method_code="card_eur")
    for typed in ("hello", "DE03 1203 0000 0000 2020 51"):
        refused = refusal(
            requisites.add_requisite,
            of_ibans.deps,
            method_code="card_eur",
            holder="A. Holder",
            account=typed,
            bank=None,
            max_deals=1,
        )
        assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", "account")
        assert "this is no IBAN" in refused.message
    assert requisites.list_requisites(of_ibans.deps, method_code="card_eur") == before
    added = requisites.add_requisite(
        of_ibans.deps,
        method_code="card_eur",
        holder="A. Holder",
        account="de02 1203 0000 0000 2020 51",
        bank=None,
        max_deals=1,
    )
    assert added.account == IBAN
