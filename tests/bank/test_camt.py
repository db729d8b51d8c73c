"""CAMT: the shapes in which banks write entries, and what is read of each."""

import pytest

from services.bank.files.reading import read
from tests.bank.shapes import IBAN, balance, camt, end_to_end, entry, head, refusal_of, shown, ustrd

BOOKED = "+100.00 EUR booked 2026-01-02"
DEBTOR = f"<Dbtr><Nm>Max Muster</Nm></Dbtr><DbtrAcct><Id><IBAN>{IBAN}</IBAN></Id></DbtrAcct>"
CREDITOR = "<Cdtr><Nm>Shop AG</Nm></Cdtr><CdtrAcct><Id><Othr><Id>40 1</Id></Othr></Id></CdtrAcct>"
PARTIES = f"<RltdPties>{DEBTOR}{CREDITOR}</RltdPties>"
PARTY_OF_08 = "<RltdPties><Dbtr><Pty><Nm>Max\n Muster</Nm></Pty></Dbtr></RltdPties>"
STRUCTURED = (
    "<RmtInf><Strd><CdtrRefInf><Ref>RF18 7K</Ref></CdtrRefInf><AddtlRmtInf>rent</AddtlRmtInf></Strd></RmtInf>"
)


def part(amount: str, mark: str = "", currency: str = "EUR", more: str = "") -> str:
    direction = f"<CdtDbtInd>{mark}</CdtDbtInd>" if mark else ""
    return f'<Amt Ccy="{currency}">{amount}</Amt>{direction}{more}'


def old_part(amount: str, more: str = "") -> str:
    return f'{more}<AmtDtls><TxAmt><Amt Ccy="EUR">{amount}</Amt></TxAmt></AmtDtls>'


