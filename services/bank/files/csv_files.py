"""Statements as CSV files, which every bank writes in a form of its own: a profile describes it once."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from itertools import islice, pairwise
from typing import ClassVar, Final, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from kit.base.account_forms import account_key
from services.bank.domain.lines import Direction, Line, Statement, Status
from services.bank.files.values import FileRefused, Place, check_count, cleaned, decoded, prose, references_of

COLUMNS: Final = (
    *(
        "day",
        "value_day",
        "amount",
        "debit",
        "credit",
        "direction",
        "status",
        "balance",
        "currency",
        "account",
    ),
    *("text", "reference", "counterparty_name", "counterparty_account", "id"),
)
ENCODINGS: Final = (
    *(
        "utf-8-sig",
        "utf-16",
        "iso8859-1",
        "iso8859-2",
        "iso8859-9",
        "iso8859-15",
        "gb18030",
        "big5",
        "shift_jis",
    ),
    *(
        "cp1250",
        "cp1251",
        "cp1252",
        "cp1253",
        "cp1254",
        "cp1257",
        "cp850",
        "cp852",
        "cp866",
        "koi8-r",
        "euc_kr",
    ),
)
DELIMITERS: Final = (";", ",", "\t", "|")
ROWS_APART_MOST: Final = 1000
T = TypeVar("T")
_GROUPS: Final = r" \u00a0\u202f'’"
_SYMBOLS: Final = "[€$£¥₹₺₽₸₴₩]"
_GUESSED_FROM: Final = 16 * 1024
_GUESSED_ROWS: Final = 50


class ProfileRefused(ValueError):
    """The profile can read nothing. `faults` has a sentence by field or column; the first is the message."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__(next(iter(faults.values())))
        self.faults = faults


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The form of a bank's CSV files. A column is the number of a cell, from 1, or its name in the header row. Empty
    rows do not count.

    The amount stands in `amount`, below zero for a debit (for a credit if `inverted`), or with a word of `directions`
    in `direction`; or it stands in `debit` or `credit`. `statuses` has the words in `status`; None leaves a row out. A
    currency and an account without a column are those given here. `balance` is the account's after each row.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    columns: Mapping[str, str | int]
    delimiter: str = ";"
    encoding: str = "utf-8-sig"
    rows_above: int = 0
    rows_below: int = 0
    has_header: bool = True
    day_form: str = "%d.%m.%Y"
    decimal_mark: str = ","
    inverted: bool = False
    directions: Mapping[str, Direction] = field(default_factory=dict)
    statuses: Mapping[str, Status | None] = field(default_factory=dict)
    currency: str = ""
    account: str = ""

    def __post_init__(self) -> None:
        """Raises ProfileRefused."""
        known, places = self.columns.keys(), self.columns.values()
        sides = bool({"debit", "credit"} & known)
        is_plain = all(isinstance(each, int) for each in places)
        rows_apart = (self.rows_above, self.rows_below)
        has_account = re.fullmatch("[0-9A-Z]{1,64}", account_key(self.account))
        rules = (
            ("columns", f"columns are {', '.join(COLUMNS)}", known <= set(COLUMNS)),
            ("day", "a column for the day is needed", "day" in known),
            (
                "amount",
                "a column for the amount, or those for debit and credit, are needed",
                ("amount" in known) != sides,
            ),
            (
                "direction",
                "the words for credit and debit are needed",
                ("direction" in known) == bool(self.directions),
            ),
            ("status", "the words for the status are needed", ("status" in known) == bool(self.statuses)),
            (
                "currency",
                "a currency of three capital letters, or a column for it, is needed",
                "currency" in known or re.fullmatch("[A-Z]{3}", self.currency),
            ),
            (
                "account",
                "an account of 1 to 64 letters and digits, or a column for it, is needed",
                "account" in known or has_account,
            ),
            ("columns", "cells are counted from 1", all(isinstance(at, str) or at > 0 for at in places)),
            ("has_header", "names of columns need a header row", self.has_header or is_plain),
            ("encoding", f"an encoding is one of {', '.join(ENCODINGS)}", self.encoding in ENCODINGS),
            (
                "delimiter",
                "cells are separated by a semicolon, a comma, a tab or |",
                self.delimiter in DELIMITERS,
            ),
            ("decimal_mark", "the decimal mark is a comma or a point", self.decimal_mark in (",", ".")),
            ("day_form", "the form of a day has %d, %m or %b, and %Y or %y", _keeps_days(self.day_form)),
            (
                "rows_above",
                f"rows to leave out are counted from 0 to {ROWS_APART_MOST}",
                all(0 <= each <= ROWS_APART_MOST for each in rows_apart),
            ),
        )
        if faults := {field: sentence for field, sentence, kept in reversed(rules) if not kept}:
            raise ProfileRefused(dict(reversed(faults.items())))


