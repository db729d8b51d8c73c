"""CSV files: what profiles describe, from the forms of banks, and what is read by them."""

from typing import Any

import pytest

from services.bank.domain.lines import Direction, Status
from services.bank.files.csv_files import Profile
from services.bank.files.reading import read
from tests.bank.shapes import head, refusal_of, shown

Form = dict[str, Any]
BOOKED = "+1234.50 EUR booked 2026-01-02"
PLAIN: Form = {
    "columns": {"day": "Date", "amount": "Amount", "text": "Text"},
    "account": "A1",
    "currency": "EUR",
}
ENGLISH: Form = {**PLAIN, "delimiter": ",", "decimal_mark": ".", "day_form": "%Y-%m-%d"}
NUMBERED: Form = {**PLAIN, "columns": {"day": 1, "amount": 2}, "has_header": False}
SIDES: Form = {**PLAIN, "columns": {"day": 1, "debit": 2, "credit": 3}, "has_header": False}
MARKED: Form = {
    **NUMBERED,
    "columns": {"day": 1, "amount": 2, "direction": 3},
    "directions": {"H": Direction.CREDIT, "S": Direction.DEBIT},
}
STATES: Form = {
    **NUMBERED,
    "columns": {"day": 1, "amount": 2, "status": 3},
    "statuses": {"COMPLETED": Status.BOOKED, "PENDING": Status.PENDING, "DECLINED": None},
}
ALL: Form = {
    "columns": {
        "day": "Buchung",
        "value_day": "Valuta",
        "amount": "Betrag",
        "currency": "Währung",
        "account": "Konto",
        "text": "Zweck",
        "reference": "E2E",
        "counterparty_name": "Name",
        "counterparty_account": "IBAN",
        "id": "Nr",
    },
}
ALL_HEAD = "Nr;Konto;Buchung;Valuta;Name;IBAN;Zweck;E2E;Betrag;Währung\n"

