"""Charts as numbers of an SVG picture, made from the same rows as the table beneath (macros `bars` and `lines`).

All numbers are whole units of a fixed picture: a template writes them as they are. A chart shows shape, the table
has the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final, TypeVar

WIDTH: Final = 720
HEIGHT: Final = 220
LEFT: Final = 64
"""Room for the numbers of the axis."""
RIGHT: Final = 24
"""Room for half of the last label of a line."""
BOTTOM: Final = 24
TOP: Final = 10
BARS_MAX: Final = 400
LABELS_MOST: Final = 8
_STEPS: Final = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
LINES: Final = 4
"""Lines of the grid above zero."""

T = TypeVar("T")


@dataclass(frozen=True)
class Tick:
    """A line of the grid (`at` is its y) or a label of the axis below (`at` is its x)."""

    at: int
    text: str


@dataclass(frozen=True)
class Bar:
    """One value. `title` is read out, and shown under the pointer."""

    x: int
    y: int
    width: int
    height: int
    title: str
    tone: str = ""


@dataclass(frozen=True)
class Chart:
    """A picture of one or more series over the same labels.

    title   what is shown, with its unit
    series  the points of each line, as SVG writes them; empty for bars
    bars    empty for lines
    """

    title: str
    ticks: Sequence[Tick]
    labels: Sequence[Tick]
    bars: Sequence[Bar] = ()
    series: Sequence[tuple[str, str]] = ()
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    base: int = HEIGHT - BOTTOM


def bars(title: str, labels: Sequence[str], values: Sequence[Decimal | int], *, unit: str = "") -> Chart:
    """Returns a bar for each label; values are not below zero. At most `BARS_MAX`, the last ones."""
    names, numbers = _last(labels), [Decimal(each) for each in _last(values)]
    top = scale_of(max(numbers, default=Decimal(0)))
    slot = Decimal(WIDTH - LEFT) / max(len(numbers), 1)
    gap = min(Decimal(6), slot / 4)
    made = [
        Bar(
            x=int(LEFT + slot * at + gap / 2),
            y=_y(number, top),
            width=max(1, int(slot - gap)),
            height=HEIGHT - BOTTOM - _y(number, top),
            title=f"{name}: {text_of(number)}{f' {unit}' if unit else ''}",
        )
        for at, (name, number) in enumerate(zip(names, numbers, strict=True))
    ]
    return Chart(title, _ticks(top), _labels(names, slot, slot / 2), bars=made)


def lines(
    title: str,
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[Decimal | int | None]]],
    *,
    from_zero: bool = True,
    counts: bool = False,
) -> Chart:
    """Returns a line for each named series; None leaves the point out. Values are not below zero.

    from_zero  whether the axis begins at zero; else below the least value, so that small changes are seen
    counts     whether the values are counts: all numbers of the axis are whole
    """
    names = _last(labels)
    if len(names) == 1:  # one point makes no line: its value is shown over the whole width
        series = [(name, [*values, *values]) for name, values in series]
    numbers = [[None if each is None else Decimal(each) for each in _last(values)] for _, values in series]
    known = [each for row in numbers for each in row if each is not None]
    most = max(known, default=Decimal(0))
    floor, span = (Decimal(0), most) if from_zero or not known else floor_of(min(known), most)
    top = scale_of(max(most - floor, span), counts=counts)
    slot = Decimal(WIDTH - LEFT - RIGHT) / max(len(names) - 1, 1)
    points = [
        " ".join(
            f"{int(LEFT + slot * at)},{_y(number - floor, top)}"
            for at, number in enumerate(row)
            if number is not None
        )
        for row in numbers
    ]
    named = [(name, line) for (name, _), line in zip(series, points, strict=True) if line]
    return Chart(title, _ticks(top, floor), _labels(names, slot, Decimal(0)), series=named)


def floor_of(least: Decimal, most: Decimal) -> tuple[Decimal, Decimal]:
    """Returns a round number not above `least`, where an axis for values between the two begins, and the span that it
    shows at least: a hundredth of the values, so that a rate that hardly moves looks like one.
    """
    span = max(most - least, least / 100)
    step = scale_of(span) / LINES
    floor = least // step * step
    # A line that lies on the axis is not seen.
    return (floor - step if floor == least and floor >= step else floor), span


def scale_of(most: Decimal, *, counts: bool = False) -> Decimal:
    """Returns the top of an axis for values up to `most`: a round number that the grid divides into round steps, for
    counts into whole ones.
    """
    if most <= 0:
        return Decimal(LINES)
    step = max(most / LINES, Decimal(1)) if counts else most / LINES
    unit = Decimal(1).scaleb(step.adjusted())
    steps = (unit * each for each in _STEPS)
    return LINES * next(each for each in steps if each >= step and (not counts or each % 1 == 0))


def text_of(number: Decimal) -> str:
    """Returns the number with groups of digits, without zeros at its end: 1,250.5"""
    text = f"{number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _last(values: Sequence[T]) -> Sequence[T]:
    return values[-BARS_MAX:]


def _y(number: Decimal, top: Decimal) -> int:
    room = HEIGHT - BOTTOM - TOP
    return HEIGHT - BOTTOM - int((room * number / top).to_integral_value(ROUND_CEILING))


def _ticks(top: Decimal, floor: Decimal = Decimal(0)) -> list[Tick]:
    values = [top * each / LINES for each in range(LINES + 1)]
    return [Tick(_y(each, top), text_of(floor + each)) for each in values]


def _labels(names: Sequence[str], slot: Decimal, middle: Decimal) -> list[Tick]:
    every = max(1, -(-len(names) // LABELS_MOST))
    return [Tick(int(LEFT + slot * at + middle), name) for at, name in enumerate(names) if at % every == 0]
