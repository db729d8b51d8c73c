"""Receivers that would keep a worker busy for ever, or fill its memory, all at once: each attempt ends."""

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pytest

from services.webhooks.delivery.sender import BODY_MAX_BYTES
from services.webhooks.store.views import AttemptView
from tests.support.receiver import Receiver
from tests.webhooks.house import House
from tests.webhooks.raw import Behaviour, raw_receiver
from tests.webhooks.worker_process import SHORT_LEASE, WorkerProcess

TIMEOUT_SECONDS = SHORT_LEASE["webhook_timeout_seconds"]
EVENTS_EACH = 4
MOST_GROWTH_BYTES = 24 * 1024 * 1024
"""Of the worker; together they offer gigabytes. Measured: four."""

BOMB = gzip.compress(b"\0" * 10_000_000) * 1000
"""Ten megabytes on the wire, ten gigabytes when expanded."""


def _drip(data: bytes, connection: socket.socket, over: threading.Event) -> None:
    while not over.wait(0.1):
        connection.sendall(data)


def _flood(head: bytes, data: bytes, connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(head)
    while not over.is_set():
        connection.sendall(data)


def _never(connection: socket.socket, over: threading.Event) -> None:
    over.wait(600)


def _drip_status(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 ")
    _drip(b"O", connection, over)


def _drip_headers(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _drip(b"a", connection, over)


def _no_content_but_some(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok")


def _two_lengths(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok")


def _drip_interim(connection: socket.socket, over: threading.Event) -> None:
    while not over.wait(0.1):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def _endless_status(connection: socket.socket, over: threading.Event) -> None:
    _flood(b"HTTP/1.1 200 ", b"O" * 65536, connection, over)


def _endless_headers(connection: socket.socket, over: threading.Event) -> None:
    _flood(b"HTTP/1.1 200 OK\r\n", b"X-More: yes\r\n" * 1000, connection, over)


def _endless_header(connection: socket.socket, over: threading.Event) -> None:
    _flood(b"HTTP/1.1 200 OK\r\nX-More: ", b"y" * 65536, connection, over)


def _drip_body(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    _drip(b"a", connection, over)


def _gigabyte(connection: socket.socket, over: threading.Event) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"
    _flood(head, b"x" * 1_000_000, connection, over)


def _endless_chunks(connection: socket.socket, over: threading.Event) -> None:
    head = b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n"
    _flood(head, b"10000\r\n" + b"x" * 65536 + b"\r\n", connection, over)


def _gzip_bomb(connection: socket.socket, over: threading.Event) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)
    connection.sendall(head + BOMB)
    over.wait(600)


SILENT: dict[str, Behaviour] = {
    "never answers": _never,
    "drips its status line": _drip_status,
    "drips interim answers": _drip_interim,
}
BROKEN: dict[str, Behaviour] = {"an endless status line": _endless_status}
ANSWERING: dict[str, Behaviour] = {
    "204 with a body": _no_content_but_some,
    "two equal lengths": _two_lengths,
    "drips its headers": _drip_headers,
    "endless headers": _endless_headers,
    "an endless header": _endless_header,
    "drips its body": _drip_body,
    "a gigabyte": _gigabyte,
    "endless chunks": _endless_chunks,
    "a gzip bomb": _gzip_bomb,
}


@pytest.fixture
def silent_places() -> Iterator[dict[str, str]]:
    """URLs that don't get as far as HTTP: a TLS handshake, a connection, never completed."""
    with socket.create_server(("127.0.0.1", 0)) as mute, socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # it doesn't listen ...
        deaf.listen(0)
        filler = [socket.socket() for _ in range(4)]
        for each in filler:  # ... to anybody else: its queue is full
            each.setblocking(False)
            each.connect_ex(deaf.getsockname())
        yield {
            "a slow TLS handshake": f"https://127.0.0.1:{mute.getsockname()[1]}/",
            "a connection never accepted": f"http://127.0.0.1:{deaf.getsockname()[1]}/",
        }
        for each in filler:
            each.close()


def test_whatever_receivers_do_attempts_end_and_memory_stays_flat(
    another: House, worker: WorkerProcess, receiver: Receiver, silent_places: dict[str, str]
) -> None:
    house = another
    house.wait_for_status(house.queue(receiver.url()), "success")  # what a first attempt takes, is taken
    process = psutil.Process(worker.process.pid)
    with ExitStack() as receivers:
        urls = silent_places | {
            what: receivers.enter_context(raw_receiver(behave))
            for what, behave in (SILENT | BROKEN | ANSWERING).items()
        }
        queued = {what: [house.queue(url) for _ in range(EVENTS_EACH)] for what, url in urls.items()}
        before_bytes = most_bytes = process.memory_info().rss

        def all_ended() -> bool:
            nonlocal most_bytes
            most_bytes = max(most_bytes, process.memory_info().rss)
            return house.attempt_count() > len(urls) * EVENTS_EACH

        house.wait(all_ended, "an attempt of each", timeout_seconds=60)
    assert most_bytes - before_bytes < MOST_GROWTH_BYTES
    for what, invoices in queued.items():
        for invoice_id in invoices:
            [attempt] = house.attempts(invoice_id)
            _assert_as_expected(what, attempt)


def _assert_as_expected(what: str, attempt: AttemptView) -> None:
    if what in ANSWERING:
        assert attempt.http_status == (500 if what == "endless chunks" else 204 if "204" in what else 200), (
            what
        )
        assert attempt.status == ("failure" if attempt.http_status == 500 else "success"), what
        assert attempt.response_body is not None
        assert len(attempt.response_body.encode()) <= BODY_MAX_BYTES, what
    else:
        assert (attempt.status, attempt.http_status) == ("failure", None), what
        expected = "the answer isn't HTTP" if what in BROKEN else f"no answer within {TIMEOUT_SECONDS} s"
        assert expected in (attempt.error_message or ""), what
