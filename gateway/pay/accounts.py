"""The written forms of an account and a payment reference, their texts for copying, and the account's QR code.

The code holds a text that most banking apps accept: the whole transfer where a standard exists for it, elsewhere the
account alone, exactly as given, which every phone's camera can copy (docs/decisions/0006).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from kit.base.groups import fours, is_iban

EPC_NAME_MAX: Final = 70  # EPC069-12, AT-21

# Countries of SEPA credit transfers; a banking app that scans an IBAN of another country refuses it.
SEPA_COUNTRIES: Final = (
    "AD AL AT BE BG CH CY CZ DE DK EE ES FI FR GB GI GR HR HU IE IS IT LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS SE "
    "SI SK SM VA"
)
_UPI: Final = re.compile(r"[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}").fullmatch


@dataclass(frozen=True)
class Code:
    """The content of a QR code. `fills_in`: a banking app fills in the whole transfer."""

    text: str
    fills_in: bool


def reference_in_groups(reference: str) -> Sequence[str]:
    """Returns the two parts of a payment reference; none for an empty one."""
    return fours(reference)


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
