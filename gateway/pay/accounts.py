"""How an account is written, copied and put into a QR code.

The code holds what most banking apps take: where a standard lets them fill in the whole transfer, that, and elsewhere
the account alone, to the letter, which every phone's camera can copy (decision 0018).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

GROUP: Final = 4
EPC_NAME_MAX: Final = 70  # EPC069-12, AT-21

# Where a SEPA credit transfer can go; an IBAN of another country is refused by a banking app that scanned it.
SEPA_COUNTRIES: Final = (
    "AD AL AT BE BG CH CY CZ DE DK EE ES FI FR GB GI GR HR HU IE IS IT LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS SE "
    "SI SK SM VA"
)
_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}").fullmatch
_UPI: Final = re.compile(r"[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}").fullmatch


@dataclass(frozen=True)
class Code:
    """The content of a QR code; `fills_in`: a banking app fills in the whole transfer."""

    text: str
    fills_in: bool


def in_groups(account: str) -> Sequence[str]:
    """Long numbers and IBANs in groups of four, without the spaces that were typed; anything else in one piece.

    Together they are what is copied: fields of banks count spaces as characters, and cut off what is over.
    """
    dense = "".join(account.split())
    if is_iban(dense) or (dense.isascii() and dense.isdigit() and len(dense) > 2 * GROUP):
        return [dense[start : start + GROUP] for start in range(0, len(dense), GROUP)]
    return [account]


def is_iban(text: str) -> bool:
    """Whether its check digits are right (ISO 13616)."""
    if not _IBAN(text):
        return False
    return int("".join(str(int(letter, 36)) for letter in text[4:] + text[:4])) % 97 == 1


def code_of(*, account: str, holder: str, amount: str, currency: str) -> Code:
    """The content of the QR code for a transfer.

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