SHAPES: dict[str, tuple[Form, str, list[str]]] = {
    "the plain form": (PLAIN, "Date;Text;Amount\n02.01.2026;hello;1.234,50\n", [f"{BOOKED} | hello"]),
    "no group and no decimals": (NUMBERED, "02.01.2026;1234\n", ["+1234.0 EUR booked 2026-01-02"]),
    "a plus": (NUMBERED, "02.01.2026;+1234,5\n", ["+1234.5 EUR booked 2026-01-02"]),
    "a minus": (NUMBERED, "02.01.2026;-1 234,50\n", ["-1234.50 EUR booked 2026-01-02"]),
    "a minus after": (NUMBERED, "02.01.2026;1.234,50-\n", ["-1234.50 EUR booked 2026-01-02"]),
    "brackets": (NUMBERED, "02.01.2026;(1234,50)\n", ["-1234.50 EUR booked 2026-01-02"]),
    "a typographic minus": (NUMBERED, "02.01.2026;−1\u202f234,50\n", ["-1234.50 EUR booked 2026-01-02"]),
    "a symbol": (NUMBERED, "02.01.2026;1234,50 €\n", [BOOKED]),
    "a code before": (NUMBERED, "02.01.2026;EUR 1234,50\n", [BOOKED]),
    "cents alone": (NUMBERED, "02.01.2026;,50\n", ["+0.50 EUR booked 2026-01-02"]),
    "apostrophes": ({**NUMBERED, "decimal_mark": "."}, "02.01.2026;1'234.50\n", [BOOKED]),
    "commas and points": (ENGLISH, 'Date,Text,Amount\n2026-01-02,"a, b","1,234.50"\n', [f"{BOOKED} | a, b"]),
    "American days and tabs": (
        {**NUMBERED, "delimiter": "\t", "day_form": "%m/%d/%y", "decimal_mark": "."},
        "01/02/26\t1234.50\n",
        [BOOKED],
    ),
    "a day with its time": (
        {**NUMBERED, "day_form": "%Y-%m-%d %H:%M:%S"},
        "2026-01-02 23:59:59;1234,50\n",
        [BOOKED],
    ),
    "a month's name": ({**NUMBERED, "day_form": "%d %b %Y"}, "02 Jan 2026;1234,50\n", [BOOKED]),
    "the bank's view": ({**NUMBERED, "inverted": True}, "02.01.2026;-1234,50\n", [BOOKED]),
    "debit and credit": (
        SIDES,
        "02.01.2026;;1234,50\n02.01.2026;5,00;\n02.01.2026;-5,00;0,00\n",
        [BOOKED, "-5.00 EUR booked 2026-01-02", "-5.00 EUR booked 2026-01-02"],
    ),
    "words for the direction": (
        MARKED,
        "02.01.2026;1234,50;H\n02.01.2026;5,00;S\n",
        [BOOKED, "-5.00 EUR booked 2026-01-02"],
    ),
    "words for the status": (
        STATES,
        "02.01.2026;1234,50;COMPLETED\n02.01.2026;9,00;DECLINED\n02.01.2026;5,00;PENDING\n",
        [BOOKED, "+5.00 EUR pending 2026-01-02"],
    ),
    "all columns": (
        {**ALL, "encoding": "cp1252"},
        ALL_HEAD + "77;DE 1;02.01.2026;03.01.2026;Jürgen;DE89 3704;Order\u00a07K3M;E1;1.234,50;EUR\n",
        [f"{BOOKED} | valued 2026-01-03 | id 77 | Jürgen | DE893704 | Order 7K3M | ref E1"],
    ),
    "rows above and below": (
        {**PLAIN, "rows_above": 2, "rows_below": 1},
        "Account;A1\n\nFrom;01.01.2026\n\nDate;Text;Amount\n02.01.2026;;1.234,50\nSum;;1.234,50\n",
        [BOOKED],
    ),
    "quotes, breaks, carriage returns": (
        PLAIN,
        '"Date";"Text";"Amount"\r\n"02.01.2026";"a ""b""\r\nc";"1.234,50"\r\n',
        [f'{BOOKED} | a "b" c'],
    ),
    "two bytes a letter": (
        {**PLAIN, "encoding": "utf-16"},
        "Date;Text;Amount\n02.01.2026;ж;1234,50\n",
        [f"{BOOKED} | ж"],
    ),
    "Cyrillic": (
        {**PLAIN, "encoding": "cp1251"},
        "Date;Text;Amount\n02.01.2026;Заказ;1234,50\n",
        [f"{BOOKED} | Заказ"],
    ),
    "a mark before the first letter": (NUMBERED, "\ufeff02.01.2026;1234,50\n", [BOOKED]),
    "an amount of zero": (NUMBERED, "02.01.2026;0,00\n02.01.2026;1234,50\n", [BOOKED]),
    "a header alone": (PLAIN, "Date;Text;Amount\n", []),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_give_lines(shape: str) -> None:
    form, text, lines = SHAPES[shape]
    profile = Profile(**form)
    encoding = "utf-8" if profile.encoding == "utf-8-sig" else profile.encoding
    statements = read(text.encode(encoding), profile=profile)
    assert [shown(line) for statement in statements for line in statement.lines] == lines


def test_each_account_and_currency_has_a_statement() -> None:
    days = (("A", "02", "EUR"), ("B", "03", "EUR"), ("A", "01", "EUR"), ("A", "01", "USD"))
    rows = "".join(f"1;{account};{day}.01.2026;;;;;;5,00;{currency}\n" for account, day, currency in days)
    statements = read((ALL_HEAD + rows).encode(), profile=Profile(**ALL))
    assert [head(each) for each in statements] == [
        "A EUR  None..None 2026-01-01..2026-01-02",
        "B EUR  None..None 2026-01-03..2026-01-03",
        "A USD  None..None 2026-01-01..2026-01-01",
    ]
    assert [line.position for line in statements[0].lines] == ["Line 2", "Line 4"]


BALANCED = Profile(**{**NUMBERED, "columns": {"day": 1, "amount": 2, "balance": 3}})
ROWS = ["02.01.2026;5,00;105,00\n", "02.01.2026;-2,00;103,00\n", "03.01.2026;5,00;108,00\n"]


@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]])
def test_balances_of_rows_are_followed_from_the_oldest_row(rows: list[str]) -> None:
    (statement,) = read("".join(rows).encode(), profile=BALANCED)
    assert head(statement) == "A1 EUR  100.00..108.00 2026-01-02..2026-01-03"


