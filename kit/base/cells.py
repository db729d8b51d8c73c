"""Cells of CSV files, which people open with a spreadsheet.

A spreadsheet computes a cell that begins with `=`, `+`, `-` or `@`, and strangers write such texts. These get an
apostrophe in front, which spreadsheets show as text. So does such a text after a semicolon, a tab or any kind of line
break: many spreadsheets split there, by the language of the computer, and take our quotes for a part of the text.
"""

import re
from typing import Final

_COMPUTED: Final = r"=+\-@\uff1d\uff0b\uff0d\uff20"  # the last four: full width, for Japanese spreadsheets
_BREAKS: Final = r"\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029"  # those of str.splitlines, and the tab
_CELL: Final = re.compile(rf"""^(?=[ ]*[{_COMPUTED}{_BREAKS}])|(?<=[;{_BREAKS}])(?=[\s"']*[{_COMPUTED}])""")

_NUMBER: Final = re.compile(r"-[0-9]+(\.[0-9]+)?").fullmatch


def harmless(text: str) -> str:
    """Returns the text as a spreadsheet may read it: as text, never as a formula. A negative number stays a number."""
    return text if _NUMBER(text) else _CELL.sub("'", text)
