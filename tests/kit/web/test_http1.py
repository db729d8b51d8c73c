"""The bytes of a connection become requests, the same in all pieces, and as another parser reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from gunicorn.asgi.parser import ParseError, PythonProtocol
from hypothesis import given
from hypothesis import strategies as st

from kit.web.http1 import (
    EMPTY_LINES_MAX,
    FIELD_MAX_BYTES,
    HEAD_MAX_BYTES,
    REQUEST_LINE_MAX_BYTES,
    Head,
    Malformed,
    Parser,
)


@dataclass
class Read:
    """One request as it was read; without an end when its body has not come."""

    method: str
    target: bytes
    body: bytes = b""
    is_whole: bool = False
    head: Head | None = None


@dataclass
class Requests:
    """All requests of a connection, as its reader gets them."""

    found: list[Read] = field(default_factory=list)

    def on_head(self, head: Head) -> None:
        self.found.append(Read(head.method, head.target, head=head))

    def on_body(self, piece: bytes) -> None:
        self.found[-1].body += piece

    def on_end(self) -> None:
        self.found[-1].is_whole = True


def read(*pieces: bytes) -> tuple[list[Read], int]:
    """Returns the requests, and the status of the refusal that ends them; 0 without one."""
    requests = Requests()
    parser = Parser(requests)
    try:
        for piece in pieces:
            rest = piece
            while rest:
                rest = parser.feed(rest)
    except Malformed as fault:
        return requests.found, fault.status
    return requests.found, 0


def read_by_gunicorn(data: bytes) -> list[Read]:
    """Returns the requests up to the first that gunicorn's parser refuses."""
    found: list[Read] = []
    parser: Any = PythonProtocol(
        on_headers_complete=lambda: found.append(Read(parser.method.decode(), parser.path)),
        on_body=lambda piece: setattr(found[-1], "body", found[-1].body + piece),
    )
    try:
        while data:
            parser.feed(data)
            if not parser.is_complete:
                break
            found[-1].is_whole = True
            data = parser.remaining()
            parser.reset()
    except (ParseError, ValueError):
        pass
    return found


def lines(*each: str, body: bytes = b"") -> bytes:
    return "\r\n".join([*each, "", ""]).encode("latin-1") + body


GET = lines("GET /a?b=c HTTP/1.1", "Host: x", "Accept: */*")
SIZED = lines("POST /b HTTP/1.1", "Host: x", "Content-Length: 9", body=b"12\r\n\r\n789")
CHUNKED = lines(
    "POST /c HTTP/1.1",
    "Host: x",
    "Transfer-Encoding: chunked",
    body=b"6;a=b\r\n1\r\n\r\n6\r\n3\r\n789\r\n0\r\nT: t\r\n\r\n",
)
UPGRADED = lines(
    "POST /d HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: h2c", "Content-Length: 3", body=b"123"
)
STREAM = GET + SIZED + CHUNKED + UPGRADED + GET
WANTED = [
    ("GET", b"/a?b=c", b""),
    ("POST", b"/b", b"12\r\n\r\n789"),
    ("POST", b"/c", b"1\r\n\r\n6789"),
    ("POST", b"/d", b"123"),
    ("GET", b"/a?b=c", b""),
]


def short(found: Sequence[Read]) -> list[tuple[str, bytes, bytes]]:
    assert all(each.is_whole for each in found)
    return [(each.method, each.target, each.body) for each in found]


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=12))
def test_requests_are_the_same_in_whichever_pieces_they_come(cuts: list[int]) -> None:
    ends = [0, *sorted(set(cuts)), len(STREAM)]
    found, status = read(*(STREAM[start:end] for start, end in pairwise(ends)))
    assert (short(found), status) == (WANTED, 0)


def test_requests_are_the_same_byte_by_byte() -> None:
    found, status = read(*(STREAM[at : at + 1] for at in range(len(STREAM))))
    assert (short(found), status) == (WANTED, 0)


