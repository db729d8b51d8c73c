"""The written forms of long numbers: of bank accounts, cards and telephones."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberFormat

GROUP: Final = 4
_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}").fullmatch
_PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}").fullmatch  # E.164


def account_in_groups(account: str) -> Sequence[str]:
    """Returns the parts of an account: long numbers and IBANs in groups of four, telephone numbers as their country
    writes them, without the typed spaces; anything else in one piece.

    The groups without spaces are the text for copying: banks' fields count spaces as characters, and cut off the rest.
    """
    dense = "".join(account.split())
    if is_iban(dense) or (dense.isascii() and dense.isdigit() and len(dense) > 2 * GROUP):
        return fours(dense)
    return list(_of_phone(dense)) if _PHONE(dense) else [account]


def masked(account: str) -> str:
    """Returns the last characters of an account: four, of a short one fewer."""
    dense = "".join(account.split())
    return f"···{dense[-min(GROUP, len(dense) // 3) :]}" if len(dense) > 2 else "···"


def fours(text: str) -> Sequence[str]:
    """Returns the text in pieces of four characters."""
    return [text[start : start + GROUP] for start in range(0, len(text), GROUP)]


@lru_cache(maxsize=1024)
def _of_phone(number: str) -> tuple[str, ...]:
    try:
        parsed = phonenumbers.parse(number)
    except NumberParseException:
        return (number,)
    written = phonenumbers.format_number(parsed, PhoneNumberFormat.INTERNATIONAL)
    groups = tuple(re.findall(r"\+?[0-9]+", written))
    return groups if "".join(groups) == number else (number,)


def is_iban(text: str) -> bool:
    """Returns whether the text is an IBAN with the right check digits (ISO 13616)."""
    if not _IBAN(text):
        return False
    return int("".join(str(int(letter, 36)) for letter in text[4:] + text[:4])) % 97 == 1
