"""Rows of a table that a person pasted: from a spreadsheet, a CSV file, or typed."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_DELIMITERS: Final = ("\t", ";", ",")
_UNDONE: Final = ("'=", "'+", "'-", "'@")
"""How our own files begin a cell that a spreadsheet would compute (kit/base/cells.py)."""


@dataclass(frozen=True)
class PastedRow:
    """A row with the number of its line. `cells`: by column, without blanks around them; empty for a missing one."""

    line: int
    cells: Mapping[str, str]


def pasted_rows(text: str, columns: Sequence[str]) -> list[PastedRow]:
    """Returns the rows that are not empty.

    The first line may name columns, in any order; further ones are ignored. Without such a line the cells are those of
    `columns`, in their order. Cells are separated by tabs, semicolons or commas: the one that is most frequent in the
    first line that has any. Raises ValueError with a sentence for a quotation that does not end.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").strip("\n").split("\n")
    first = next((line for line in lines if any(each in line for each in _DELIMITERS)), "")
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(
        (f"{line}\n" for line in lines), delimiter=delimiter, strict=True, skipinitialspace=True
    )
    names: Sequence[str] = columns
    found: list[PastedRow] = []
    try:
        for cells in reader:
            cleaned = [_cleaned(each) for each in cells]
            if not found and names is columns and columns[0] in (heads := [_head(each) for each in cleaned]):
                names = heads
            elif any(cleaned):
                row = dict(zip(names, cleaned, strict=False))
                found.append(PastedRow(reader.line_num, {name: row.get(name, "") for name in columns}))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} can't be read: {error}") from None
    return found


def _cleaned(cell: str) -> str:
    text = cell.strip()
    return text[1:] if text.startswith(_UNDONE) else text


def _head(cell: str) -> str:
    return cell.lower().replace(" ", "_")
