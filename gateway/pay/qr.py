"""QR codes of accounts; `accounts` decides their content."""

from functools import lru_cache
from typing import Final

from kit.web import qr

CACHED_MAX: Final = 1024  # of a few kilobytes each: drawing one takes as long as many pages


@lru_cache(maxsize=CACHED_MAX)
def svg_of(text: str) -> bytes:
    """Returns the QR code as an SVG of at most a few kilobytes."""
    return qr.svg_of(text)
