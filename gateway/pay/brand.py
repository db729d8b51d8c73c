"""Makes the merchant's colour readable: WCAG 2.2 requires a contrast of 4.5 to 1.

A colour that can be read is used as it is; another is mixed with black or white until it can. It is served as a
stylesheet of its own, because the policy allows nothing inline; its name contains the colour.
"""

import re
from decimal import Decimal
from functools import cache, lru_cache
from typing import Final

LEAST_CONTRAST: Final = Decimal("4.5")
STEPS: Final = 20
CACHED_MAX: Final = 1024  # of 200 bytes each
# The backgrounds of text and buttons in that colour: see pay.css, --ground and --paper of each theme.
LIGHT_GROUNDS: Final = ("#f3f4f7", "#ffffff")
DARK_GROUNDS: Final = ("#10141b", "#1a202a")
WHITE: Final = "#ffffff"
INK: Final = "#0d1420"

_NAME: Final = re.compile(r"([0-9a-f]{6})\.css").fullmatch


def stylesheet_name(colour: str) -> str:
    """Returns the name of a colour's stylesheet: `1d5bb8.css` for `#1d5bb8`."""
    return f"{colour.removeprefix('#')}.css"


@lru_cache(maxsize=CACHED_MAX)
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
    for step in range(STEPS + 1):
        mixed = _mix(colour, towards, step)
        if all(contrast(mixed, other) >= LEAST_CONTRAST for other in (*grounds, letters)):
            return mixed
    return towards


def contrast(one: str, other: str) -> Decimal:
    """Returns the contrast ratio of WCAG 2.2: 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + Decimal("0.05")) / (darker + Decimal("0.05"))


def _luminance(colour: str) -> Decimal:
    red, green, blue = (_linear(value) for value in _channels(colour))
    return Decimal("0.2126") * red + Decimal("0.7152") * green + Decimal("0.0722") * blue


@cache  # of 256 values: the power costs more than everything else here
def _linear(value: int) -> Decimal:
    share = Decimal(value) / 255
    if share <= Decimal("0.04045"):
        return share / Decimal("12.92")
    return ((share + Decimal("0.055")) / Decimal("1.055")) ** Decimal("2.4")


def _mix(colour: str, towards: str, step: int) -> str:
    pairs = zip(_channels(colour), _channels(towards), strict=True)
    return "#" + "".join(f"{(own * (STEPS - step) + other * step) // STEPS:02x}" for own, other in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
