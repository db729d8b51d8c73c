"""CAMT.052, .053 and .054 of ISO 20022, in any version: reports, statements and notices of an account as XML."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from io import BytesIO
from typing import Final
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from services.bank.domain.lines import Direction, Line, Statement, Status
from services.bank.files.values import FileRefused, Place, check_count, cleaned, prose, references_of

DEPTH_MOST: Final = 32
ELEMENTS_MOST: Final = 1_000_000
"""More than a real file of the greatest size has: it would have 20 bytes for an element."""
HELD_MOST: Final = 200_000
"""Elements in memory at a time: of one entry, of some 5,000 transactions, or of a statement beside its entries."""
NAMES_MOST: Final = 1_000
"""Names of elements and attributes, which the parser keeps to the end."""

_STATEMENTS: Final = {
    "Rpt": "BkToCstmrAcctRpt",
    "Stmt": "BkToCstmrStmt",
    "Ntfctn": "BkToCstmrDbtCdtNtfctn",
}
_DIRECTIONS: Final = {"CRDT": Direction.CREDIT, "DBIT": Direction.DEBIT}
_STATUSES: Final = {"BOOK": Status.BOOKED, "PDNG": Status.PENDING, "FUTR": Status.PENDING}
_FLAGS: Final = {"": False, "false": False, "0": False, "true": True, "1": True}


def read_camt(content: bytes) -> Sequence[Statement]:
    """Returns the statements in their order; those of CAMT.053 have balances. Entries for information, and those of
    amount zero, give no line.

    An entry with several transactions gives a line for each of them if their amounts add up to its own, else one line.
    Raises FileRefused.
    """
    statements: list[Statement] = []
    lines: list[Line] = []
    entries = taken = 0
    try:
        for parent, element in _elements(content):
            name = f"Statement {len(statements) + 1}"
            if element.tag == "Ntry" and parent in _STATEMENTS:
                entries += 1
                lines += _lines(element, Place(f"{name}, entry {entries}"))
                check_count(taken + len(lines))
                element.clear()
            elif parent.startswith(_STATEMENTS.get(element.tag, "-")):  # version 01 ends its name with V01
                statements.append(_statement(element, Place(name), lines))
                taken += len(lines)
                lines, entries = [], 0
                element.clear()
    except ParseError as error:
        raise FileRefused(f"Line {error.position[0]}: the XML is broken or breaks off.") from None
    except DefusedXmlException:
        raise FileRefused("The XML declares a document type or entities, which no bank needs.") from None
    except (LookupError, ValueError):  # by the parser, of the encoding that the file names
        raise FileRefused("The XML is in an encoding that can't be read.") from None
    if not statements:
        raise FileRefused("The XML is no CAMT.052, CAMT.053 or CAMT.054 with a statement.")
    return statements


def _elements(content: bytes) -> Iterator[tuple[str, Element]]:
    """Yields each element that ended, without its namespace, with the name of its parent."""
    path = [""]
    names: set[str] = set()
    held = [0]  # elements in memory when each one of the path began, and now
    count = 0
    for event, element in iterparse(BytesIO(content), events=("start", "end"), forbid_dtd=True):
        if event == "start":
            names.update((element.tag, *element.keys()))
            element.tag = element.tag.rpartition("}")[2]
            path.append(element.tag)
            count += 1
            held.append(held[-1] + 1)
            if len(path) > DEPTH_MOST + 1 or count > ELEMENTS_MOST:
                raise FileRefused(f"The XML has more than {DEPTH_MOST} levels or {ELEMENTS_MOST:,} elements.")
            if held[-1] > HELD_MOST or len(names) > NAMES_MOST:
                raise FileRefused(
                    f"The XML has more than {HELD_MOST:,} elements in an entry, or {NAMES_MOST:,} names."
                )
        else:
            path.pop()
            now, had_members = held.pop(), len(element) > 0
            yield path[-1], element
            if not had_members or len(element):  # else it was read and emptied
                held[-1] = now


def _statement(element: Element, place: Place, lines: Sequence[Line]) -> Statement:
    account = _account(element, "Acct")
    if not account:
        raise place.refused("the account (Acct) is missing")
    # In a report of a day that goes on, balances and entries need not fit together.
    followed = element.iterfind("Bal") if element.tag == "Stmt" else ()
    balances = {_text(each, "Tp/CdOrPrtry/Cd"): each for each in followed}
    opening, closing = balances.get("OPBD", balances.get("PRCD")), balances.get("CLBD")
    currencies = (each.get("Ccy", "") for each in element.iterfind("Bal/Amt"))
    currency = _text(element, "Acct/Ccy") or next(currencies, lines[0].currency if lines else "")
    return Statement(
        account=account,
        currency=place.currency(currency) if currency else "",
        opening=None if opening is None else _signed(opening, Place(f"{place.name}, opening balance")),
        closing=None if closing is None else _signed(closing, Place(f"{place.name}, closing balance")),
        opened_on=_day(place, element, "FrToDt/FrDtTm", "FrToDt/FrDt")
        or _day(place, opening, "Dt/Dt", "Dt/DtTm"),
        closed_on=_day(place, element, "FrToDt/ToDtTm", "FrToDt/ToDt")
        or _day(place, closing, "Dt/Dt", "Dt/DtTm"),
        number=cleaned(_text(element, "ElctrncSeqNb", "LglSeqNb")),
        lines=tuple(replace(line, account=account) for line in lines),
    )


def _lines(entry: Element, place: Place) -> Sequence[Line]:
    code, flag = _text(entry, "Sts/Cd", "Sts"), _text(entry, "RvslInd")
    if code == "INFO":
        return []
    if code not in _STATUSES:
        raise place.refused("the status (Sts) is none of BOOK, PDNG, FUTR and INFO", code)
    if flag not in _FLAGS:
        raise place.refused("RvslInd is neither true nor false", flag)
    amount, currency = _amount(entry, place)
    whole = Line(
        account="",
        direction=_direction(entry, place),
        amount=amount,
        currency=currency,
        status=Status.REVERSED if _FLAGS[flag] and code == "BOOK" else _STATUSES[code],
        booked_on=_day(place, entry, "BookgDt/Dt", "BookgDt/DtTm"),
        valued_on=_day(place, entry, "ValDt/Dt", "ValDt/DtTm"),
        position=place.name,
        source_id=_id(entry, "AcctSvcrRef"),
    )
    details = list(entry.iterfind("NtryDtls/TxDtls"))
    parts = _parts(details, whole) if len(details) > 1 else []
    pairs = [(part, [detail]) for part, detail in zip(parts, details, strict=False)] or [(whole, details)]
    return [_with_details(line, entry, of_line) for line, of_line in pairs if line.amount]


def _parts(details: Sequence[Element], whole: Line) -> Sequence[Line]:
    """Returns a line for each transaction; none unless all have amounts and these add up to the entry's."""
    parts = []
    for number, detail in enumerate(details, 1):
        place = Place(f"{whole.position}, transaction {number}")
        holder = detail if detail.find("Amt") is not None else detail.find("AmtDtls/TxAmt")
        if holder is None or holder.find("Amt") is None:
            return []
        amount, currency = _amount(holder, place)
        part = replace(
            whole,
            direction=whole.direction if detail.find("CdtDbtInd") is None else _direction(detail, place),
            amount=amount,
            currency=currency,
            position=place.name,
            source_id=_id(detail, "Refs/AcctSvcrRef") or (whole.source_id and f"{whole.source_id}/{number}"),
        )
        parts.append(part)
    adds_up = sum((part.signed_amount for part in parts), Decimal(0)) == whole.signed_amount
    return parts if adds_up and {part.currency for part in parts} == {whole.currency} else []


