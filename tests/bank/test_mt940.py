"""MT940: the fields 61 and 86 as banks write them, and what is read of each."""

import pytest

from services.bank.files.reading import read
from tests.bank.shapes import head, mt940, refusal_of, shown

BOOKED = "+100.00 EUR booked 2026-01-02"
PLAIN = ":61:260102C100,00NTRFNONREF"
CLOSING = "C260102EUR1100,00"
WRAPPED = (
    ":86:166?00GUTSCHRIFT?109310?20EREF+7K3M9QT9?21SVWZ+Danke fuer die schnell?22e Lieferung Bestel\r\n"
    "lung 7K3M?30COBADEFFXXX?31DE89370400440532013000?32MAX MUSTERMANN UND ERIKA M?33USTERMANN"
)

SHAPES = {
    "the shortest": (PLAIN, BOOKED),
    "an entry date": (":61:2601050102C100,00NTRFNONREF", f"{BOOKED} | valued 2026-01-05"),
    "an entry date of the year before": (
        ":61:2601021231C100,00NTRFNONREF",
        "+100.00 EUR booked 2025-12-31 | valued 2026-01-02",
    ),
    "a leap day": (":61:2402280229C100,NTRFNONREF", "+100 EUR booked 2024-02-29 | valued 2024-02-28"),
    "a funds code": (":61:260102CR100,00NTRFNONREF", BOOKED),
    "references": (":61:260102C100,00NTRFINV7K3M//2026-0001", f"{BOOKED} | id 2026-0001 | ref INV7K3M"),
    "bank's reference alone": (":61:260102C100,00FMSC//B 1", f"{BOOKED} | id B 1"),
    "a type by number": (":61:260102C100,00S202NONREF", BOOKED),
    "supplementary details": (f"{PLAIN}\r\n/OCMT/USD120,00/", f"{BOOKED} | /OCMT/USD120,00/"),
    "an account as supplementary details": (
        f"{PLAIN}\r\nNL91ABNA0417164300",
        f"{BOOKED} | NL91ABNA0417164300",
    ),
    "free text": (f"{PLAIN}\r\n:86:Payment 7K3M\r\n9QT9 by Max", f"{BOOKED} | Payment 7K3M 9QT9 by Max"),
    "free text in full lines": (f"{PLAIN}\r\n:86:{'x' * 61}7K3M\r\n9QT9", f"{BOOKED} | {'x' * 61}7K3M9QT9"),
    "coded fields": (
        f"{PLAIN}\r\n{WRAPPED}",
        f"{BOOKED} | MAX MUSTERMANN UND ERIKA MUSTERMANN | DE89370400440532013000"
        " | Danke fuer die schnelle Lieferung Bestellung 7K3M | ref 7K3M9QT9",
    ),
    "coded fields with another mark": (
        f"{PLAIN}\r\n:86:020~00PRZELEW~20Zamowienie 7K3M9QT9~32Jan~33 Kowalski~38PL61109010140000071219812874",
        f"{BOOKED} | Jan Kowalski | PL61109010140000071219812874 | Zamowienie 7K3M9QT9",
    ),
    "coded fields without a code": (f"{PLAIN}\r\n:86:?00A?20B?32C", f"{BOOKED} | C | B"),
    "a reference cut by a full field": (
        f"{PLAIN}\r\n:86:166?20{'y' * 23}7K3M?219QT9?60more",
        f"{BOOKED} | {'y' * 23}7K3M9QT9 more",
    ),
    "fields between slashes": (
        f"{PLAIN}\r\n:86:/TRTP/SEPA OVERBOEKING/IBAN/NL91ABNA0417164300/BIC/ABNANL2A/NAME/J JANSEN/REMI/7K3M"
        " 9QT9/EREF/NOTPROVIDED",
        f"{BOOKED} | J JANSEN | NL91ABNA0417164300 | 7K3M 9QT9",
    ),
    "fields between slashes with a counterparty": (
        f"{PLAIN}\r\n:86:/EREF/E1//CNTP/NL91ABNA0417164300/ABNANL2A/J JANSEN///REMI/USTD//7K3M 9QT9/",
        f"{BOOKED} | J JANSEN | NL91ABNA0417164300 | 7K3M 9QT9 | ref E1",
    ),
    "orders between slashes": (
        f"{PLAIN}\r\n:86:/PREF/P1/ORDP//NAME/Acme/REMI/STRD/CUR/RF18 7K3M",
        f"{BOOKED} | Acme | RF18 7K3M | ref P1",
    ),
    "a debit is reversed": (":61:260102RD100,00NTRFNONREF", "+100.00 EUR reversed 2026-01-02"),
    "a value date of a year with 360 days": (
        ":61:1602300301C100,00NTRFNONREF",
        "+100.00 EUR booked 2016-03-01 | valued 2016-02-29",
    ),
    "an amount without a comma": (":61:260102C000000000100NTRFNONREF", "+100 EUR booked 2026-01-02"),
    "the name beside the reference": (
        ":61:260102C000000100,00N0600733959555      J JANSEN          \r\n:86:7K3M 9QT9          \r\n:86:more     ",
        f"{BOOKED} | 7K3M 9QT9 more | ref 0733959555 J JANSEN",
    ),
    "the account as reference": (
        ":61:260102C100,00NOVBNL47INGB9999999999\r\nj jansen\r\n:86:x",
        f"{BOOKED} | NL47INGB9999999999 | j jansen x",
    ),
    "words that say where the reference stands": (
        ":61:260102C100,00NTRFKREF+\r\n:86:166?20EREF+A1",
        f"{BOOKED} | EREF+A1 | ref A1",
    ),
    "a time cut by the end of a line": (
        f"{PLAIN}\r\n:86:on 2026-01-02T16\r\n:26:37",
        f"{BOOKED} | on 2026-01-02T16 :26:37",
    ),
    "two texts": (f"{PLAIN}\r\n:86:one\r\n:86:two", f"{BOOKED} | one two"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_entry_gives_its_line(shape: str) -> None:
    fields, line = SHAPES[shape]
    (statement,) = read(mt940(fields, closing=CLOSING).encode())
    assert [shown(each) for each in statement.lines] == [line]


def test_debits_and_reversed_credits_take_money_away() -> None:
    fields = ":61:260102D40,00NCHGNONREF", ":61:260102RC60,00NRTINONREF"
    (statement,) = read(mt940(*fields, closing="C260102EUR900,").encode())
    assert [shown(each) for each in statement.lines] == [
        "-40.00 EUR booked 2026-01-02",
        "-60.00 EUR reversed 2026-01-02",
    ]
    assert head(statement) == "37040044/532013000 EUR 5/1 1000.00..900 2026-01-01..2026-01-02"


TAIL = ":64:C260102EUR1100,00\r\n:86:of the statement"
ENVELOPE = "{1:F01BANKDEFFAXXX0000000000}{2:I940BANKDEFFXXXXN}{4:\r\n"
WHOLE = mt940(PLAIN, closing=f"{CLOSING}\r\n{TAIL}")
FILES = {
    "two statements": WHOLE * 2,
    "of SWIFT": f"{ENVELOPE}{WHOLE[:-4]}\r\n-}}{{5:}}\r\n" * 2,
    "with lines above": f"ABNANL2A\r\n940\r\nABNANL2A\r\n{WHOLE}" * 2,
    "of another bank's envelope": f"0000 01INGBNL2AXXXX00001\r\n940 00\r\n{WHOLE.replace('-', '-XXX')}" * 2,
    "as transmitted": f"\x01\r\n{WHOLE[:-4]}\r\n-\x03\r\n" * 2,
    "with a first field": f":940:\r\n{WHOLE}{WHOLE}",
    "without ends": WHOLE.replace("\r\n-", "") * 2,
    "with line feeds": WHOLE.replace("\r", "") * 2,
    "a page each": WHOLE.replace(":62F:", ":62M:") + WHOLE.replace(":60F:", ":60M:"),
    "with the currency beside the account": WHOLE.replace("532013000", "532013000EUR") * 2,
}


@pytest.mark.parametrize("case", FILES)
def test_each_statement_of_a_file_is_read_for_itself(case: str) -> None:
    first, _, rest = FILES[case].rpartition("532013000")
    statements = read(f"{first}2{rest}".encode("cp1252"))
    assert [(each.account, [shown(line) for line in each.lines]) for each in statements] == [
        ("37040044/532013000", [BOOKED]),
        ("37040044/2", [BOOKED]),
    ]


REFUSED = {
    "half a file": (
        WHOLE[: WHOLE.index(":62F")],
        "Line 1: the statement breaks off",
    ),
    "half an entry": (
        WHOLE[: WHOLE.index("0NTRF")],
        "Line 5: this is no entry of a statement: '260102C100,0'.",
    ),
    "no balance": (
        WHOLE.replace(":60F:", ":64:"),
        "Line 5: the field is unknown or stands at a wrong place: ':61:'.",
    ),
    "an unknown field": (
        WHOLE.replace(":64:", ":9Z:"),
        "Line 7: the field is unknown or stands at a wrong place: ':9Z:'.",
    ),
    "an entry after the end": (WHOLE.replace(":64:", ":61:"), "Line 7: the field is unknown"),
    "words between statements": (f"{WHOLE}Dear customer,\r\n{WHOLE}", "Line 10: this belongs to no field"),
    "no start": (WHOLE.replace(":20:", ":21:", 1) + WHOLE, "Line 1: a field stands before :20:"),
    "sums": (WHOLE.replace("R1100", "R1101"), "Statement 1: the closing balance differs by 1.00 from"),
    "another currency": (WHOLE.replace(CLOSING, "C260102USD1100,00"), "the balances are in two currencies"),
    "decimals": (WHOLE.replace("C100,00", "C100,001"), "Line 5: an amount has at most 2 decimals"),
    "a day": (
        WHOLE.replace(":61:260102", ":61:260132"),
        "Line 5: this is no day as 261231: '260132'.",
    ),
    "an entry day": (
        WHOLE.replace(":61:260102", ":61:2601020230"),
        "Line 5: this is no day as 20261231: '20260230'.",
    ),
    "an amount with a point": (WHOLE.replace("C100,00", "C100.00"), "Line 5: this is no entry"),
    "a balance": (WHOLE.replace("C260101EUR", "C260101eur"), "Line 4: this is no balance"),
    "control characters": (WHOLE.replace("STARTUMS", "S\0"), "Line 1: the file has control characters"),
    "no account": (WHOLE.replace(":25:", ":21:"), "Line 1: the statement breaks off, or lacks :25:"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_is_refused_whole_with_a_sentence(case: str) -> None:
    text, sentence = REFUSED[case]
    assert sentence in refusal_of(text.encode("cp1252"))


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-8", "Grüße"), ("utf-8-sig", "Grüße"), ("cp1252", "Grüße"), ("cp852", "Źródło")],
)
def test_letters_with_marks_are_read_in_the_encodings_of_banks(encoding: str, text: str) -> None:
    (statement,) = read(mt940(PLAIN, f":86:{text}", closing=CLOSING).encode(encoding))
    assert statement.lines[0].text == text
