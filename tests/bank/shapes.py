"""Makes statement files as banks write them, and one line of text of each line read."""

import pytest

from services.bank.domain.lines import Line, Statement
from services.bank.files.csv_files import Profile
from services.bank.files.reading import Format, read
from services.bank.files.values import FileRefused

REFERENCE = "7K3M9QT9"


def shown(line: Line) -> str:
    """Returns the values of a line that are not empty; a test compares all of them at once."""
    parts = (
        f"{'+' if line.signed_amount > 0 else '-'}{line.amount} {line.currency} {line.status} {line.booked_on}",
        f"valued {line.valued_on}" if line.valued_on not in (None, line.booked_on) else "",
        f"id {line.source_id}" if line.source_id else "",
        line.counterparty_name,
        line.counterparty_account,
        line.text,
        *(f"ref {each}" for each in line.references),
    )
    return " | ".join(filter(None, parts))


def head(statement: Statement) -> str:
    return (
        f"{statement.account} {statement.currency} {statement.number} {statement.opening}..{statement.closing}"
        f" {statement.opened_on}..{statement.closed_on}"
    )


def refusal_of(content: bytes, profile: Profile | None = None, form: str = "") -> str:
    """Returns the sentence with which the file is refused."""
    with pytest.raises(FileRefused) as refused:
        read(content, format=Format(form) if form else None, profile=profile)
    return str(refused.value)


# -- CAMT

ROOTS = {
    "052": ("BkToCstmrAcctRpt", "Rpt"),
    "053": ("BkToCstmrStmt", "Stmt"),
    "054": ("BkToCstmrDbtCdtNtfctn", "Ntfctn"),
}
IBAN = "DE89370400440532013000"


def camt(
    *entries: str,
    kind: str = "053",
    version: str = "08",
    balances: str = "",
    account: str = f"<IBAN>{IBAN}</IBAN>",
) -> str:
    """Returns a document with one statement of these entries."""
    root, statement = ROOTS[kind]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.{kind}.001.{version}"><{root}>'
        f"<GrpHdr><MsgId>M1</MsgId></GrpHdr><{statement}><Id>S1</Id><ElctrncSeqNb>12</ElctrncSeqNb>"
        f"<Acct><Id>{account}</Id><Ccy>EUR</Ccy></Acct>{balances}{''.join(entries)}</{statement}></{root}></Document>"
    )


def balance(code: str, amount: str, mark: str = "CRDT", day: str = "2026-01-02") -> str:
    return (
        f"<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy='EUR'>{amount}</Amt>"
        f"<CdtDbtInd>{mark}</CdtDbtInd><Dt><Dt>{day}</Dt></Dt></Bal>"
    )


def entry(
    amount: str = "100.00",
    *details: str,
    mark: str = "CRDT",
    status: str = "<Cd>BOOK</Cd>",
    currency: str = "EUR",
    before: str = "",
    days: str = "<BookgDt><Dt>2026-01-02</Dt></BookgDt>",
    after: str = "",
) -> str:
    """Returns an entry; `before` stands before its status, `details` are those of its transactions."""
    transactions = "".join(f"<TxDtls>{each}</TxDtls>" for each in details)
    return (
        f'<Ntry><Amt Ccy="{currency}">{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd>{before}'
        + f"<Sts>{status}</Sts>{days}{after}"
        + (f"<NtryDtls>{transactions}</NtryDtls>" if details else "")
        + "</Ntry>"
    )


def end_to_end(reference: str) -> str:
    return f"<Refs><EndToEndId>{reference}</EndToEndId></Refs>"


def ustrd(*texts: str) -> str:
    return f"<RmtInf>{''.join(f'<Ustrd>{each}</Ustrd>' for each in texts)}</RmtInf>"


# -- MT940


def mt940(
    *fields: str, opening: str = "C260101EUR1000,00", closing: str, account: str = "37040044/532013000"
) -> str:
    """Returns a statement with these fields 61 and 86."""
    return "\r\n".join(
        (":20:STARTUMS", f":25:{account}", ":28C:5/1", f":60F:{opening}", *fields, f":62F:{closing}", "-", "")
    )
