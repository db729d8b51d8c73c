"""The harness itself: its plan, and what its proxies do to connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.faults.plan import FREQUENT, plan
from tests.faults.proxy import Proxies


def test_a_seed_gives_the_same_faults_every_time_and_another_seed_others() -> None:
    assert plan(7, seconds=20) == plan(7, seconds=20)
    assert plan(7, seconds=20) != plan(8, seconds=20)


@pytest.mark.parametrize("seed", range(20))
def test_every_plan_has_each_frequent_kind_of_fault_and_ends_in_time(seed: int) -> None:
    faults = plan(seed, seconds=15)
    assert {fault.kind for fault in faults} >= set(FREQUENT)
    assert 15 <= sum(fault.wait_seconds + fault.seconds for fault in faults) <= 22


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that says back what it hears."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(1024):
                    connection.sendall(data)
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_a_link_carries_holds_and_is_cut(echo: int) -> None:
    with Proxies({"echo": lambda: echo}) as proxies:
        with socket.create_connection(("127.0.0.1", proxies.port("echo")), timeout=10) as client:
            client.sendall(b"one")
            assert client.recv(10) == b"one"
            proxies.hold("echo")
            client.sendall(b"two")
            client.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.recv(10)
            proxies.flow("echo")
            client.settimeout(10)
            assert client.recv(10) == b"two"
            proxies.cut("echo")
            with pytest.raises(ConnectionResetError):
                assert client.recv(10) == b"", "reset, or at least closed"
                raise ConnectionResetError
        with socket.create_connection(("127.0.0.1", proxies.port("echo")), timeout=10) as client:
            client.sendall(b"three")
            assert client.recv(10) == b"three"


def test_what_is_asked_arrives_while_answers_are_lost() -> None:
    heard: list[bytes] = []
    arrived = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            with connection, suppress(ConnectionResetError):
                heard.append(connection.recv(1024))
                connection.sendall(b"done")
                arrived.set()
                connection.recv(1024)  # until it is cut

    threading.Thread(target=answer, daemon=True).start()
    with listener, Proxies({"link": lambda: int(listener.getsockname()[1])}) as proxies:
        proxies.lose_answers("link")
        with socket.create_connection(("127.0.0.1", proxies.port("link")), timeout=10) as client:
            client.sendall(b"do it")
            assert arrived.wait(10)
            client.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.recv(10)
            proxies.cut("link")
        with socket.create_connection(("127.0.0.1", proxies.port("link")), timeout=10) as client:
            client.sendall(b"again")
            assert client.recv(10) == b"done"
    assert heard == [b"do it", b"again"]
