"""Cells of CSV files, which people open with a spreadsheet.

A spreadsheet computes a cell that begins with `=`, `+`, `-` or `@`, and strangers write such texts. These cells get an
apostrophe in front, which spreadsheets show as text.
"""

from typing import Final

_COMPUTED: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(text: str) -> str:
    """Returns the text as a spreadsheet may read it: as text, never as a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(_COMPUTED) else text
