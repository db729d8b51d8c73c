"""Texts from outside as people read them: characters that change how a line reads are shown as `\\u202e`."""

import re
from typing import Final

_CHANGES_A_LINE: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Control characters, direction marks, and characters without a sign. The joiners of Persian and Indian scripts belong
to words.
"""
_IN_A_LINE: Final = re.compile(f"[{_CHANGES_A_LINE}\t\n\r]")
_IN_LINES: Final = re.compile(f"[{_CHANGES_A_LINE}]")


def lines(text: str) -> str:
    """Returns the text with such characters escaped; tabs and line breaks stay."""
    return _IN_LINES.sub(_escaped, text)


def one_line(text: str) -> str:
    """Returns the text as one line: escapes what `lines` escapes, and tabs and line breaks."""
    return _IN_A_LINE.sub(_escaped, text)


def _escaped(character: re.Match[str]) -> str:
    return character[0].encode("unicode_escape").decode()
