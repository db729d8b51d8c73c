"""TLS to what is not ours: a real NATS server that asks for it, and PostgreSQL behind something that does.

The PostgreSQL of the tests is built without TLS, so what stands before it speaks the start of the protocol as the
server would, and passes on all that comes then.
"""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from kit.base.config.processes import Settings
from kit.base.config.variables import load
from kit.base.ids import new_id
from kit.base.tls import Files
from kit.db import migrate
from kit.db.database import Database, DatabaseUnavailable
from kit.db.prepared import Prepared
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Outgoing
from kit.events.bus.stream import OwnStream
from kit.events.hints import Hints
from tests.support.certificates import Authority
from tests.support.servers import NatsServer

HOST: Final = "localhost"
PASSWORD: Final = "nobody-else-shall-read-this"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Authority().issue(tmp_path_factory.mktemp("certificate"), HOST)


@pytest.fixture(scope="module")
def another_ca(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(Authority().issue(tmp_path_factory.mktemp("another"), HOST).ca)


def server_side(files: Files) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    return context


# -- NATS


class SecuredNats(NatsServer):
    """It asks for TLS."""

    def __init__(self, folder: Path, files: Files) -> None:
        super().__init__(folder)
        self._files = files

    def _prepare(self) -> None:
        super()._prepare()
        (written,) = self._log.parent.glob("nats.json")
        options = json.loads(written.read_text())
        options["tls"] = {"cert_file": str(self._files.certificate), "key_file": str(self._files.key)}
        written.write_text(json.dumps(options))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, certificate: Files) -> Iterator[str]:
    server = SecuredNats(tmp_path_factory.mktemp("nats"), certificate)
    server.start()
    yield server.url.replace("nats://", "tls://").replace("127.0.0.1", HOST)
    server.stop()


@contextmanager
def started(bus: Bus) -> Iterator[Bus]:
    bus.start()
    try:
        yield bus
    finally:
        bus.close()


def test_facts_and_hints_go_to_nats_over_tls_with_a_password(secured: str, certificate: Files) -> None:
    with started(Bus(secured, name="test", ca=str(certificate.ca), stream=OwnStream(replicas=1))) as bus:
        assert bus.wait_ready(10)
        fact = Outgoing(new_id(), "fiatgate.test.secured", b"secured")
        assert bus.publish([fact]) == [fact.event_id]

    async def hints() -> None:
        async with Hints(secured, name="test", ca=str(certificate.ca)) as heard:
            await asyncio.to_thread(wait_until, lambda: heard.connected, "NATS", timeout_seconds=10)

    asyncio.run(hints())


def test_a_nats_server_that_an_unknown_ca_signed_for_is_not_believed(secured: str, another_ca: str) -> None:
    with capture_logs() as lines, started(Bus(secured, name="test", ca=another_ca)) as bus:
        wait_until(
            lambda: any("CERTIFICATE_VERIFY_FAILED" in str(each.get("error")) for each in lines),
            "it to be told",
            timeout_seconds=10,
        )
        assert not bus.connected


def test_nothing_is_said_to_a_nats_server_at_tls_that_does_without(certificate: Files) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(
                            b'INFO {"server_id":"x","version":"2.15.0","max_payload":1048576}\r\n'
                        )
                        heard.append(connection.recv(4096))

        threading.Thread(target=greet, daemon=True).start()
        url = f"tls://fiatgate:{PASSWORD}@{HOST}:{listener.getsockname()[1]}"
        with capture_logs() as lines, started(Bus(url, name="test", ca=str(certificate.ca))) as bus:
            wait_until(lambda: bool(heard), "it to hang up", timeout_seconds=10)
            assert not bus.connected
    assert set(heard) == {b""}
    assert "the server at tls:// does without TLS" in {each.get("error") for each in lines}


def test_a_ca_of_nats_that_can_not_be_read_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIATGATE_NATS_CA", "/nowhere/ca.crt")
    with pytest.raises(SystemExit):
        load(Settings)
    assert "FIATGATE_NATS_CA: expected a file that can be read" in capsys.readouterr().err


# -- PostgreSQL


SSL_REQUEST: Final = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"


class Front:
    """Joins each TLS connection to one to PostgreSQL; counts them."""

    def __init__(self, files: Files, port: int) -> None:
        self._context = server_side(files)
        self._behind = port
        self.secured = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._join, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def _do(self, step: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result(10)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if await reader.readexactly(len(SSL_REQUEST)) != SSL_REQUEST:
                writer.close()
                return
            writer.write(b"S")
            await writer.start_tls(self._context)
            self.secured += 1
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._behind)
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    def close(self) -> None:
        async def cancel() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for each in others:
                each.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._do(cancel())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@pytest.fixture
def behind_tls(database_url: Callable[[str], str], certificate: Files) -> Iterator[tuple[Front, str]]:
    """What stands before the database, and the address by which it is reached through there."""
    url = database_url("catalog")
    port = url.rpartition(":")[2].partition("/")[0]
    front = Front(certificate, int(port))
    yield front, url.replace(f"@127.0.0.1:{port}/", f"@{HOST}:{front.port}/")
    front.close()


def test_the_database_is_reached_over_tls_in_every_way_that_we_use(
    behind_tls: tuple[Front, str], certificate: Files
) -> None:
    front, url = behind_tls
    url += f"?sslmode=verify-full&sslrootcert={certificate.ca}"
    double = Prepared("double", "SELECT :number * 2", {"number": "bigint"}, int)
    assert migrate.is_current("catalog", url)
    assert front.secured == 1
    database = Database(url, name="test", pool_size=1)
    database.ping()
    assert front.secured == 2
    assert database.one_or_none(double, {"number": 21}) == 42
    assert front.secured == 3
    database.dispose()


def test_a_database_that_an_unknown_ca_signed_for_is_not_believed(
    behind_tls: tuple[Front, str], another_ca: str
) -> None:
    _, url = behind_tls
    database = Database(f"{url}?sslmode=verify-full&sslrootcert={another_ca}", name="test", pool_size=1)
    with pytest.raises(DatabaseUnavailable, match="certificate verify failed"):
        database.ping()
    database.dispose()
