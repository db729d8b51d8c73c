"""How often each wall has refused something: one series per wall and kind, both from lists of ours."""

from __future__ import annotations

from typing import Final

from kit import metrics

TURNED_AWAY: Final = metrics.counter(
    "turned_away",
    "Requests and connections that a bound of the gateway refused, by bound and kind",
    ["wall", "kind"],
)


def begin(wall: str, kind: str = "") -> None:
    """Shows the series at 0: a first refusal in a series that is new is no increase to Prometheus."""
    TURNED_AWAY.labels(wall, kind)


for _wall in ("strangers", "page", "logos"):
    begin(_wall)


def count(wall: str, kind: str = "") -> None:
    """Counts one refusal. Neither label may hold what a client chose."""
    TURNED_AWAY.labels(wall, kind).inc()
