"""Connections on a real socket, with an application of the test: what leaves them, and what stays behind."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import uvloop

from kit.web.asgi import Message, Scope
from kit.web.protocol import Connection, Content, Serving
from kit.web.walls.clients import Clients
from kit.web.walls.connections import Connections

SECONDS = 20
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the path and the body, in pieces where the path says so."""
    body, more = scope["path"].encode() + b" ", True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        body, more = body + event["body"], event["more_body"]
    fields = [] if scope["path"] == "/pieces" else [(b"content-length", b"%d" % len(body))]
    if scope["path"] == "/broken":
        fields.append((b"location", b"/a\r\nset-cookie: b"))
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    if scope["path"] == "/pieces":
        await send({"type": "http.response.body", "body": body, "more_body": True})
        body = b""
    await send({"type": "http.response.body", "body": body})


def serving(keepalive_seconds: int = 75) -> Serving:
    clients = Clients((), header="x-forwarded-for", prefix_4=32, prefix_6=64)
    return Serving(
        app=echo,
        broken_http=lambda status, message, _: Content("text/plain", message.encode()),
        connections=Connections(clients, most=100, most_per_client=100),
        keepalive_seconds=keepalive_seconds,
        unread_seconds=20,
    )


def exchanged(*pieces: bytes, keepalive_seconds: int = 75, answers: int = 1) -> bytes:
    """Returns all that comes back. Sends each piece once something has come for the one before; ends its half after the
    last.
    """

    async def story() -> bytes:
        shared = serving(keepalive_seconds)
        server = await asyncio.get_running_loop().create_server(lambda: Connection(shared), "127.0.0.1", 0)
        async with asyncio.timeout(SECONDS), server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            found = b""
            for piece in pieces:
                writer.write(piece)
                found += await reader.read(65536)
            while found.count(b"HTTP/1.1 2") < answers:
                more = await reader.read(65536)
                assert more, found
                found += more
            writer.write_eof()
            found += await reader.read()
            writer.close()
            await writer.wait_closed()
        return found

    return uvloop.run(story())


def request(method: str, path: str, *fields: str, body: bytes = b"", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: x", *fields, "", ""]).encode() + body


def bodies(answered: bytes) -> list[bytes]:
    return [each.partition(b"\r\n\r\n")[2] for each in answered.split(b"HTTP/1.1 200 OK")[1:]]


def test_requests_that_come_together_are_answered_in_their_order() -> None:
    sent = (
        request("GET", "/1") + request("POST", "/2", "Content-Length: 3", body=b"abc") + request("GET", "/3")
    )
    assert bodies(exchanged(sent, answers=3)) == [b"/1 ", b"/2 abc", b"/3 "]


def test_a_client_that_expects_a_100_gets_it_before_the_answer() -> None:
    head = request("POST", "/", "Content-Length: 3", "Expect: 100-continue")
    assert exchanged(head, b"abc").startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_a_body_that_came_at_once_needs_no_100() -> None:
    sent = request("POST", "/", "Content-Length: 3", "Expect: 100-continue", body=b"abc")
    assert exchanged(sent).startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_answer_without_a_length_is_in_chunks() -> None:
    answer = exchanged(request("GET", "/pieces"))
    assert b"transfer-encoding: chunked\r\n" in answer
    assert bodies(answer) == [b"8\r\n/pieces \r\n0\r\n\r\n"]


def test_an_answer_without_a_length_ends_with_the_connection_for_http_1_0() -> None:
    answer = exchanged(request("GET", "/pieces", "Connection: keep-alive", version="1.0"))
    assert b"chunked" not in answer
    assert b"connection: close\r\n" in answer
    assert bodies(answer) == [b"/pieces "]


def test_an_answer_to_head_has_no_body() -> None:
    answer = exchanged(request("HEAD", "/") + request("HEAD", "/pieces") + request("GET", "/3"), answers=3)
    assert bodies(answer) == [b"", b"", b"/3 "]
    assert b"content-length: 2\r\n" in answer


def test_the_last_answer_of_a_connection_says_so() -> None:
    for last in (
        exchanged(request("GET", "/", "Connection: close") + request("GET", "/2")),
        exchanged(request("GET", "/"), keepalive_seconds=0),
    ):
        assert b"connection: close\r\n" in last
        assert bodies(last) == [b"/ "]


def test_a_line_break_in_a_header_becomes_no_header() -> None:
    answer = exchanged(request("GET", "/broken"), answers=0)
    assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"set-cookie" not in answer


def test_broken_bytes_behind_a_request_are_refused_after_its_answer() -> None:
    answer = exchanged(request("GET", "/1") + b"GARBAGE\r\n\r\n")
    assert answer.index(b"HTTP/1.1 200 OK") < answer.index(b"HTTP/1.1 400 Bad Request")


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "sent",
    [
        request("GET", "/"),
        request("GET", "/", "Connection: close"),
        request("POST", "/", "Content-Length: 3", body=b"abc"),
        request("POST", "/", "Content-Length: 3", body=b"ab"),
        b"GARBAGE\r\n\r\n",
        b"GET / HT",
    ],
    ids=lambda sent: repr(sent[:60]),
)
def test_a_connection_that_has_ended_leaves_no_garbage(sent: bytes) -> None:
    """Garbage is collected rarely: each connection of a flood would stay in memory until then."""

    async def story() -> None:
        shared, made, gone = serving(), asyncio.Event(), asyncio.Event()
        references = []

        def connection() -> Connection:
            opened = Connection(shared)
            references.append(weakref.ref(opened, lambda _: gone.set()))
            made.set()
            return opened

        server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
        async with asyncio.timeout(SECONDS), server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(sent)
            await made.wait()
            writer.close()
            await gone.wait()

    with without_garbage_collection():
        uvloop.run(story())
