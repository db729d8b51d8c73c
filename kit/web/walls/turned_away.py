"""Counts the refusals of each wall: one series per wall and kind, both from fixed lists."""

from __future__ import annotations

from typing import Final

from kit.observe import metrics

TURNED_AWAY: Final = metrics.counter(
    "turned_away",
    "Requests that a bound of the process refused, by bound and kind",
    ["wall", "kind"],
)


def begin(wall: str, kind: str = "") -> None:
    """Starts the series at 0: for Prometheus a new series that begins with 1 is no increase."""
    TURNED_AWAY.labels(wall, kind)


def count(wall: str, kind: str = "") -> None:
    """Counts one refusal. Neither label may hold a client's text."""
    TURNED_AWAY.labels(wall, kind).inc()