REFUSED: dict[str, tuple[Form, str, str]] = {
    "no column": (PLAIN, "Day;Text;Amount\n", "The header row: it names this column 0 times: 'Date'."),
    "a column twice": (PLAIN, "Date;Date;Text;Amount\n", "it names this column 2 times: 'Date'"),
    "half a row": (PLAIN, "Date;Text;Amount\n02.01.2026;a\n", "Line 2: the row has 2 cells"),
    "half a cell": (
        PLAIN,
        'Date;Text;Amount\n02.01.2026;"a',
        "Line 2: the row can't be read (unexpected end of data).",
    ),
    "a day": (NUMBERED, "2026-01-02;5,00\n", "Line 1: this is no day as 31.12.2026: '2026-01-02'."),
    "an amount": (
        NUMBERED,
        "02.01.2026;5,00,1\n",
        "Line 1: this is no amount in the form of the profile: '5,00,1'.",
    ),
    "groups of two": (NUMBERED, "02.01.2026;12.34\n", "this is no amount in the form"),
    "another currency's code": (NUMBERED, "02.01.2026;5,00 USD\n", "this is no amount in the form"),
    "half a bracket": (NUMBERED, "02.01.2026;(5,00\n", "this is no amount in the form"),
    "digits of other scripts": (NUMBERED, "02.01.2026;٥\n", "this is no amount in the form"),
    "no amount": (NUMBERED, "02.01.2026;\n", "Line 1: this is no amount in the form of the profile: ''."),
    "decimals": (NUMBERED, "02.01.2026;5,001\n", "an amount has at most 2 decimals"),
    "both sides": (SIDES, "02.01.2026;1,00;2,00\n", "Line 1: an amount stands in one of the cells"),
    "no side": (SIDES, "02.01.2026;;\n", "an amount stands in one of the cells"),
    "a credit below zero": (SIDES, "02.01.2026;;-2,00\n", "an amount stands in one of the cells"),
    "a sign and a word": (MARKED, "02.01.2026;-1,00;S\n", "Line 1: the amount has a sign besides the word"),
    "a word for a direction": (MARKED, "02.01.2026;1,00;X\n", "does not know this word: 'X'"),
    "a word for a status": (STATES, "02.01.2026;1,00;X\n", "does not know this word: 'X'"),
    "a currency": (
        ALL,
        ALL_HEAD + "1;A;02.01.2026;;;;;;5,00;€\n",
        "Line 2: a currency has three capital letters: '€'.",
    ),
    "no account": (ALL, ALL_HEAD + "1;;02.01.2026;;;;;;5,00;EUR\n", "Line 2: the account is missing."),
    "another encoding": (
        {**PLAIN, "encoding": "utf-16"},
        "Date;Text;Amount\n12",
        "no text in utf-16",
    ),
    "UTF-8 by an older profile": (
        {**PLAIN, "encoding": "cp1252"},
        "Date;Text;Amount\n02.01.2026;ü;1\n",
        "The file is in UTF-8, and its profile says cp1252.",
    ),
    "control characters": (
        PLAIN,
        "Date;Text;Amount\n02.01.2026;\0;1\n",
        "Line 2: the file has control characters",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_is_refused_whole_with_a_sentence(case: str) -> None:
    form, text, sentence = REFUSED[case]
    assert sentence in refusal_of(text.encode(), Profile(**form), "csv")


def test_a_row_whose_balance_does_not_follow_is_named() -> None:
    text = "".join(ROWS).replace("103", "104").encode()
    assert "Line 2: the balance does not follow" in refusal_of(text, BALANCED)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"columns": {"day": 1}}, "a column for the amount"),
        ({"columns": {"amount": 1}}, "a column for the day"),
        ({"columns": {"day": 1, "amount": 2, "credit": 3}}, "a column for the amount"),
        ({"columns": {"day": 0, "amount": 2}}, "counted from 1"),
        ({"columns": {"day": "Date", "amount": 2}, "has_header": False}, "need a header row"),
        ({"columns": {"day": 1, "amount": 2, "colour": 3}}, "columns are"),
        ({"columns": {"day": 1, "amount": 2, "direction": 3}}, "words for credit"),
        ({"columns": {"day": 1, "amount": 2, "status": 3}}, "words for the status"),
        ({"currency": ""}, "a currency"),
        ({"account": ""}, "an account"),
        ({"encoding": "unicode_escape"}, "an encoding is one of"),
        ({"delimiter": "ab"}, "separated by"),
        ({"decimal_mark": "x"}, "the decimal mark"),
        ({"day_form": "%d.%m."}, "the form of a day"),
        ({"day_form": "%"}, "the form of a day"),
        ({"rows_above": -1}, "counted from 0"),
    ],
)
def test_a_profile_that_can_read_nothing_is_refused(change: Form, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Profile(**{**NUMBERED, **change})
