"""The form that describes a bank's CSV file: its fields, and the profile that they give."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

ENCODINGS: Final = {
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "cp1252": "Western European (Windows 1252)",
    "iso8859-15": "Western European (ISO 8859-15)",
    "cp850": "Western European (DOS 850)",
    "cp1250": "Central European (Windows 1250)",
    "cp1257": "Baltic (Windows 1257)",
    "cp1251": "Cyrillic (Windows 1251)",
    "koi8-r": "Cyrillic (KOI8-R)",
    "cp1253": "Greek (Windows 1253)",
    "cp1254": "Turkish (Windows 1254)",
    "gb18030": "Chinese (GB 18030)",
    "shift_jis": "Japanese (Shift JIS)",
    "euc_kr": "Korean (EUC-KR)",
}
DELIMITERS: Final = {";": "Semicolon", ",": "Comma", "\t": "Tab", "|": "Bar |"}
DAYS: Final = {
    form: datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC).strftime(form)
    for form in (
        *("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%d/%m/%y", "%m/%d/%Y", "%m/%d/%y", "%d-%m-%Y", "%Y-%m-%d"),
        *("%Y/%m/%d", "%Y%m%d", "%d %b %Y", "%d-%b-%Y", "%d.%m.%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S"),
    )
}
COLUMNS: Final = {
    "day": "Day of booking",
    "amount": "Amount",
    "credit": "Amount that came",
    "debit": "Amount that went out",
    "text": "Text",
    "reference": "Reference",
    "counterparty_name": "Name of the other side",
    "counterparty_account": "Account of the other side",
    "direction": "Word for came or went",
    "value_day": "Value date",
    "balance": "Balance after the row",
    "id": "The bank’s id",
    "currency": "Currency",
    "account": "Account",
}
"""The columns that a person may choose, with their labels."""
TEXTS: Final = (
    dict.fromkeys(COLUMNS, 3)
    | dict.fromkeys(("delimiter", "header", "decimal_mark", "inverted", "one_currency"), 3)
    | dict.fromkeys(("encoding", "day_form", "credit_word", "debit_word"), 40)
    | {"one_account": 64, "rows_below": 4, "name": 65}
)
"""The fields with the most characters of each."""
NEW: Final = dict.fromkeys(TEXTS, "") | {"day_form": "%d.%m.%Y", "decimal_mark": ",", "rows_below": "0"}
CELL_MOST: Final = 80
"""A longer cell is cut: it can't name its column."""


def header_of(rows: Sequence[Sequence[str]]) -> str:
    """Returns the number of the row that probably names the columns: the first one with several cells and no digit."""
    names = (n for n, row in enumerate(rows, 1) if sum(map(bool, row)) > 1 and not _has_digit(row))
    return str(next(names, ""))


def columns_of(rows: Sequence[Sequence[str]], header: str) -> dict[str, str]:
    """Returns the choices of a column: its number, with its name and its cell in the first row."""
    above = _number(header)
    names, first = (rows[n] if 0 <= n < len(rows) else [] for n in (above - 1, above))
    widest = max(map(len, rows), default=0)
    words = (
        " ".join(filter(None, (str(n + 1), *(row[n].strip() for row in (names, first) if n < len(row)))))
        for n in range(widest)
    )
    return {"": "None"} | {str(n): each for n, each in enumerate(words, 1)}


def profile_of(typed: Mapping[str, str], rows: Sequence[Sequence[str]]) -> str:
    """Returns the profile as JSON. A column that the header row names is given by its name, so that a file with other
    columns is refused.
    """
    header = _number(typed["header"])
    names = [each.strip() for each in rows[header - 1]] if 0 < header <= len(rows) else []
    columns = {role: _column(_number(typed[role]), names) for role in COLUMNS if typed[role]}
    words = {typed["credit_word"]: "credit", typed["debit_word"]: "debit"} if "direction" in columns else {}
    form = {
        "columns": columns,
        "delimiter": typed["delimiter"],
        "encoding": typed["encoding"],
        "rows_above": max(0, header - 1),
        "rows_below": _number(typed["rows_below"]),
        "has_header": header > 0,
        "day_form": typed["day_form"],
        "decimal_mark": typed["decimal_mark"],
        "inverted": typed["inverted"] == "yes",
        "directions": {word: side for word, side in words.items() if word},
        "currency": typed["one_currency"].upper(),
        "account": typed["one_account"],
    }
    given = {name: value for name, value in form.items() if value or name in ("columns", "has_header")}
    return json.dumps(given, ensure_ascii=False)


def _column(number: int, names: Sequence[str]) -> str | int:
    name = names[number - 1] if 0 < number <= len(names) else ""
    return name if names.count(name) == 1 and 0 < len(name) < CELL_MOST else number


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _has_digit(row: Sequence[str]) -> bool:
    return any(each.isdigit() for cell in row for each in cell)
