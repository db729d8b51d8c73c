"""Verdicts on a load or a probe: each function returns what is wrong, nothing when all is well."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

RECOVERS_SECONDS: Final = 15
"""The longest time without an answer, beyond the time that a part which was killed takes to start."""
FEWEST: Final = 20


@dataclass(frozen=True, kw_only=True)
class Row:
    """One step.

    seen   what it came to
    wrong  what should not be
    told   what is not as it should be on a cluster for money, and no fault of Fiatgate's
    """

    step: str
    seen: str
    seconds: float
    wrong: Sequence[str] = field(default=())
    told: str = ""

    @property
    def verdict(self) -> str:
        return "broken" if self.wrong else self.told or "kept"


def of_load(figures: Mapping[str, Any], *, nothing_fails: bool, gap_seconds: float) -> list[str]:
    """nothing_fails: no request may; gap_seconds: longest time in which nothing was answered."""
    wrong = []
    if figures["requests"] < FEWEST:
        wrong.append(f"only {figures['requests']} requests: that shows nothing")
    if nothing_fails and figures["failed"]:
        wrong += [f"{count} failed, {why}" for why, count in figures["failures"].items()]
        wrong.append(f"they failed {figures['when']} s after the load began")
    if figures["gap_seconds"] > gap_seconds:
        wrong.append(f"no answer for {figures['gap_seconds']} s; {gap_seconds:g} are allowed")
    if figures["unreadable"]:
        wrong.append(f"{figures['unreadable']} invoices that had been answered can't be read")
    return wrong


def of_policies(reached: Mapping[str, bool], allowed: Sequence[str]) -> tuple[list[str], str]:
    """Returns what is wrong, and a remark: a cluster that enforces no policy lets everything through."""
    wrong = [f"{each} is not reached" for each in allowed if not reached[each]]
    open_ones = [each for each, is_open in reached.items() if is_open and each not in allowed]
    if open_ones and len(open_ones) == len(reached) - len(allowed):
        return wrong, "not enforced"
    return wrong + [f"{each} is reached, and others are not" for each in open_ones], ""


def load_text(figures: Mapping[str, Any]) -> str:
    asked = figures["requests"] / max(figures["asked_seconds"], 1)
    return (
        f"{figures['requests']:,} requests, {asked:.0f} a second, {figures['failed']} failed; "
        f"p50 {figures['p50_ms']} ms, p99 {figures['p99_ms']} ms, {figures['gap_seconds']} s without an answer"
    )