def test_an_empty_line_that_comes_byte_by_byte_ends_a_head() -> None:
    """Behind it comes a body, another request, or a request that is parsed again because it has an Upgrade."""
    for start in (at for at in range(len(STREAM)) if STREAM.startswith(b"\r\n\r\n", at)):
        pieces = (
            STREAM[:start],
            *(STREAM[start + at : start + at + 1] for at in range(3)),
            STREAM[start + 3 :],
        )
        found, status = read(*pieces)
        assert (short(found), status) == (WANTED, 0)


@pytest.mark.parametrize(("empty_lines", "status"), [(EMPTY_LINES_MAX - 1, 0), (EMPTY_LINES_MAX, 400)])
def test_a_body_in_chunks_has_a_bounded_number_of_empty_lines(empty_lines: int, status: int) -> None:
    """The last one is the end of the body."""
    sent = b"\r\n\r\n" * empty_lines
    head = lines(
        "POST /c HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", body=b"%x\r\n" % (len(sent) + 1)
    )
    assert read(head + sent + b".\r\n0\r\n\r\n" + GET)[1] == status


def test_a_length_may_have_many_zeros() -> None:
    found, status = read(lines("POST /b HTTP/1.1", f"Content-Length: {'0' * 5000}3", body=b"123"))
    assert (short(found), status) == ([("POST", b"/b", b"123")], 0)


def test_a_request_behind_another_is_left_until_it_is_fed() -> None:
    requests = Requests()
    rest = Parser(requests).feed(CHUNKED + GET)
    assert (len(requests.found), rest) == (1, GET)


def test_a_head_has_lower_names_bare_values_and_no_names_with_underscores() -> None:
    (found,), _ = read(lines("GET / HTTP/1.1", "X-Api-Key: \t k \t", "X_Api_Key: other", "Empty:"))
    assert found.head is not None
    assert found.head.headers == [(b"x-api-key", b"k"), (b"empty", b"")]


@pytest.mark.parametrize(
    ("request_lines", "keeps_alive", "expects_continue"),
    [
        (["GET / HTTP/1.1"], True, False),
        (["GET / HTTP/1.1", "Connection: close"], False, False),
        (["GET / HTTP/1.0"], False, False),
        (["GET / HTTP/1.0", "Connection: keep-alive"], False, False),
        (["POST / HTTP/1.1", "Content-Length: 1", "Expect: 100-Continue"], True, True),
        (["POST / HTTP/1.0", "Content-Length: 1", "Expect: 100-continue"], False, False),
    ],
)
def test_a_head_says_how_the_connection_goes_on(
    request_lines: list[str], keeps_alive: bool, expects_continue: bool
) -> None:
    (found,), _ = read(lines(*request_lines))
    assert found.head is not None
    assert (found.head.keeps_alive, found.head.expects_continue) == (keeps_alive, expects_continue)


