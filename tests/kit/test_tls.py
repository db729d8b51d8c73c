"""Services and their callers prove who they are to each other: over real connections, with a CA of the test's own."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from fiatgate.rpc.v1.access_pb2 import Access
from kit.base import tls
from kit.base.tls import Files, Identity
from kit.rpc import client, server
from kit.rpc.callers import REFUSED
from kit.rpc.errors import Refused
from kit.rpc.tls import channel_credentials, expecting
from tests.support.certificates import Authority, replace, serial_number
from tests.support.contracts import declare

ASK = "/test.tls.Shop/Ask"
SELL = "/test.tls.Shop/Sell"
declare("test.tls.Shop", {"Ask": Access(callers=["gateway"]), "Sell": Access()})

Method = Callable[..., Any]


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "READ_EVERY_SECONDS", 0.02)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


class Shop:
    """A service of two methods, which answer with the certificate that their caller showed."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.held = threading.Event()
        self.held.set()
        self._server = server.RpcServer(server.Options(identity=Identity(files)))
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self._answer)
        handlers = {"Ask": handler, "Sell": handler}
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("test.tls.Shop", handlers)]
        )
        self._server.add_registered_method_handlers("test.tls.Shop", handlers)
        self.port = self._server.listen("127.0.0.1:0")
        self.health_port = self._server.listen_for_probes("127.0.0.1:0")
        self._server.start()

    def _answer(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if request == b"slowly":
            self.held.wait(10)
        proved: Any = context.auth_context()
        return bytes(proved["x509_pem_cert"][0])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def shown_serial_number(self) -> int:
        """Of the certificate that whoever connects now is shown."""
        trusting = ssl.create_default_context(cafile=str(self.files.ca))
        trusting.load_cert_chain(self.files.certificate, self.files.key)
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=5) as plain,
            trusting.wrap_socket(plain, server_hostname="shop") as secured,
        ):
            shown = secured.getpeercert(binary_form=True)
        assert shown is not None
        return x509.load_der_x509_certificate(shown).serial_number

    def stop(self) -> None:
        self._server.stop(0).wait(5)


@pytest.fixture
def shop(authority: Authority, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(authority.issue(tmp_path / "shop", "shop"))
    yield made
    made.stop()


Open = Callable[..., grpc.Channel]


@pytest.fixture
def connect(shop: Shop) -> Iterator[Open]:
    """Channels to the shop, or to who is expected there."""
    opened: list[grpc.Channel] = []

    def make(files: Files, *, name: str = "shop") -> grpc.Channel:
        opened.append(client.channel(shop.address, name=name, identity=Identity(files)))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def listed(shop: Shop, files: Files) -> set[str]:
    """The services that reflection lists; over a channel of gRPC's own, because ours has no streams."""
    credentials = channel_credentials(Identity(files).current())
    with grpc.secure_channel(shop.address, credentials, [expecting("shop")]) as channel:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        answer = next(reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([request])))
        return {each.name for each in answer.list_services_response.service}


def ask(channel: grpc.Channel, method: str = ASK, request: bytes = b"") -> int:
    """The serial number of the certificate that was shown for us."""
    call: Method = channel.unary_unary(method)
    return x509.load_pem_x509_certificate(call(request)).serial_number


# -- who may


def test_both_ends_prove_who_they_are(authority: Authority, connect: Open, tmp_path: Path) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")
    assert ask(connect(files)) == serial_number(files)


def test_a_caller_hangs_up_on_a_service_of_another_name(
    authority: Authority, connect: Open, tmp_path: Path
) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")
    with pytest.raises(Refused, match="DB_UNAVAILABLE"):
        ask(connect(files, name="bank"))


def test_a_caller_hangs_up_on_a_service_of_another_authority(
    authority: Authority, connect: Open, tmp_path: Path
) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")
    replace(files.ca, Authority().issue(tmp_path / "other", "gateway").ca.read_bytes())
    with pytest.raises(Refused, match="DB_UNAVAILABLE"):
        ask(connect(files))


