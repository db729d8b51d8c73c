"""CSV for spreadsheets: streamed to standard output, UTF-8, with a heading line.

A spreadsheet computes a cell that begins with `=`, `+`, `-` or `@`, and merchants and customers write such texts. These
cells get an apostrophe in front, which spreadsheets show as text.
"""

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import typer

Csv = Annotated[bool, typer.Option("--csv", help="Print CSV with a heading line: all rows, whole ids.")]

_COMPUTED: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def write(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Prints a line for each row as it comes. A field without a value is an empty cell; fields beside `columns` are
    left out. Values are JSON values: true and false are written in lower case, lists with spaces between.
    """
    out = csv.writer(sys.stdout, lineterminator="\r\n")
    out.writerow(columns)
    for row in rows:
        out.writerow([_cell(row.get(column)) for column in columns])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return harmless(" ".join(map(str, value)))
    return harmless(str(value))


def harmless(text: str) -> str:
    """Returns the text as a spreadsheet may read it: as text, never as a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(_COMPUTED) else text
