"""Times that an operator types: `24h` for a day ago, `2026-11-22`, `2026-11-22T14:30`."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from kit.base.clock import SystemClock

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Protos, ids and NATS have no earlier time that all of them take."""

_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def age(text: str) -> timedelta:
    """Returns a text such as "24h" as a time. Raises ValueError."""
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if found is None:
        raise ValueError(f"{text!r} is no time such as 90s, 30m, 24h or 7d")
    return timedelta(seconds=int(found[1]) * _UNIT_SECONDS[found[2]])


def moment(text: str | datetime) -> datetime:
    """Returns the time of the text in UTC: an age before now, or a date with or without a time, in UTC unless it has a
    zone. Raises typer.BadParameter, also for a time before 1970.
    """
    if isinstance(text, datetime):
        return text
    try:
        found = _moment(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is no time such as 24h, 2026-11-22 or 2026-11-22T14:30") from None
    if found < EARLIEST:
        raise typer.BadParameter(f"{text!r} is before 1970")
    return found


def _moment(text: str) -> datetime:
    try:
        before = age(text)
    except ValueError:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    return SystemClock().now() - before


@dataclass(frozen=True)
class Month:
    """A month in UTC, from its first moment to that of the next one."""

    start: datetime
    end: datetime

    def __str__(self) -> str:
        return f"{self.start:%B %Y}"


def month(text: str | Month) -> Month:
    """Returns the month of a text such as 2026-11. Raises typer.BadParameter."""
    if isinstance(text, Month):
        return text
    try:
        start = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
        return Month(start, (start + timedelta(days=31)).replace(day=1))
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is no month such as 2026-11") from None


Since = Annotated[
    datetime | None,
    typer.Option(
        "--since", metavar="TIME", parser=moment, help="From then on: 24h, 2026-11-22, 2026-11-22T14:30."
    ),
]
Until = Annotated[
    datetime | None,
    typer.Option("--until", metavar="TIME", parser=moment, help="Before then; written as --since."),
]