@pytest.mark.parametrize(
    "stranger", ["no certificate", "another authority", "expired", "for servers", "no TLS"]
)
def test_a_stranger_does_not_get_as_far_as_a_call(
    authority: Authority, shop: Shop, tmp_path: Path, stranger: str
) -> None:
    issue: Callable[..., Files] = Authority().issue if stranger == "another authority" else authority.issue
    options: dict[str, dict[str, Any]] = {
        "expired": {"lasting": timedelta(hours=-1)},
        "for servers": {"usages": (ExtendedKeyUsageOID.SERVER_AUTH,)},
    }
    files = issue(tmp_path / "stranger", "gateway", **options.get(stranger, {}))
    shown = (
        (None, None)
        if stranger == "no certificate"
        else (files.key.read_bytes(), files.certificate.read_bytes())
    )
    expecting = [("grpc.default_authority", "shop")]
    credentials = grpc.ssl_channel_credentials(shop.files.ca.read_bytes(), *shown)
    with (
        grpc.insecure_channel(shop.address)
        if stranger == "no TLS"
        else grpc.secure_channel(shop.address, credentials, expecting) as channel
    ):
        for method in (ASK, "/grpc.health.v1.Health/Check"):
            call: Method = channel.unary_unary(method)
            with pytest.raises(grpc.RpcError) as refused:
                call(b"", timeout=5)
            assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("name", "method"), [("gateway", SELL), ("webhooks", ASK), ("GATEWAY", ASK), ("cli.example", SELL)]
)
def test_a_known_peer_that_may_not_is_refused_and_told(
    authority: Authority, connect: Open, tmp_path: Path, name: str, method: str
) -> None:
    channel = connect(authority.issue(tmp_path / "caller", name))
    before = REFUSED._value.get()
    call: Method = channel.unary_unary(method)
    with capture_logs() as lines, pytest.raises(Refused) as refused:
        call(b"")
    error = refused.value.__cause__
    assert isinstance(error, grpc.RpcError)
    assert error.code() == grpc.StatusCode.PERMISSION_DENIED
    assert error.details() == "not permitted", "the answer does not name the callers that may"
    (line,) = [each for each in lines if each["event"] == "peer_refused"]
    assert (line["method"], line["names"]) == (method, [name])
    assert REFUSED._value.get() == before + 1


def test_an_operator_may_all(authority: Authority, shop: Shop, connect: Open, tmp_path: Path) -> None:
    files = authority.issue(tmp_path / "cli", "cli")
    channel = connect(files)
    assert ask(channel, ASK) == ask(channel, SELL)
    assert "test.tls.Shop" in listed(shop, files)


