"""The written forms of an account and a payment reference, their texts for copying, and the account's QR code.

The code holds a text that most banking apps accept: the whole transfer where a standard exists for it, elsewhere the
account alone, exactly as given, which every phone's camera can copy (docs/decisions/0006).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import quote

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberFormat

GROUP: Final = 4
EPC_NAME_MAX: Final = 70  # EPC069-12, AT-21

# Countries of SEPA credit transfers; a banking app that scans an IBAN of another country refuses it.
SEPA_COUNTRIES: Final = (
    "AD AL AT BE BG CH CY CZ DE DK EE ES FI FR GB GI GR HR HU IE IS IT LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS SE "
    "SI SK SM VA"
)
_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}").fullmatch
_PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}").fullmatch  # E.164
_UPI: Final = re.compile(r"[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}").fullmatch


@dataclass(frozen=True)
class Code:
    """The content of a QR code. `fills_in`: a banking app fills in the whole transfer."""

    text: str
    fills_in: bool


def account_in_groups(account: str) -> Sequence[str]:
    """Returns the parts of an account: long numbers and IBANs in groups of four, telephone numbers as their country
    writes them, without the typed spaces; anything else in one piece.

    The groups without spaces are the text for copying: banks' fields count spaces as characters, and cut off the rest.
    """
    dense = "".join(account.split())
    if is_iban(dense) or (dense.isascii() and dense.isdigit() and len(dense) > 2 * GROUP):
        return _fours(dense)
    return list(_of_phone(dense)) if _PHONE(dense) else [account]


def reference_in_groups(reference: str) -> Sequence[str]:
    """Returns the two parts of a payment reference; none for an empty one."""
    return _fours(reference)


def _fours(text: str) -> Sequence[str]:
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


def code_of(*, account: str, holder: str, amount: str, currency: str, reference: str = "") -> Code:
    """Returns the content of the QR code for a transfer.

    account    without spaces if it's a number, see `account_in_groups`
    amount     with 2 decimals
    reference  for the transfer's text; empty: none
    """
    holder = " ".join(holder.split())
    if currency == "EUR" and is_iban(account) and account[:2] in SEPA_COUNTRIES:
        lines = ["BCD", "002", "1", "SCT", "", holder[:EPC_NAME_MAX], account, f"EUR{amount}"]
        if (
            reference
        ):  # after the purpose's code and a structured reference: the unstructured one, which banks show
            lines += ["", "", reference]
        return Code("\n".join(lines), fills_in=True)
    if currency == "INR" and _UPI(account):
        link = f"upi://pay?pa={quote(account, safe='@')}&pn={quote(holder)}&am={amount}&cu=INR"
        return Code(f"{link}&tn={reference}" if reference else link, fills_in=True)
    return Code(account, fills_in=False)
