"""The words of corrections."""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "reversal": "taken back",
    "late_credit": "late money credited",
    "surplus": "surplus credited",
    "manual_credit": "credited by hand",
    "manual_debit": "debited by hand",
}
"""The effect of a correction, by its kind."""
DEBITS: Final = frozenset({"reversal", "manual_debit"})
HEADINGS: Final[Mapping[str, str]] = {
    "reversal": "Take back a credit",
    "late_credit": "Credit late money",
    "surplus": "More came than was asked",
    "manual": "Correct a balance",
}
"""The heading of the form, by its kind."""
DIRECTIONS: Final[Mapping[str, str]] = {
    "manual_credit": "The merchant gets the amount",
    "manual_debit": "The amount is taken from the merchant",
}
CHANGED: Final = "It would move {} USDT by now, so nothing was done. Look at it again."