_PROFILE: Final = TypeAdapter(Profile)


def _keeps_days(form: str) -> bool:
    day = datetime(2026, 12, 31, tzinfo=UTC)
    try:
        return datetime.strptime(day.strftime(form), form).replace(tzinfo=UTC).date() == day.date()
    except (ValueError, re.error):
        return False


def profile_from_json(text: str) -> Profile:
    """Returns the profile. Raises ProfileRefused."""
    try:
        return _PROFILE.validate_json(text)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False)
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, ProfileRefused):
            raise cause from None
        raise ProfileRefused({".".join(map(str, first["loc"][:2])): first["msg"]}) from None


def read_csv(content: bytes, profile: Profile, *, most: int | None = None) -> Sequence[Statement]:
    """Returns a statement for each account and currency, in the order of their first rows. Raises FileRefused.

    most  rows with lines that are read; None: all
    """
    apart = profile.rows_above + profile.has_header + profile.rows_below
    found = _rows(content, profile.encoding, profile.delimiter, apart=apart)
    rows = list(islice(found, None if most is None else apart + most))
    rows = rows[profile.rows_above : max(0, len(rows) - profile.rows_below)]
    header = [cell.strip() for cell in rows.pop(0)[1]] if profile.has_header and rows else []
    places = {name: _cell(column, header) for name, column in profile.columns.items()}
    grouped: dict[tuple[str, str], list[tuple[Line, Decimal | None]]] = {}
    for number, cells in rows:
        place = Place(f"Line {number}")
        if len(cells) <= max(places.values()):
            raise place.refused(f"the row has {len(cells)} cells, fewer than its columns need")
        row = {name: cells[at].strip() for name, at in places.items()}
        if line := _line(place, row, profile):
            balance = _number(place, row["balance"], line.currency, profile) if row.get("balance") else None
            grouped.setdefault((line.account, line.currency), []).append((line, balance))
    return [_statement(account, currency, of_account) for (account, currency), of_account in grouped.items()]


def guessed_form(content: bytes) -> tuple[str, str]:
    """Returns the encoding and the delimiter that the file probably has: that which gives most rows equally many
    cells.
    """
    encoding = "utf-8-sig" if _is_utf_8(content) else "cp1252"
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    start = content[:_GUESSED_FROM].decode(encoding, "replace").splitlines()[:_GUESSED_ROWS]

    def fit(delimiter: str) -> int:
        numbers = Counter(len(cells) - 1 for cells in csv.reader(start, delimiter=delimiter))
        return max((cells * rows for cells, rows in numbers.items()), default=0)

    return encoding, max(DELIMITERS, key=fit)


def first_rows(content: bytes, encoding: str, delimiter: str, *, most: int) -> list[list[str]]:
    """Returns the cells of the first rows that are not empty. Raises FileRefused."""
    return [cells for _, cells in islice(_rows(content, encoding, delimiter), most)]


def _rows(
    content: bytes, encoding: str, delimiter: str, *, apart: int = 0
) -> Iterator[tuple[int, list[str]]]:
    """Yields the number of the last line and the cells of each row that is not empty. `apart` are no lines."""
    if not content.isascii() and not encoding.startswith("utf") and _is_utf_8(content):
        raise FileRefused(f"The file is in UTF-8, and its profile says {encoding}.")
    text = decoded(content, encoding)
    reader = csv.reader(StringIO(text), delimiter=delimiter, strict=True)
    count = -apart
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                count += 1
                check_count(count)
                yield reader.line_num, cells
    except csv.Error as error:
        raise Place(f"Line {reader.line_num}").refused(f"the row can't be read ({error})") from None


def _is_utf_8(content: bytes) -> bool:
    try:
        return bool(content.decode())
    except UnicodeError:
        return False


def _cell(column: str | int, header: Sequence[str]) -> int:
    if isinstance(column, int):
        return column - 1
    if header.count(column) != 1:
        raise Place("The header row").refused(f"it names this column {header.count(column)} times", column)
    return header.index(column)


