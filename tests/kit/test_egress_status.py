"""The status line decides: whatever is wrong with what follows, a receiver that has answered has answered."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.egress.client import HEADERS_MAX_COUNT, Answer, Egress, Unreachable
from kit.egress.exchange import BODY_MAX_BYTES
from kit.egress.head import STATUS_LINE_MAX_BYTES, Head
from tests.kit.observers import Listener, Serve, listening

OK = b"HTTP/1.1 200 OK\r\n"
BROKEN = {
    "204 with a body": b"HTTP/1.1 204 No Content\r\nX-Known: yes\r\nContent-Length: 5\r\n\r\nhello",
    "a length that is too short": OK + b"X-Known: yes\r\nContent-Length: 2\r\n\r\nhello",
    "two equal lengths": OK + b"X-Known: yes\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "two lengths": OK + b"X-Known: yes\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a length that is no number": OK + b"X-Known: yes\r\nContent-Length: five\r\n\r\nhello",
    "a length and chunks": OK
    + b"X-Known: yes\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "chunks without a size": OK + b"X-Known: yes\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n0\r\n\r\n",
    "200 headers": OK
    + b"X-Known: yes\r\n"
    + b"".join(b"X-%d: %d\r\n" % (n, n) for n in range(200))
    + b"\r\n",
    "a header line of 20 KB": OK + b"X-Known: yes\r\nX-Long: " + b"a" * 20_000 + b"\r\n\r\n",
    "a header line of 1 MB": OK + b"X-Known: yes\r\nX-Long: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "a header without a name": OK + b"X-Known: yes\r\n: nameless\r\n\r\n",
    "a header with NUL": OK + b"X-Known: yes\r\nX-Nul: a\x00b\r\n\r\n",
    "a line that is no header": OK + b"X-Known: yes\r\nthis is no header\r\n\r\n",
    "nothing after the first header": OK + b"X-Known: yes\r\n",
    "something after an interim answer": b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 102 X\r\n\r\n"
    + OK
    + b"X-Known: yes\r\n: nameless\r\n\r\n",
}


def _answer_of(serve: Serve, *, deadline_seconds: float = 10) -> Answer:
    async def call() -> Answer:
        async with listening(serve=serve) as listener, Egress(allow_private=True) as egress:
            return await _post(egress, listener, deadline_seconds)

    return asyncio.run(call())


async def _post(egress: Egress, listener: Listener, deadline_seconds: float = 10) -> Answer:
    url = f"http://127.0.0.1:{listener.port}/"
    return await egress.call("POST", url, body=b"{}", deadline_seconds=deadline_seconds)


def _saying(*parts: bytes, then_wait: bool = False) -> Serve:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        if then_wait:
            await reader.read(1000)  # the request's body
            await reader.read(1)  # until the client hangs up

    return say


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_a_success_that_is_malformed_after_its_status_line_is_a_success(said: bytes) -> None:
    answer = _answer_of(_saying(said))

    assert answer.status in (200, 204)
    assert not answer.complete
    assert answer.headers["X-Known"] == "yes"
    assert len(answer.headers) <= HEADERS_MAX_COUNT
    assert max(map(len, answer.headers.values())) <= 1024
    assert len(answer.body) <= BODY_MAX_BYTES


@pytest.mark.parametrize("what", ["204 with a body", "a length that is too short", "two equal lengths"])
def test_the_body_of_a_malformed_answer_is_kept_as_it_came(what: str) -> None:
    assert _answer_of(_saying(BROKEN[what])).text == "hello"


def test_a_failure_that_is_malformed_keeps_its_status() -> None:
    said = b"HTTP/1.1 503 Busy\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nhello"
    assert _answer_of(_saying(said)).status == 503


def test_it_makes_no_difference_in_which_pieces_a_malformed_answer_comes() -> None:
    said = BROKEN["two equal lengths"]
    answer = _answer_of(_saying(*(said[at : at + 1] for at in range(len(said)))))
    assert (answer.status, answer.headers["X-Known"]) == (200, "yes")


def test_a_connection_that_breaks_after_the_status_line_has_brought_the_answer() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await writer.drain()
        await reader.read(1000)
        writer.transport.abort()

    answer = _answer_of(reset)

    assert (answer.status, answer.headers, answer.body, answer.complete) == (200, {}, b"", False)


def test_headers_that_never_end_add_only_seconds_to_a_success() -> None:
    cut = OK + b"X-Known: yes\r\nX-Cut: in two"
    answer = _answer_of(_saying(cut, then_wait=True), deadline_seconds=600)  # longer than a test may last

    assert (answer.status, answer.complete) == (200, False)
    assert answer.headers == {"X-Known": "yes", "X-Cut": "in two"}


def test_headers_that_never_end_do_not_outlast_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kit.egress.client.HEADERS_SECONDS", 600)  # longer than a test may last
    answer = _answer_of(_saying(OK + b"X-Known: yes\r\n", then_wait=True), deadline_seconds=1)
    assert answer.status == 200


def test_the_duration_of_an_answer_ends_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    now_seconds, status_is_read = [1.0], asyncio.Event()

    def of_head() -> float:
        status_is_read.set()
        return now_seconds[0]

    monkeypatch.setattr("kit.egress.client.monotonic_seconds", lambda: now_seconds[0])
    monkeypatch.setattr("kit.egress.head.monotonic_seconds", of_head)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        now_seconds[0] = 3.0
        await _saying(OK)(reader, writer)
        await asyncio.wait_for(status_is_read.wait(), 60)
        now_seconds[0] = 60.0
        await _saying(b"X-Known: yes\r\n\r\n")(reader, writer)

    assert _answer_of(serve).duration_ms == 2000


def test_headers_without_end_are_kept_up_to_a_limit() -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(OK)
        for _ in range(1000):
            writer.write(b"X-More: yes\r\n" * 10_000)
            await writer.drain()
            sent += 130_000

    answer = _answer_of(flood)

    assert (answer.status, answer.complete, len(answer.headers["X-More"])) == (200, False, 1024)
    assert sent < 50_000_000


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK",  # not to its end
        b"HTTP/1.1 20",
        b"HTTP/1.1 2000 OK\r\n: \r\n\r\n",
        b"HTTP/1.1 OK\r\n: \r\n\r\n",
        b"HTTP/3.7 200 OK\r\n: \r\n\r\n",
        b"ICY 200 OK\r\n: \r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nOK\r\n",
        b"HTTP/1.1 100 Continue\r\nHTTP/1.1 200 OK\r\n: \r\n\r\n",  # a header of the interim answer
        b"HTTP/1.1 200 " + b"O" * STATUS_LINE_MAX_BYTES + b"K\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",  # TLS's
    ],
)
def test_without_a_whole_status_line_there_is_no_answer(said: bytes) -> None:
    with pytest.raises(Unreachable):
        _answer_of(_saying(said))


def test_a_connection_with_a_malformed_answer_serves_no_other_call() -> None:
    answers = iter([BROKEN["204 with a body"], OK + b"Content-Length: 2\r\n\r\nok"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _saying(next(answers), then_wait=True)(reader, writer)

    async def main() -> tuple[list[tuple[int, str]], int]:
        async with listening(serve=serve) as listener, Egress(allow_private=True) as egress:
            told = [await _post(egress, listener), await _post(egress, listener)]
            return [(each.status, each.text) for each in told], listener.connections

    assert asyncio.run(main()) == ([(204, "hello"), (200, "ok")], 2)


def test_calls_at_the_same_time_hear_each_their_own_answer() -> None:
    async def numbered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = int(await reader.readexactly(3))
        writer.write(b"HTTP/1.1 %03d X\r\nX-Is: %d\r\n: broken\r\n\r\n" % (number, number))

    async def main() -> Sequence[Answer]:
        async with listening(serve=numbered) as listener, Egress(allow_private=True) as egress:
            url = f"http://127.0.0.1:{listener.port}/"
            calls = (egress.call("POST", url, body=b"%03d" % n, deadline_seconds=10) for n in range(200, 260))
            return await asyncio.gather(*calls)

    told = asyncio.run(main())
    assert [(each.status, each.headers["X-Is"]) for each in told] == [(n, str(n)) for n in range(200, 260)]


def test_an_interim_answer_in_tiny_pieces_costs_no_more_than_its_bytes() -> None:
    head = Head(lambda: None)
    head.feed(b"HTTP/1.1 103 Early Hints\r\n")
    for _ in range(1000):
        head.feed(b"a\n")
        assert not head._kept, "what was read is kept, so that each piece has all of it read again"


@given(
    st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"\r\nHTTP/1.0 103 X\nLink: a\n\n"]),
    st.sampled_from([b"HTTP/1.1 299\r\n", b"HTTP/1.0 299 Fine\n", b"\r\nHTTP/1.1 299 \xff\r\n"]),
    st.binary(max_size=200),
    st.lists(st.integers(0, 300), max_size=20),
)
def test_the_status_is_the_same_in_whatever_pieces_it_comes(
    interim: bytes, line: bytes, rest: bytes, cuts: list[int]
) -> None:
    told: list[str] = []
    head = Head(lambda: told.append("once"))
    said, start = interim + line + rest, 0
    for cut in [*sorted(cuts), len(said)]:
        head.feed(said[start : max(start, cut)])
        start = max(start, cut)

    assert head.status == 299
    assert len(told) <= 1
    headers, body = head.rest(100)  # of whatever bytes
    assert sum(len(name) + len(value) for name, value in headers) + len(body) <= len(rest)
