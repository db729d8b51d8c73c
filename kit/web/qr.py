"""QR codes as pictures."""

from io import BytesIO
from typing import Final

import segno

# Dark on light in every theme: many readers accept nothing else.
DARK: Final = "#000"
LIGHT: Final = "#fff"
QUIET_MODULES: Final = 4


def svg_of(text: str) -> bytes:
    """Returns the QR code of the text as an SVG of at most a few kilobytes."""
    out = BytesIO()
    code = segno.make(text, error="m", micro=False)
    code.save(out, kind="svg", xmldecl=False, border=QUIET_MODULES, dark=DARK, light=LIGHT, omitsize=True)
    return out.getvalue()