SHAPES = {
    "no details": (entry(after="<AddtlNtryInf>GUTSCHRIFT</AddtlNtryInf>"), [f"{BOOKED} | GUTSCHRIFT"]),
    "status as of version 02": (entry(status="BOOK"), [BOOKED]),
    "end to end and text in two parts": (
        entry("100.00", end_to_end("7K3M-9QT9") + PARTIES + ustrd("Order 7K3M", "9QT9 thanks")),
        [f"{BOOKED} | Max Muster | {IBAN} | Order 7K3M 9QT9 thanks | ref 7K3M-9QT9"],
    ),
    "party of version 08": (entry("100.00", PARTY_OF_08), [f"{BOOKED} | Max Muster"]),
    "no end to end": (entry("100.00", end_to_end("NOTPROVIDED")), [BOOKED]),
    "creditor's reference": (entry("100.00", STRUCTURED), [f"{BOOKED} | rent | ref RF18 7K"]),
    "a debit names the creditor": (
        entry("100.00", PARTIES, mark="DBIT"),
        ["-100.00 EUR booked 2026-01-02 | Shop AG | 401"],
    ),
    "bank's id": (entry(after="<AcctSvcrRef>2026/1</AcctSvcrRef>"), [f"{BOOKED} | id 2026/1"]),
    "bank's id of the transaction": (
        entry("100.00", "<Refs><AcctSvcrRef>T1</AcctSvcrRef></Refs>"),
        [f"{BOOKED} | id T1"],
    ),
    "days with times": (
        entry(
            days="<BookgDt><DtTm>2026-01-02T23:59:00+01:00</DtTm></BookgDt><ValDt><Dt>2026-01-05+01:00</Dt></ValDt>"
        ),
        [f"{BOOKED} | valued 2026-01-05"],
    ),
    "pending": (entry(status="<Cd>PDNG</Cd>", days=""), ["+100.00 EUR pending None"]),
    "future": (entry(status="<Cd>FUTR</Cd>"), ["+100.00 EUR pending 2026-01-02"]),
    "for information": (entry(status="<Cd>INFO</Cd>"), []),
    "of zero": (entry("0.00"), []),
    "a credit is reversed": (
        entry("100.00", PARTIES, mark="DBIT", before="<RvslInd>true</RvslInd>"),
        [f"-100.00 EUR reversed 2026-01-02 | Max Muster | {IBAN}"],
    ),
    "a pending reversal": (
        entry(mark="DBIT", status="PDNG", before="<RvslInd>1</RvslInd>"),
        ["-100.00 EUR pending 2026-01-02"],
    ),
    "a batch with amounts": (
        entry(
            "30.00",
            part("10.00", more=end_to_end("A1")),
            part("20.00", more=ustrd("b")),
            after="<AcctSvcrRef>B</AcctSvcrRef>",
        ),
        ["+10.00 EUR booked 2026-01-02 | id B/1 | ref A1", "+20.00 EUR booked 2026-01-02 | id B/2 | b"],
    ),
    "a batch of version 02": (
        entry("30.00", old_part("10.00", end_to_end("A1")), old_part("20.00")),
        ["+10.00 EUR booked 2026-01-02 | ref A1", "+20.00 EUR booked 2026-01-02"],
    ),
    "a batch in both directions": (
        entry("10.00", part("15.00", "CRDT"), part("5.00", "DBIT")),
        ["+15.00 EUR booked 2026-01-02", "-5.00 EUR booked 2026-01-02"],
    ),
    "a batch less its charges": (
        entry("29.50", part("10.00", more=end_to_end("A1")), part("20.00", more=end_to_end("A2"))),
        ["+29.50 EUR booked 2026-01-02 | ref A1 | ref A2"],
    ),
    "a batch in another currency": (
        entry("30.00", part("10.00", currency="USD"), part("20.00", currency="USD")),
        ["+30.00 EUR booked 2026-01-02"],
    ),
    "a batch without amounts": (
        entry("30.00", ustrd("a"), ustrd("b")),
        ["+30.00 EUR booked 2026-01-02 | a b"],
    ),
    "a prefixed namespace": (
        entry().replace("<", "<n:").replace("<n:/", "</n:"),
        [BOOKED],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_entry_gives_its_lines(shape: str) -> None:
    xml, lines = SHAPES[shape]
    document = camt(xml).replace("<Document ", '<Document xmlns:n="urn:any" ')
    (statement,) = read(document.encode())
    assert [shown(line) for line in statement.lines] == lines


@pytest.mark.parametrize(("kind", "version"), [("052", "08"), ("053", "02"), ("054", "13")])
def test_each_message_is_read_in_any_version(kind: str, version: str) -> None:
    (statement,) = read(camt(entry(), kind=kind, version=version).encode())
    assert [shown(line) for line in statement.lines] == [BOOKED]


HEADS = {
    "balances of the day": (
        [balance("OPBD", "50.00", "DBIT"), balance("CLBD", "50.00", day="2026-01-03")],
        f"{IBAN} EUR 12 -50.00..50.00 2026-01-02..2026-01-03",
    ),
    "the closing balance before": (
        [balance("PRCD", "1.00"), balance("CLBD", "101.00"), balance("CLAV", "7.00")],
        f"{IBAN} EUR 12 1.00..101.00 2026-01-02..2026-01-02",
    ),
    "interim balances": (
        [balance("ITBD", "1.00"), balance("ITAV", "1.00")],
        f"{IBAN} EUR 12 None..None None..None",
    ),
    "the span of a report": (
        ["<FrToDt><FrDtTm>2026-01-01T00:00:00</FrDtTm><ToDtTm>2026-01-02T12:00:00</ToDtTm></FrToDt>"],
        f"{IBAN} EUR 12 None..None 2026-01-01..2026-01-02",
    ),
}


@pytest.mark.parametrize("case", HEADS)
def test_a_statement_has_its_balances_and_days(case: str) -> None:
    parts, expected = HEADS[case]
    (statement,) = read(camt(entry(), entry("7.00", status="PDNG"), balances="".join(parts)).encode())
    assert head(statement) == expected


def test_a_report_of_a_day_that_goes_on_has_no_balances() -> None:
    balances = balance("OPBD", "1.00") + balance("CLBD", "1.00")
    (statement,) = read(camt(entry(), balances=balances, kind="052").encode())
    assert (statement.opening, statement.closing) == (None, None)


def test_several_statements_of_an_envelope_are_read() -> None:
    one, two = camt(entry()), camt(entry("5.00"), account="<Othr><Id>CH 9 1</Id></Othr>")
    second = two[two.index("<Stmt>") : two.index("</BkToCstmrStmt>")]
    document = one.replace("</BkToCstmrStmt>", f"{second}</BkToCstmrStmt>")
    body = document.partition("?>")[2]
    statements = read(f'<?xml version="1.0"?><Envelope><AppHdr/>{body}</Envelope>'.encode("utf-16"))
    assert [(each.account, len(each.lines)) for each in statements] == [(IBAN, 1), ("CH91", 1)]
    assert statements[1].lines[0].position == "Statement 2, entry 1"


ENTITIES = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
REFUSED = {
    "a document type": (
        camt(entry()).replace("<Document", f"{ENTITIES}<Document", 1),
        "document type or entities",
    ),
    "too many levels": (camt(entry("1.00", "<a>" * 30 + "</a>" * 30)), "more than 32 levels"),
    "half a file": (camt(entry(), entry())[:-40], "Line 2: the XML is broken or breaks off."),
    "another message": ("<Document><CstmrCdtTrfInitn/></Document>", "no CAMT.052"),
    "an unknown encoding": (camt(entry()).replace("UTF-8", "KLINGON"), "an encoding that can't be read"),
    "sums": (
        camt(entry(), balances=balance("OPBD", "1.00") + balance("CLBD", "100.99")),
        "Statement 1: the closing balance differs by -0.01 from",
    ),
    "two currencies": (
        camt(entry(currency="USD"), balances=balance("OPBD", "1.00") + balance("CLBD", "101.00")),
        "Statement 1, entry 1: the account is in EUR, and the line in USD.",
    ),
    "decimals": (
        camt(entry("1.001")),
        "Statement 1, entry 1: an amount has at most 2 decimals: '1.001'.",
    ),
    "an exponent": (camt(entry("1e3")), "this is no amount: '1e3'"),
    "below zero": (camt(entry("-1.00")), "never below zero"),
    "a vast amount": (camt(entry("1000000000000000.00")), "the amount is too large"),
    "a currency": (
        camt(entry(), entry(currency="eur")),
        "Statement 1, entry 2: a currency has three capital letters",
    ),
    "no status": (camt(entry(status="")), "the status (Sts) is none of"),
    "a direction": (camt(entry(mark="CR")), "neither CRDT nor DBIT: 'CR'"),
    "a flag": (camt(entry(before="<RvslInd>yes</RvslInd>")), "RvslInd is neither true nor false"),
    "a day": (
        camt(entry(days="<BookgDt><Dt>2026-02-30</Dt></BookgDt>")),
        "this is no day as 2026-12-31: '2026-02-30'",
    ),
    "no account": (camt(entry(), account=""), "Statement 1: the account (Acct) is missing."),
    "no amount": (camt("<Ntry><Sts>BOOK</Sts></Ntry>"), "the amount (Amt) is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_is_refused_whole_with_a_sentence(case: str) -> None:
    document, sentence = REFUSED[case]
    assert sentence in refusal_of(document.encode())