def test_who_may_call_something_may_ask_for_health_and_not_what_else_there_is(
    authority: Authority, shop: Shop, connect: Open, tmp_path: Path
) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")
    channel = connect(files)
    health = health_pb2_grpc.HealthStub(channel)
    asked = health_pb2.HealthCheckRequest(service="test.tls.Shop")
    assert health.Check(asked).status == health_pb2.HealthCheckResponse.SERVING
    watched = health.Watch(asked)
    assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
    watched.cancel()
    with pytest.raises(grpc.RpcError) as refused:
        listed(shop, files)
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_probes_learn_of_health_without_tls_and_of_nothing_else(shop: Shop) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{shop.health_port}") as channel:
        request = health_pb2.HealthCheckRequest(service=server.ALIVE)
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(request, timeout=5).status == health_pb2.HealthCheckResponse.SERVING
        for method in (ASK, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
            call: Method = channel.unary_unary(method)
            with pytest.raises(grpc.RpcError) as refused:
                call(b"", timeout=5)
            assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


# -- renewal


def test_renewed_files_are_taken_by_both_ends_and_no_call_fails(
    authority: Authority, shop: Shop, connect: Open, tmp_path: Path
) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")
    channel = connect(files)
    shop.held.clear()
    threads = ThreadPoolExecutor(1)
    under_way = threads.submit(ask, channel, ASK, b"slowly")
    seen = {ask(channel)}
    for _ in range(3):
        authority.issue(shop.files.certificate.parent, "shop")
        authority.issue(files.certificate.parent, "gateway")
        wait_until(
            lambda: seen.add(ask(channel)) or serial_number(files) in seen,  # type: ignore[func-returns-value]
            "a call with the new certificate",
            timeout_seconds=10,
        )
        wait_until(
            lambda: shop.shown_serial_number() == serial_number(shop.files),
            "the new certificate to be shown",
            timeout_seconds=10,
        )
    assert len(seen) == 4
    shop.held.set()
    assert under_way.result(10), "the call that began before the first renewal ends after the last"
    threads.shutdown()


def test_an_asyncio_channel_takes_renewed_files_too(authority: Authority, shop: Shop, tmp_path: Path) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")

    async def run() -> None:
        async with client.aio_channel(shop.address, name="shop", identity=Identity(files)) as channel:
            call: Method = channel.unary_unary(ASK)

            async def shown(request: bytes = b"") -> int:
                return x509.load_pem_x509_certificate(await call(request)).serial_number

            first = serial_number(files)
            shop.held.clear()
            under_way = asyncio.ensure_future(shown(b"slowly"))
            assert await shown() == first
            authority.issue(tmp_path / "gateway", "gateway")
            async with asyncio.timeout(10):
                while await shown() == first:
                    pass
            shop.held.set()
            assert await under_way == first
            assert await shown() == serial_number(files)

    asyncio.run(run())


def test_another_authority_is_taken_too_while_both_are_trusted(
    authority: Authority, shop: Shop, connect: Open, tmp_path: Path
) -> None:
    """The way to replace a CA: trust both, then show certificates of the new one."""
    files = authority.issue(tmp_path / "gateway", "gateway")
    channel = connect(files)
    ask(channel)
    new = Authority()
    both = files.ca.read_bytes() + new.issue(tmp_path / "new", "gateway").ca.read_bytes()
    replace(shop.files.ca, both)
    wait_until(lambda: _believes(shop, tmp_path / "new"), "the new CA to be trusted", timeout_seconds=10)
    new.issue(tmp_path / "gateway", "gateway")
    replace(files.ca, both)
    wait_until(lambda: ask(channel) == serial_number(files), "a call of the new CA", timeout_seconds=10)


def _believes(shop: Shop, folder: Path) -> bool:
    own = Files(shop.files.ca, folder / "tls.crt", folder / "tls.key")
    with client.channel(shop.address, name="shop", identity=Identity(own)) as channel:
        try:
            return ask(channel) == serial_number(own)
        except Refused:
            return False


def test_a_service_whose_certificate_had_ended_is_back_with_the_next_one(
    authority: Authority, shop: Shop, connect: Open, tmp_path: Path
) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")
    authority.issue(shop.files.certificate.parent, "shop", lasting=timedelta(hours=-1))
    channels: list[grpc.Channel] = []  # one that connected before the shop looked again keeps its connection

    def in_vain() -> bool:
        channels.append(connect(files))
        return not _answers(channels[-1])

    wait_until(in_vain, "nobody to believe it", timeout_seconds=10)
    authority.issue(shop.files.certificate.parent, "shop")
    wait_until(lambda: _answers(channels[-1]), "it to be believed again", timeout_seconds=10)


def _answers(channel: grpc.Channel) -> bool:
    try:
        return bool(ask(channel))
    except Refused:
        return False


def test_files_that_can_not_be_used_leave_the_last_ones_in_force(
    authority: Authority, shop: Shop, connect: Open, tmp_path: Path
) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")
    channel = connect(files)
    first = ask(channel)
    half_done = authority.issue(tmp_path / "next", "gateway")
    with capture_logs() as lines:
        replace(files.certificate, half_done.certificate.read_bytes())
        wait_until(
            lambda: ask(channel) == first and any(each["event"] == "certificate_not_taken" for each in lines),
            "it to be told",
            timeout_seconds=10,
        )
        for _ in range(20):
            ask(channel)
    (told,) = [each for each in lines if each["event"] == "certificate_not_taken"]
    assert told["why"] == f"{files.key} is not the key of {files.certificate}"
    replace(files.key, half_done.key.read_bytes())
    wait_until(lambda: ask(channel) == serial_number(half_done), "the whole pair", timeout_seconds=10)