def _line(place: Place, row: Mapping[str, str], profile: Profile) -> Line | None:
    """Returns None for a row that the profile leaves out, and for an amount of zero."""
    status: Status | None = Status.BOOKED
    if "status" in row:
        status = _word(place, row["status"], profile.statuses)
    if status is None:
        return None
    currency = place.currency(row.get("currency") or profile.currency)
    account = cleaned(row.get("account") or profile.account).replace(" ", "")
    if not account:
        raise place.refused("the account is missing")
    amount = _signed(place, row, currency, profile)
    if not amount:
        return None
    return Line(
        account=account,
        direction=Direction.CREDIT if amount > 0 else Direction.DEBIT,
        amount=abs(amount),
        currency=currency,
        status=status,
        booked_on=place.day(row["day"], profile.day_form),
        valued_on=place.day(row["value_day"], profile.day_form) if row.get("value_day") else None,
        position=place.name,
        source_id=next(iter(references_of(row.get("id"))), None),
        counterparty_name=cleaned(row.get("counterparty_name")),
        counterparty_account=cleaned(row.get("counterparty_account")).replace(" ", ""),
        text=prose(row.get("text")),
        references=references_of(row.get("reference")),
    )


def _word(place: Place, word: str, words: Mapping[str, T]) -> T:
    if word not in words:
        raise place.refused("the profile does not know this word", word)
    return words[word]


def _signed(place: Place, row: Mapping[str, str], currency: str, profile: Profile) -> Decimal:
    if "amount" not in row:
        credit, debit = (
            _number(place, row[name], currency, profile) if row.get(name) else None
            for name in ("credit", "debit")
        )
        if (credit is None and debit is None) or (credit and debit) or (credit or 0) < 0:
            raise place.refused("an amount stands in one of the cells for credit and debit")
        return (credit or Decimal(0)) - abs(debit or Decimal(0))
    amount = _number(place, row["amount"], currency, profile)
    if "direction" in row:
        if amount < 0:
            raise place.refused("the amount has a sign besides the word for its direction", row["amount"])
        return amount if _word(place, row["direction"], profile.directions) is Direction.CREDIT else -amount
    return -amount if profile.inverted else amount


def _number(place: Place, text: str, currency: str, profile: Profile) -> Decimal:
    """Reads `1.234,50`, `-1 234,50`, `1.234,50-`, `(1.234,50)`, `+ 5`; with a point as decimal mark `1,234.50`.

    The currency's code or a symbol may stand before or after it.
    """
    other = "." if profile.decimal_mark == "," else ","
    unit = rf"(?:{currency}|{_SYMBOLS})"
    number = re.sub(rf"^{unit}\s?|\s?{unit}$", "", text)
    whole = rf"(?P<whole>\d{{1,3}}(?P<group>[{other}{_GROUPS}])\d{{3}}(?:(?P=group)\d{{3}})*|\d*)"
    rest = rf"(?:[{profile.decimal_mark}](?P<rest>\d*))?"
    found = re.fullmatch(rf"(?P<sign>[-+−(]?) ?{whole}{rest} ?(?P<after>[-−)]?)", number, re.ASCII)
    if (
        not found
        or not (found["whole"] or found["rest"])
        or (found["sign"] == "(") != (found["after"] == ")")
    ):
        raise place.refused("this is no amount in the form of the profile", text)
    digits = re.sub(r"[^0-9]", "", found["whole"])
    amount = place.amount(f"{digits or 0}.{found['rest'] or 0}", currency)
    return -amount if found["sign"] in tuple("-−(") or found["after"] in tuple("-−") else amount


def _statement(account: str, currency: str, rows: Sequence[tuple[Line, Decimal | None]]) -> Statement:
    days = [line.booked_on for line, _ in rows if line.booked_on]
    opening, closing = _balances([row for row in rows if row[0].status is not Status.PENDING])
    return Statement(
        account=account,
        currency=currency,
        opening=opening,
        closing=closing,
        opened_on=min(days),
        closed_on=max(days),
        lines=tuple(line for line, _ in rows),
    )


def _balances(rows: Sequence[tuple[Line, Decimal | None]]) -> tuple[Decimal | None, Decimal | None]:
    """Returns opening and closing balance, if each row has its own. Raises FileRefused if one does not follow.

    The oldest row may be the first one or the last one.
    """
    known = [(line, after) for line, after in rows if after is not None]
    if not known or len(known) < len(rows):
        return None, None
    ordered = min((known, known[::-1]), key=lambda rows: len(_breaks(rows)))
    if broken := _breaks(ordered):
        raise Place(broken[0].position).refused(
            "the balance does not follow from the row beside it and the amount"
        )
    line, after = ordered[0]
    return after - line.signed_amount, ordered[-1][1]


def _breaks(rows: Sequence[tuple[Line, Decimal]]) -> Sequence[Line]:
    return [line for (_, before), (line, after) in pairwise(rows) if before + line.signed_amount != after]
