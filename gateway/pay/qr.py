"""QR codes; `accounts` decides their content."""

from functools import lru_cache
from io import BytesIO
from typing import Final

import segno

# Dark on light in every theme: many readers accept nothing else.
DARK: Final = "#000"
LIGHT: Final = "#fff"
QUIET_MODULES: Final = 4
CACHED_MAX: Final = 1024  # of a few kilobytes each: drawing one takes as long as many pages


@lru_cache(maxsize=CACHED_MAX)
def svg_of(text: str) -> bytes:
    """Returns the QR code as an SVG of at most a few kilobytes."""
    out = BytesIO()
    code = segno.make(text, error="m", micro=False)
    code.save(out, kind="svg", xmldecl=False, border=QUIET_MODULES, dark=DARK, light=LIGHT, omitsize=True)
    return out.getvalue()
