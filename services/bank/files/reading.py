"""Reads a statement file of any known format, whole or not at all."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from kit.base.account_forms import account_key
from services.bank.domain.lines import Statement, Status, difference_of
from services.bank.files.camt import read_camt
from services.bank.files.csv_files import DELIMITERS, Profile, read_csv
from services.bank.files.mt940 import read_mt940
from services.bank.files.values import FILE_MOST_BYTES, STATEMENTS_MOST, FileRefused

NO_PROFILE: Final = "The file is no CAMT and no MT940. For a CSV file, give the profile of its bank."


class Format(StrEnum):
    CAMT = "camt"
    MT940 = "mt940"
    CSV = "csv"


def read(
    content: bytes,
    *,
    format: Format | None = None,
    profile: Profile | None = None,
    most_rows: int | None = None,
) -> Sequence[Statement]:
    """Returns the statements of the file; its format is detected unless it is given. CSV needs a profile, and may be
    read up to a number of rows.

    Raises FileRefused, with a sentence for people, if anything in the file can't be read or does not add up.
    """
    _check_size(content)
    match format or detect(content):
        case Format.CAMT:
            statements = read_camt(content)
        case Format.MT940:
            statements = read_mt940(content)
        case Format.CSV:
            if profile is None:
                raise FileRefused(NO_PROFILE)
            statements = read_csv(content, profile, most=most_rows)
    if len(statements) > STATEMENTS_MOST:
        raise FileRefused(f"The file has more than {STATEMENTS_MOST} statements.")
    for number, statement in enumerate(statements, 1):
        _check_account(number, statement)
        _check_sums(number, statement)
    return statements


def detect(content: bytes) -> Format:
    """Returns the format that the first bytes of the file have. Raises FileRefused for an unknown one."""
    _check_size(content)
    start = content[:4096].removeprefix(b"\xef\xbb\xbf")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        start = start.decode("utf-16", "ignore").encode()
    if start.lstrip().startswith(b"<"):
        return Format.CAMT
    if re.search(rb"(?:^|[\r\n]|\{4:)\s*:20:", start):
        return Format.MT940
    if any(each.encode() in start for each in DELIMITERS) and not re.search(rb"[\x00-\x08\x0e-\x1f]", start):
        return Format.CSV
    raise FileRefused("The file is no statement in CAMT, MT940 or CSV.")


def _check_size(content: bytes) -> None:
    if len(content) > FILE_MOST_BYTES:
        raise FileRefused(f"The file has more than {FILE_MOST_BYTES // 1024**2} MiB.")
    if not content.strip():
        raise FileRefused("The file is empty.")


def _check_account(number: int, statement: Statement) -> None:
    if not re.fullmatch("[0-9A-Z]{1,64}", account_key(statement.account)):
        raise FileRefused(
            f"Statement {number}: an account has 1 to 64 letters and digits: {statement.account[:80]!r}."
        )


def _check_sums(number: int, statement: Statement) -> None:
    difference = difference_of(statement)
    if difference is None:
        return
    booked = [line for line in statement.lines if line.status is not Status.PENDING]
    if foreign := next((line for line in booked if line.currency != statement.currency), None):
        raise FileRefused(
            f"{foreign.position}: the account is in {statement.currency}, and the line in {foreign.currency}."
        )
    if difference:
        raise FileRefused(
            f"Statement {number}: the closing balance differs by {difference} from the opening balance and the lines."
        )
