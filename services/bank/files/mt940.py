"""MT940 of SWIFT: customer statements as fields of text, in the forms that banks made of it.

An own reader: the library `mt-940` 5.1 merges the statements of a file into one, and takes an amount that breaks off,
unknown fields and wrong sums.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from services.bank.domain.lines import Direction, Line, Statement, Status
from services.bank.files.values import FileRefused, Place, check_count, cleaned, decoded, prose, references_of

MARKS: Final = b"\x01\x03\x1a"
"""Begin and end of a transmission and of a file."""
FULL_LINE: Final = 64
FULL_SUBFIELD: Final = 27
"""Characters of a full line of field 86 and of its subfields: there the bank cut the text, without a blank."""

_FORM: Final = "%y%m%d"
_TAG: Final = re.compile(r":([0-9A-Z]{2,3}):(.*)")
_HEADER: Final = re.compile(r"\{.*|[A-Z0-9 ]{0,34}")
_END: Final = re.compile(r"-(\}.*|[A-Z]{3})?\s*")
_BALANCE: Final = re.compile(r"([CD])(\d{6})([A-Z]{3})(\d{1,20}(?:,\d*)?|,\d+)")
_ENTRY: Final = re.compile(
    r"(?P<valued>\d{6})(?P<booked>\d{4})?(?P<reversed>R?)(?P<mark>[CD])[A-Z]?(?P<amount>\d{1,20}(?:,\d*)?|,\d+)"
    r"[A-Z][A-Z0-9 ]{3}(?P<customer>(?:(?!//).){0,65})(?://(?P<bank>.{0,65}))?"
)
_IBAN: Final = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{10,30}")
_CODED: Final = re.compile(r"(?:\d{3})?([?~<>^|@&+])(?=\d{2})")
_SEPA: Final = re.compile(r"(EREF|KREF|MREF|CRED|DEBT|SVWZ|ABWA|ABWE|IBAN|BIC|COAM|OAMT|PURP)\+")
_SLASHED: Final = re.compile(
    r"/(TRTP|IBAN|BIC|NAME|REMI|EREF|CNTP|ORDP|BENM|MARF|CSID|PREF|RTRN|ULTC|ULTD|PURP|ISDT|ADDR|ID)/"
)
_IGNORED: Final = frozenset({"13", "13D", "21", "NS", "64", "65"})
_KNOWN: Final = _IGNORED | {"20", "25", "25P", "28", "28C", "60F", "60M", "61", "62F", "62M", "86", "940"}

Field = tuple[int, str, str]
"""The number of its first line, its tag, its text."""


def read_mt940(content: bytes) -> Sequence[Statement]:
    """Returns the statements in their order. Raises FileRefused."""
    statements: list[list[Field]] = []
    begun = False
    counts: Counter[str] = Counter()
    for field in _fields(decoded(content.translate(None, MARKS), "utf-8-sig", "cp1252", "cp852")):
        number, tag, _ = field
        if tag == "20":
            statements.append([])
        elif tag != "-" and not begun:
            raise Place(f"Line {number}").refused(
                "a field stands before :20:, which begins a statement", f":{tag}:"
            )
        begun = tag != "-"
        if begun:
            statements[-1].append(field)
        counts[tag] += 1
        check_count(counts[tag])
    if not statements:
        raise FileRefused("The file has no statement of MT940, which begins with :20:.")
    return [_statement(fields) for fields in statements]


def _fields(text: str) -> Iterator[Field]:
    """Yields the fields; the tag `-` is the end of a statement."""
    number, tag, texts = 0, "", [""]
    for at, line in enumerate(text.rstrip("\n ").split("\n"), 1):
        ends = _END.fullmatch(line)
        # Envelopes of SWIFT stand before the first field.
        found = _TAG.fullmatch(line.partition("{4:")[2] if line.startswith("{") else line)
        if tag == "86" and found and found[1] not in _KNOWN:
            found = None  # a time of the day in a text that goes on
        if found or ends:
            if tag:
                yield number, tag, "\n".join(texts)
            number, tag, texts = (at, found[1], [found[2]]) if found and found[1] != "940" else (at, "", [])
            if ends:
                yield at, "-", ""
        elif tag:
            texts.append(line)
        elif not _HEADER.fullmatch(line.strip()):
            raise Place(f"Line {at}").refused("this belongs to no field of a statement", line)
    if tag:
        yield number, tag, "\n".join(texts)


def _statement(fields: Sequence[Field]) -> Statement:
    account = number = ""
    opening: tuple[Decimal, str, date] | None = None
    closing: tuple[Decimal, str, date] | None = None
    lines: list[Line] = []
    for at, tag, text in fields[1:]:
        place = Place(f"Line {at}")
        if tag in ("25", "25P"):
            account = cleaned(text.partition("\n")[0]).replace(" ", "")
        elif tag in ("28", "28C"):
            number = cleaned(text)
        elif tag in ("60F", "60M") and not opening:
            opening = _balance(place, text)
        elif tag in ("62F", "62M") and opening and not closing:
            closing = _balance(place, text)
        elif tag == "61" and opening and not closing:
            lines.append(_entry(place, text, opening[1]))
        elif tag == "86":
            if lines and not closing:  # else it is of the statement
                lines[-1] = _with_details(lines[-1], text)
        elif tag not in _IGNORED:
            raise place.refused("the field is unknown or stands at a wrong place", f":{tag}:")
    start = Place(f"Line {fields[0][0]}")
    if not account or not opening or not closing:
        raise start.refused("the statement breaks off, or lacks :25:, :60F: or :62F:")
    if opening[1] != closing[1]:
        raise start.refused("the balances are in two currencies")
    account = account.removesuffix(opening[1]).rstrip("/")
    return Statement(
        account=account,
        currency=opening[1],
        opening=opening[0],
        closing=closing[0],
        opened_on=opening[2],
        closed_on=closing[2],
        number=number,
        lines=tuple(replace(line, account=account) for line in lines),
    )


def _balance(place: Place, text: str) -> tuple[Decimal, str, date]:
    found = _BALANCE.fullmatch(text.strip())
    if not found:
        raise place.refused("this is no balance", text)
    mark, day, currency, amount = found.groups()
    value = _amount(place, amount, currency)
    return (value if mark == "C" else -value), currency, place.day(day, _FORM)


def _amount(place: Place, text: str, currency: str) -> Decimal:
    return place.amount(f"0{text.removesuffix(',').replace(',', '.')}", currency)


def _entry(place: Place, text: str, currency: str) -> Line:
    first, _, rest = text.partition("\n")
    found = _ENTRY.fullmatch(first.rstrip())
    if not found:
        raise place.refused("this is no entry of a statement", text)
    valued_on = _valued_on(place, found["valued"])
    customer, supplement = cleaned(found["customer"]), cleaned(rest)
    account = next(filter(_IBAN.fullmatch, (supplement, customer)), "")
    return Line(
        account="",
        # A reversed credit takes money away.
        direction=Direction.CREDIT if (found["mark"] == "C") != bool(found["reversed"]) else Direction.DEBIT,
        amount=_amount(place, found["amount"], currency),
        currency=currency,
        status=Status.REVERSED if found["reversed"] else Status.BOOKED,
        booked_on=_booked_on(place, found["booked"], valued_on) if found["booked"] else valued_on,
        valued_on=valued_on,
        position=place.name,
        source_id=next(iter(references_of(found["bank"])), None),
        counterparty_account=account,
        text="" if supplement == account else supplement,
        references=() if customer == account else references_of(customer),
    )


def _valued_on(place: Place, text: str) -> date:
    """Returns the last day of February for its 29th or 30th: banks whose months have 30 days value on these."""
    if text[2:] in ("0229", "0230"):
        return place.day(f"{text[:2]}0301", _FORM) - timedelta(days=1)
    return place.day(text, _FORM)


def _booked_on(place: Place, text: str, valued_on: date) -> date:
    """Returns the day of that month and day which is nearest to the value date: only that has a year."""
    year = valued_on.year + round((valued_on.month - int(text[:2])) / 12)
    return place.day(f"{year}{text}", "%Y%m%d")


# -- field 86


def _with_details(line: Line, text: str) -> Line:
    """Reads one of the forms `166?20text?32name`, `/NAME/name/REMI/text` and free text."""
    if coded := _CODED.match(text.lstrip()):
        return _with_subfields(line, text.replace("\n", ""), coded[1])
    flat = _unwrapped(text.split("\n"), FULL_LINE)
    values = _marked(_SLASHED, flat)
    iban, _, name = [*values.get("CNTP", "").split("/"), "", ""][:3]
    remittance = re.sub(r"^(USTD//|STRD/[A-Z]*/)", "", values.get("REMI", "")).strip("/")
    references = (values.get("EREF", ""), values.get("PREF", ""))
    return _with_text(
        line, remittance or flat, references, values.get("NAME", name), values.get("IBAN", iban)
    )


def _with_subfields(line: Line, text: str, mark: str) -> Line:
    """Reads subfields: 20 to 29 and 60 to 63 are the text, 31 or 38 the account, 32 and 33 the name."""
    found: dict[int, str] = {}
    for part in re.split(rf"{re.escape(mark)}(?=\d{{2}})", text)[1:]:
        found.setdefault(int(part[:2]), part[2:])
    flat = _unwrapped(
        [found[key] for key in sorted(found) if 20 <= key < 30 or 60 <= key < 64], FULL_SUBFIELD
    )
    values = _marked(_SEPA, flat)
    account = found.get(38) or found.get(31) or values.get("IBAN", "")
    name = found.get(32, "") + found.get(33, "")
    references = (values.get("EREF", ""), values.get("KREF", ""))
    return _with_text(line, values.get("SVWZ") or flat or found.get(0, ""), references, name, account)


def _marked(marks: re.Pattern[str], text: str) -> Mapping[str, str]:
    parts = marks.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _unwrapped(pieces: Sequence[str], full: int) -> str:
    return "".join(piece if len(piece) >= full else f"{piece} " for piece in pieces)


def _with_text(line: Line, text: str, references: Sequence[str], name: str, account: str) -> Line:
    return replace(
        line,
        text=prose(f"{line.text} {text}"),
        counterparty_name=cleaned(name.strip("/")) or line.counterparty_name,
        counterparty_account=cleaned(account.strip("/")).replace(" ", "") or line.counterparty_account,
        references=references_of(*(each.strip("/") for each in references), *line.references),
    )
