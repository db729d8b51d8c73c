"""Checks that an account has the form of its kind: customers would send money to a mistyped one.

The check digits catch typing errors. A right form does not prove that the account exists. Libraries read IBANs, cards
and telephone numbers.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberFormat
from stdnum import iban, luhn
from stdnum.exceptions import ValidationError

CARD_DIGITS: Final = range(12, 20)  # ISO/IEC 7812

# A person's UPI address (NPCI, "Unified Payments Interface: Procedural Guidelines"): a name, and the handle of a bank.
_UPI_FORM: Final = re.compile(r"[a-z0-9._-]{2,256}@[a-z][a-z0-9]{1,63}").fullmatch
_BETWEEN_DIGITS: Final = str.maketrans("", "", " -\t\u00a0")


class AccountKind(StrEnum):
    """The kinds of accounts that a payment method may have."""

    FREE = "free"
    IBAN = "iban"
    CARD = "card"
    PHONE = "phone"
    UPI = "upi"


_ALONE: Final = frozenset({AccountKind.IBAN, AccountKind.CARD, AccountKind.UPI})
"""The kinds whose accounts are told apart without their bank."""


def account_key(text: str) -> str:
    """Returns the letters and digits of an account, as capitals, however it is spaced; empty for text without any."""
    return "".join(each for each in text if each.isalnum()).upper()


def same_account(kind: AccountKind, one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    """Returns whether two accounts of a method, each with its bank, are one: money to one is money to the other.

    Spaces, hyphens and capitals make no difference. The other signs of an address as j.doe@bank do. A number of a
    telephone, or of free text, is one account at each of two banks.
    """
    if _key(one[0]) != _key(other[0]) or not _key(one[0]):
        return False
    banks = [" ".join(bank.split()).casefold() for _, bank in (one, other) if bank]
    return kind in _ALONE or len(banks) < 2 or banks[0] == banks[1]


def _key(account: str) -> str:
    return account.translate(_BETWEEN_DIGITS).casefold() if "@" in account else account_key(account)


def normal_form(kind: AccountKind, account: str) -> str:
    """Returns the account as it is stored: an IBAN in capitals, a card's digits, E.164, a UPI address in small letters,
    each without blanks. Free text stays as it is.

    Raises ValueError with a sentence for operators.
    """
    return _FORMS[kind](account)


def _iban(account: str) -> str:
    try:
        valid = str(iban.validate(account.translate(_BETWEEN_DIGITS)))
    except ValidationError:
        valid = ""
    if not valid[2:4].isdigit():  # the library computes with letters there too
        raise ValueError("this is no IBAN: its length or its check digits are wrong for its country")
    return valid


def _card(account: str) -> str:
    digits = account.translate(_BETWEEN_DIGITS)
    if not digits.isascii() or not digits.isdigit() or len(digits) not in CARD_DIGITS:
        raise ValueError("a card number has 12 to 19 digits")
    if not luhn.is_valid(digits):
        raise ValueError("this is no card number: its check digit is wrong")
    return digits


def _phone(account: str) -> str:
    try:
        number = phonenumbers.parse(account)
    except NumberParseException:
        raise ValueError("a telephone number begins with + and its country code") from None
    if number.extension or not phonenumbers.is_valid_number(number):
        raise ValueError("there are no telephone numbers like this one in its country")
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)


def _upi(account: str) -> str:
    address = account.strip().lower()
    if not _UPI_FORM(address):
        raise ValueError("a UPI address looks like name@bank")
    return address


_FORMS: Final[Mapping[AccountKind, Callable[[str], str]]] = MappingProxyType(
    {
        AccountKind.FREE: lambda account: account,
        AccountKind.IBAN: _iban,
        AccountKind.CARD: _card,
        AccountKind.PHONE: _phone,
        AccountKind.UPI: _upi,
    }
)