def _with_details(line: Line, entry: Element, details: Sequence[Element]) -> Line:
    # In a reversal the parties are still those of the payment that is taken back.
    incoming = (line.direction is Direction.CREDIT) != (line.status is Status.REVERSED)
    party = "Dbtr" if incoming else "Cdtr"
    only = details[0] if len(details) == 1 else None
    fields = ("Refs/EndToEndId", "RmtInf/Strd/CdtrRefInf/Ref", "RmtInf/Strd/RfrdDocInf/Nb", "Refs/InstrId")
    references = [each.text for detail in details for path in fields for each in detail.iterfind(path)]
    words = ("RmtInf/Ustrd", "RmtInf/Strd/AddtlRmtInf", "AddtlTxInf")
    texts = [each.text or "" for detail in details for path in words for each in detail.iterfind(path)]
    names = (f"{party}/Pty/Nm", f"{party}/Nm", f"Ultmt{party}/Pty/Nm", f"Ultmt{party}/Nm")
    return replace(
        line,
        source_id=line.source_id or _id(only, "Refs/AcctSvcrRef"),
        counterparty_name=cleaned(_text(only, *(f"RltdPties/{each}" for each in names))),
        counterparty_account=_account(only, f"RltdPties/{party}Acct"),
        text=prose(" ".join(dict.fromkeys([*texts, _text(entry, "AddtlNtryInf")]))),
        references=references_of(*references),
    )


def _amount(holder: Element, place: Place) -> tuple[Decimal, str]:
    element, text = holder.find("Amt"), _text(holder, "Amt")
    if element is None:
        raise place.refused("the amount (Amt) is missing")
    currency = place.currency(element.get("Ccy", ""))
    amount = place.amount(text, currency)
    if amount < 0:
        raise place.refused("an amount is never below zero in CAMT", text)
    return amount, currency


def _direction(holder: Element, place: Place) -> Direction:
    mark = _text(holder, "CdtDbtInd")
    if mark not in _DIRECTIONS:
        raise place.refused("CdtDbtInd is neither CRDT nor DBIT", mark)
    return _DIRECTIONS[mark]


def _signed(balance: Element, place: Place) -> Decimal:
    amount, _ = _amount(balance, place)
    return amount if _direction(balance, place) is Direction.CREDIT else -amount


def _day(place: Place, holder: Element | None, *paths: str) -> date | None:
    text = _text(holder, *paths)
    return place.day(text[:10], "%Y-%m-%d") if text else None


def _account(holder: Element | None, path: str) -> str:
    paths = (
        f"{path}/Id/{each}" for each in ("IBAN", "Othr/Id", "BBAN", "PrtryAcct/Id")
    )  # the last two until version 01
    return cleaned(_text(holder, *paths)).replace(" ", "")


def _id(holder: Element | None, path: str) -> str | None:
    return next(iter(references_of(_text(holder, path))), None)


def _text(holder: Element | None, *paths: str) -> str:
    """Returns the text of the first of these that has one."""
    texts = [] if holder is None else (holder.findtext(path, "").strip() for path in paths)
    return next(filter(None, texts), "")
