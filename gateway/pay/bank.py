"""Test mode: what a bank may do about a payment, as buttons of its page."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from gateway.pay.languages import N_
from gateway.pay.view import Screen, View


@dataclass(frozen=True)
class Step:
    """A button. `amount` is that of the simulated step, or empty."""

    name: str
    words: str
    amount: str = ""


PAID: Final = Step("confirm", N_("The money came"))
REJECTED: Final = Step("reject", N_("No money came"))
LATE: Final = Step("late", N_("The money comes too late"))


def steps_of(view: View) -> Sequence[Step]:
    """Returns the steps that the bank could cause now."""
    if view.screen is Screen.OUTCOME:
        return [LATE] if view.can_report_late_money else []
    half = Decimal(view.amount) // 2
    less = [Step("resolve", N_("Half of it came"), f"{half}")] if half else []
    return [PAID, *less, REJECTED, *([LATE] if view.screen is Screen.PAY else [])]
