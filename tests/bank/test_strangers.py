"""Files of strangers: any bytes are read or refused with a sentence, and so are real files with changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.bank.files import values
from services.bank.files.csv_files import Profile
from services.bank.files.reading import Format, detect, read
from services.bank.files.values import FILE_MOST_BYTES, STATEMENTS_MOST, FileRefused
from tests.bank.shapes import balance, camt, end_to_end, entry, mt940, refusal_of, ustrd

PROFILE = Profile(
    columns={"day": 1, "amount": 2, "text": 3},
    has_header=False,
    account="A1",
    currency="EUR",
    encoding="cp1252",
)
CAMT = camt(
    entry("1.00", end_to_end("A") + ustrd("b")), balances=balance("OPBD", "1.00") + balance("CLBD", "2.00")
).encode()
MT940 = mt940(
    ":61:2601020102C1,00NTRFA//B\r\nC", ":86:166?00D?20EREF+E?21SVWZ+F?32G", closing="C260102EUR1001,00"
).encode()
CSV = b'02.01.2026;1,00;"a"\n03.01.2026;-1.234,00;b\n'
FILES = (CAMT, MT940, CSV)

pieces = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [
            b"<",
            b">",
            b"<Ntry>",
            b"</Stmt>",
            b"&a;",
            b"\n:61:",
            b"\n:20:",
            b"\n-",
            b'"',
            b";",
            b"\xff\xfe",
            b"\0",
        ]
    ),
)


def read_or_refused(content: bytes, format: Format | None) -> None:
    try:
        read(content, format=format, profile=PROFILE)
    except FileRefused as refused:
        assert str(refused).endswith(".")


@given(st.binary(max_size=300), st.sampled_from([None, *Format]))
def test_any_bytes_are_read_or_refused(content: bytes, format: Format | None) -> None:
    read_or_refused(content, format)


@given(st.sampled_from(FILES), st.data())
def test_a_changed_file_is_read_or_refused(content: bytes, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        content = content[:at] + data.draw(pieces) + content[at + data.draw(st.integers(0, 20)) :]
    read_or_refused(content, None)


@pytest.mark.parametrize("content", [CAMT, MT940])
def test_no_part_of_a_file_is_taken_for_the_whole(content: bytes) -> None:
    end = content.rstrip(b"\r\n-0,")
    for size in range(len(end)):
        refusal_of(content[:size], PROFILE if content is CAMT else None)


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (CAMT, Format.CAMT),
        (b"\xef\xbb\xbf\n" + CAMT.partition(b"?>")[2], Format.CAMT),
        (CAMT.decode().replace("UTF-8", "UTF-16").encode("utf-16"), Format.CAMT),
        (MT940, Format.MT940),
        (b"{1:F01}{2:I940}{4:\r\n" + MT940, Format.MT940),
        (b"ABNANL2A\r\n940\r\nABNANL2A\r\n" + MT940, Format.MT940),
        (CSV, Format.CSV),
        ("a;b\n".encode("utf-16"), Format.CSV),
    ],
)
def test_the_format_is_detected_from_the_first_bytes(content: bytes, format: Format) -> None:
    assert detect(content) is format


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "The file is empty."),
        (b" \n", "The file is empty."),
        (b"%PDF-1.7 abc", "The file is no statement in CAMT, MT940 or CSV."),
        (b"PK\x03\x04;,;,", "The file is no statement in CAMT, MT940 or CSV."),
        (CSV, "give the profile of its bank."),
        (b"<" * (FILE_MOST_BYTES + 1), "The file has more than 8 MiB."),
    ],
)
def test_a_file_of_no_format_is_refused(content: bytes, sentence: str) -> None:
    assert sentence in refusal_of(content)


@pytest.mark.parametrize(
    "content",
    [
        b"02.01.2026;1,00;a\n" * 4,
        mt940(*[":61:260102C1,NTRFX"] * 4, closing="C260102EUR1004,").encode(),
        camt(*[entry()] * 4).encode(),
    ],
)
def test_a_file_with_too_many_lines_is_refused(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "LINES_MOST", 4)
    assert read(content, profile=PROFILE)
    monkeypatch.setattr(values, "LINES_MOST", 3)
    assert "The file has more than 3 lines" in refusal_of(content, PROFILE)


@pytest.mark.parametrize(
    "content",
    [
        camt(entry()).replace("</Stmt>", "".join(f"<z{n}/>" for n in range(1001)) + "</Stmt>"),
        camt(entry()).replace("</Stmt>", "".join(f'<a b{n}=""/>' for n in range(1001)) + "</Stmt>"),
        camt(entry()).replace("</Ntry>", "<a/>" * 200_000 + "</Ntry>"),
        camt(entry())
        .replace("<Ntry>", "<a/>" * 100_000 + "<Ntry>")
        .replace("</Stmt>", "<a/>" * 100_001 + "</Stmt>"),
    ],
    ids=["names", "attributes", "in an entry", "beside entries"],
)
def test_a_file_that_would_fill_the_memory_is_refused(content: str) -> None:
    assert "more than 200,000 elements in an entry, or 1,000 names" in refusal_of(content.encode())


def test_elements_of_entries_that_were_read_are_not_counted() -> None:
    content = camt(entry(), entry()).replace("</Ntry>", "<a/>" * 150_000 + "</Ntry>").encode()
    assert len(read(content)[0].lines) == 2


def test_a_file_with_too_many_statements_is_refused() -> None:
    one = b":20:A\n:25:1\n:60F:C260101EUR0,\n:62F:C260101EUR0,\n-\n"
    assert len(read(one * STATEMENTS_MOST)) == STATEMENTS_MOST
    assert refusal_of(one * (STATEMENTS_MOST + 1)) == "The file has more than 500 statements."
