"""CSV for spreadsheets: streamed to standard output, UTF-8, with a heading line."""

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

from kit.base.cells import harmless

Csv = Annotated[bool, typer.Option("--csv", help="Print CSV with a heading line: all rows, whole ids.")]


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
