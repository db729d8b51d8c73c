"""Late money in words: a merchant's policy, its answer, and what an operator did."""

from collections.abc import Mapping
from typing import Final

POLICIES: Final[Mapping[str, str]] = {
    "ask_credit": "Ask the merchant; without an answer in time credit it",
    "ask_return": "Ask the merchant; without an answer in time send it back",
    "credit": "Credit it to the merchant",
    "return": "Send it back to the customer",
}
ANSWERS: Final[Mapping[str, str]] = {"credit": "credit it", "return": "send it back"}
ENDS: Final[Mapping[str, str]] = {
    "credit": "credited to the merchant",
    "return": "goes back to the customer",
    "answer_only": "only answered",
}
