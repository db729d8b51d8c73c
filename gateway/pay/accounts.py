"""The written form of an account, its text for copying, and its QR code.

The code holds a text that most banking apps accept: the whole transfer where a standard exists for it, elsewhere the
account alone, exactly as given, which every phone's camera can copy (decision 0018).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

GROUP: Final = 4
EPC_NAME_MAX: Final = 70  # EPC069-12, AT-21

# Countries of SEPA credit transfers; a banking app that scans an IBAN of another country refuses it.
SEPA_COUNTRIES: Final = (
    "AD AL AT BE BG CH CY CZ DE DK EE ES FI FR GB GI GR HR HU IE IS IT LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS SE "
    "SI SK SM VA"
)
_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}").fullmatch
_UPI: Final = re.compile(r"[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}").fullmatch


@dataclass(frozen=True)
class Code:
    """The content of a QR code. `fills_in`: a banking app fills in the whole transfer."""

    text: str
    fills_in: bool


def in_groups(account: str) -> Sequence[str]:
    """Returns the parts of an account: long numbers and IBANs in groups of four, without the typed spaces; anything
    else in one piece.

    The groups without spaces are the text for copying: banks' fields count spaces as characters, and cut off the rest.
    """
    dense = "".join(account.split())
    if is_iban(dense) or (dense.isascii() and dense.isdigit() and len(dense) > 2 * GROUP):
        return [dense[start : start + GROUP] for start in range(0, len(dense), GROUP)]
    return [account]


def is_iban(text: str) -> bool:
    """Returns whether the text is an IBAN with the right check digits (ISO 13616)."""
    if not _IBAN(text):
        return False
    return int("".join(str(int(letter, 36)) for letter in text[4:] + text[:4])) % 97 == 1


def code_of(*, account: str, holder: str, amount: str, currency: str) -> Code:
    """Returns the content of the QR code for a transfer.

    account  without spaces if it's a number, see `in_groups`
    amount   with 2 decimals
    """
    holder = " ".join(holder.split())
    if currency == "EUR" and is_iban(account) and account[:2] in SEPA_COUNTRIES:
        lines = ("BCD", "002", "1", "SCT", "", holder[:EPC_NAME_MAX], account, f"EUR{amount}")
        return Code("\n".join(lines), fills_in=True)
    if currency == "INR" and _UPI(account):
        return Code(
            f"upi://pay?pa={quote(account, safe='@')}&pn={quote(holder)}&am={amount}&cu=INR", fills_in=True
        )
    return Code(account, fills_in=False)
