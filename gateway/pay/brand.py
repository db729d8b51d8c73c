"""Makes the merchant's colour readable: WCAG 2.2 requires a contrast of 4.5 to 1.

A colour that can be read is used as it is; another is mixed with black or white until it can. It is served as a
stylesheet of its own, because the policy allows nothing inline; its name contains the colour.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Final

LEAST_CONTRAST: Final = Decimal("4.5")
STEPS: Final = 20
# The backgrounds of text and buttons in that colour: see pay.css, --ground and --paper of each theme.
LIGHT_GROUNDS: Final = ("#f3f4f7", "#ffffff")
DARK_GROUNDS: Final = ("#10141b", "#1a202a")
WHITE: Final = "#ffffff"
INK: Final = "#0d1420"

_NAME: Final = re.compile(r"([0-9a-f]{6})\.css").fullmatch


def stylesheet_name(colour: str) -> str:
    """Returns the name of a colour's stylesheet: `1d5bb8.css` for `#1d5bb8`."""
    return f"{colour.removeprefix('#')}.css"


def stylesheet(name: str) -> bytes | None:
    """Returns the stylesheet of that name; None for a name of another form."""
    found = _NAME(name)
    if found is None:
        return None
    colour = f"#{found[1]}"
    light, dark = (
        readable(colour, LIGHT_GROUNDS, WHITE, "#000000"),
        readable(colour, DARK_GROUNDS, INK, WHITE),
    )
    rules = (
        f":root {{ --accent: {light}; --on-accent: {WHITE}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ --accent: {dark}; --on-accent: {INK}; }} }}\n"
    )
    return rules.encode()


def readable(colour: str, grounds: tuple[str, ...], letters: str, towards: str) -> str:
    """Returns the nearest colour that can be read on all grounds, and on which the letters can be read."""
    own, target = _channels(colour), _channels(towards)
    others = [_luminance(_channels(other)) for other in (*grounds, letters)]

    def mixed(step: int) -> list[int]:
        return [(a * (STEPS - step) + b * step) // STEPS for a, b in zip(own, target, strict=True)]

    def can_be_read(step: int) -> bool:
        luminance = _luminance(mixed(step))
        return all(_ratio(luminance, other) >= LEAST_CONTRAST for other in others)

    # Bisected: where one step can be read, all steps behind it can.
    return "#" + bytes(mixed(bisect_left(range(STEPS), True, key=can_be_read))).hex()


def contrast(one: str, other: str) -> Decimal:
    """Returns the contrast ratio of WCAG 2.2: 1 to 21."""
    return _ratio(_luminance(_channels(one)), _luminance(_channels(other)))


def _ratio(one: Decimal, other: Decimal) -> Decimal:
    return (max(one, other) + _FLARE) / (min(one, other) + _FLARE)


def _luminance(channels: Sequence[int]) -> Decimal:
    red, green, blue = channels
    return _RED * _linear(red) + _GREEN * _linear(green) + _BLUE * _linear(blue)


_FLARE, _RED, _GREEN, _BLUE = (Decimal(text) for text in ("0.05", "0.2126", "0.7152", "0.0722"))


@cache  # of 256 values: the power costs more than everything else here
def _linear(value: int) -> Decimal:
    share = Decimal(value) / 255
    if share <= Decimal("0.04045"):
        return share / Decimal("12.92")
    return ((share + Decimal("0.055")) / Decimal("1.055")) ** Decimal("2.4")


def _channels(colour: str) -> Sequence[int]:
    return bytes.fromhex(colour[1:])
