"""How an account is written, and what its QR code says."""

from collections.abc import Sequence

import pytest

from gateway.pay.accounts import code_of
from kit.base.groups import account_in_groups, is_iban

IBAN = "DE89370400440532013000"


@pytest.mark.parametrize(
    ("account", "groups"),
    [
        ("4000002500003155", ["4000", "0025", "0000", "3155"]),
        ("4000 0025-0000 3155", ["4000 0025-0000 3155"]),
        ("40817810000000000001", ["4081", "7810", "0000", "0000", "0001"]),
        ("12345678", ["12345678"]),
        ("DE89 3704 0044 0532 0130 00", ["DE89", "3704", "0044", "0532", "0130", "00"]),
        (IBAN, ["DE89", "3704", "0044", "0532", "0130", "00"]),
        ("DE89 3704 0044", ["DE89 3704 0044"]),
        ("shop@upi", ["shop@upi"]),
        ("+491701234567", ["+49", "170", "1234567"]),
        ("+1 202 555 0143", ["+1", "202", "555", "0143"]),
        ("+999123456", ["+999123456"]),
        ("１２３４５６７８９", ["１２３４５６７８９"]),
    ],
)
def test_long_numbers_are_read_in_fours(account: str, groups: Sequence[str]) -> None:
    assert account_in_groups(account) == groups


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (IBAN, True),
        ("GB29NWBK60161331926819", True),
        ("KZ86125KZT5004100100", True),
        ("DE89370400440532013001", False),
        ("de89370400440532013000", False),
        ("DE8937040044", False),
        ("4000002500003155", False),
        ("", False),
    ],
)
def test_an_iban_is_known_by_its_check_digits(text: str, right: bool) -> None:
    assert is_iban(text) is right


def test_in_euro_the_banking_app_fills_in_the_transfer() -> None:
    code = code_of(account=IBAN, holder="Anna\n  Berg", amount="124.32", currency="EUR")
    assert code.fills_in
    assert code.text.split("\n") == ["BCD", "002", "1", "SCT", "", "Anna Berg", IBAN, "EUR124.32"]


def test_the_reference_stands_in_the_transfers_text() -> None:
    text = code_of(account=IBAN, holder="A", amount="1.00", currency="EUR", reference="7K3M9QTX").text
    assert text.split("\n")[7:] == ["EUR1.00", "", "", "7K3M9QTX"]
    longest = code_of(
        account=IBAN, holder="Ü" * 128, amount="999999999.99", currency="EUR", reference="7K3M9QTX"
    ).text
    assert len(longest.split("\n")) <= 12
    assert len(longest.encode()) <= 331  # EPC069-12


def test_a_holders_long_name_is_cut_where_the_standard_ends() -> None:
    text = code_of(account=IBAN, holder="Ü" * 128, amount="1.00", currency="EUR").text
    assert text.split("\n")[5] == "Ü" * 70
    assert len(text.encode()) <= 331  # EPC069-12


def test_in_rupees_a_upi_address_says_the_amount() -> None:
    code = code_of(account="anna.berg@okbank", holder="Anna & Co", amount="999.00", currency="INR")
    assert (code.fills_in, code.text) == (
        True,
        "upi://pay?pa=anna.berg@okbank&pn=Anna%20%26%20Co&am=999.00&cu=INR",
    )


def test_the_note_of_a_upi_payment_is_the_reference() -> None:
    link = code_of(
        account="anna@okbank", holder="Anna", amount="999.00", currency="INR", reference="7K3M9QTX"
    ).text
    assert link == "upi://pay?pa=anna@okbank&pn=Anna&am=999.00&cu=INR&tn=7K3M9QTX"


@pytest.mark.parametrize(
    ("account", "currency"),
    [
        ("4000002500003155", "EUR"),
        (IBAN, "USD"),
        ("KZ86125KZT5004100100", "EUR"),  # out of reach of SEPA
        ("anna@bank.example", "INR"),  # a mail address
        ("anna@okbank", "EUR"),
    ],
)
def test_anywhere_else_the_code_is_the_account_to_the_letter(account: str, currency: str) -> None:
    code = code_of(account=account, holder="Anna Berg", amount="1.00", currency=currency)
    assert (code.text, code.fills_in) == (account, False)