POST = "POST / HTTP/1.1"
IN_CHUNKS = lines(POST, "Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (lines("GET / HTTP/2.0"), 400),
        (lines("GET / HTTP/0.9"), 400),
        (b"GET /\r\n\r\n", 400),
        (lines("GET * HTTP/1.1"), 400),
        (lines("GET a HTTP/1.1"), 400),
        (lines("GET /\xff HTTP/1.1"), 400),
        (lines("BREW / HTTP/1.1"), 400),
        (lines("CONNECT x:80 HTTP/1.1"), 400),
        (b"GET / HTTP/1.1\nHost: x\n\n", 400),
        (lines("GET / HTTP/1.1", "A: b", " folded"), 400),
        (lines("GET / HTTP/1.1", " A: b"), 400),
        (lines("GET / HTTP/1.1", "A : b"), 400),
        (lines("GET / HTTP/1.1", "A: b\x00"), 400),
        (lines("GET / HTTP/1.1", "A: b\rB: c"), 400),
        (lines("GET / HTTP/1.1", "Host: x", "Host: x"), 400),
        (lines(POST, "Content-Type: a", "Content-Type: b"), 400),
        (lines(POST, "Content-Length: 1", "Content-Length: 1", body=b"a"), 400),
        (lines(POST, "Content-Length: 1, 1", body=b"a"), 400),
        (lines(POST, "Content-Length: +1", body=b"a"), 400),
        (lines(POST, "Content-Length:", body=b"a"), 400),
        (lines(POST, "Content-Length: " + "9" * 5000), 400),
        (lines(POST, "Content-Length: 1", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
        (lines(POST, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
        (lines(POST, "Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"), 400),
        (lines(POST, "Transfer-Encoding: gzip", body=b"0\r\n\r\n"), 501),
        (lines(POST, "Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), 501),
        (lines("POST / HTTP/1.0", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
        (IN_CHUNKS + b" 1\r\na\r\n0\r\n\r\n", 400),
        (IN_CHUNKS + b"0x1\r\na\r\n0\r\n\r\n", 400),
        (IN_CHUNKS + b"1\na\r\n0\r\n\r\n", 400),
        (IN_CHUNKS + b"1\r\nab\r\n0\r\n\r\n", 400),
        (IN_CHUNKS + b"0\r\nContent-Length: 5\r\n\r\n", 400),
        (IN_CHUNKS + b"f" * 17 + b"\r\n", 400),
        (lines(f"GET /{'a' * REQUEST_LINE_MAX_BYTES} HTTP/1.1"), 414),
        (lines("GET / HTTP/1.1", f"A: {'a' * FIELD_MAX_BYTES}"), 431),
        (lines("GET / HTTP/1.1", *(f"A{number}: a" for number in range(101))), 431),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else str(value),
)
def test_what_two_readers_could_understand_differently_is_refused(data: bytes, status: int) -> None:
    found, refused = read(data + GET)
    assert refused == status
    assert not any(each.is_whole for each in found)


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (b"GET / HTTP/1.1\r\nA: ", b"a"),
        (b"GET / HTTP/1.1\r\n", b"A: a\r\n"),
        (b"", b"\r\n"),
        (IN_CHUNKS + b"1;a=", b"a"),
        (IN_CHUNKS + b"0\r\nA: ", b"a"),
        (IN_CHUNKS + b"0\r\n", b"A: a\r\n"),
    ],
)
def test_what_brings_neither_a_head_nor_a_body_is_not_read_for_ever(begun: bytes, more: bytes) -> None:
    _, status = read(begun, *[more] * (HEAD_MAX_BYTES // len(more) + 1))
    assert status == 431


FRAGMENTS = (
    *(
        b"GET ",
        b"POST ",
        b"HEAD ",
        b"/",
        b"/a",
        b" HTTP/1.1\r\n",
        b" HTTP/1.0\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b":",
    ),
    *(
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST /p HTTP/1.1\r\n",
        b"Content-Length: 3\r\n",
        b"Content-Length: 0\r\n",
    ),
    *(
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"transfer-encoding:\tchunked\r\n",
    ),
    *(
        b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
        b"Content-Length: 3 \r\n",
        b"Transfer-Encoding : chunked\r\n",
    ),
    *(
        b"abc",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b"0\r\n",
        b"3;x\r\nabc\r\n",
        b"T: t\r\n",
        b"\r\n\r\n",
        b"00\r\n\r\n",
        b"a\r\n",
    ),
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map(b"".join))
def test_another_parser_finds_the_same_requests(data: bytes) -> None:
    """Each may refuse what the other reads. Another request in the same bytes could be smuggled past a proxy."""
    ours, _ = read(data)
    for mine, its in zip(ours, read_by_gunicorn(data), strict=False):
        assert (mine.method, mine.target) == (its.method, its.target)
        if mine.is_whole and its.is_whole:
            assert mine.body == its.body
