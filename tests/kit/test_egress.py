"""Nothing reaches an address that isn't public. Seen from the other side, by tests/kit/observers.py;
`test_the_observers_see_a_call_that_is_allowed` shows that they would notice.
"""

import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kit.base.clock import SystemClock
from kit.egress.address import check_url
from kit.egress.client import HEADERS_MAX_COUNT, Egress, Forbidden, TimedOut, Unreachable
from kit.egress.exchange import BODY_MAX_BYTES
from tests.kit.observers import Serve, listening

HOSTILE_URLS = [
    # what is read differently from what is called
    "https://127.0.0.1:{port}/\u00a0",
    "https://localhost:{port}/\u2028",
    "https://localhost:{port}/\u202emoc",
    # loopback in every notation that some resolver takes
    "https://127.0.0.1:{port}/",
    "https://127.0.0.2:{port}/",
    "https://127.255.255.254:{port}/",
    "https://127.1:{port}/",
    "https://127.0.1:{port}/",
    "https://2130706433:{port}/",
    "https://0x7f000001:{port}/",
    "https://0x7f.0.0.1:{port}/",
    "https://0x7f.1:{port}/",
    "https://017700000001:{port}/",
    "https://0177.0.0.1:{port}/",
    "https://127.0.0.1.:{port}/",
    "https://127.0.0.01:{port}/",
    "https://0:{port}/",
    "https://0.0.0.0:{port}/",
    "https://①②⑦.⓪.⓪.①:{port}/",
    "https://127。0。0。1:{port}/",
    "https://127%2e0%2e0%2e1:{port}/",
    "https://localhost:{port}/",
    "https://LOCALHOST.:{port}/",
    "https://foo.localhost:{port}/",
    "https://[::1]:{port}/",
    "https://[0:0:0:0:0:0:0:1]:{port}/",
    "https://[::]:{port}/",
    "https://[::ffff:127.0.0.1]:{port}/",
    "https://[::ffff:7f00:1]:{port}/",
    "https://[::127.0.0.1]:{port}/",
    "https://[64:ff9b::127.0.0.1]:{port}/",
    "https://[64:ff9b:1::7f00:1]:{port}/",
    "https://[2002:7f00:1::]:{port}/",
    "https://[2001:0:7f00:1::]:{port}/",
    "https://[::1%25lo]:{port}/",
    # elsewhere, but not public
    "https://10.0.0.1/",
    "https://100.64.0.1/",
    "https://100.100.100.200/latest/meta-data/",
    "https://168.63.129.16/machine",
    "https://169.254.169.254/latest/meta-data/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.0.0.1/",
    "https://192.88.99.1/",
    "https://192.168.1.1/",
    "https://198.18.0.1/",
    "https://203.0.113.9/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[fe80::1]/",
    "https://[fec0::1]/",
    "https://[fd00:ec2::254]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[::ffff:169.254.169.254]/",
    # names and schemes
    "https://kubernetes/",
    "https://metadata.google.internal/",
    "http://shop.example:{port}/",
    "https://user@shop.example:{port}/",
    "https://@shop.example:{port}/",
    "https://shop.example:{port}\\@127.0.0.1:{port}/",
    "ftp://shop.example/",
    "file:///etc/passwd",
    "https:///",
    "https://shop.example:0/",
    "https://shop.example:99999/",
    "https://shop.example:22/",
    "https://shop.example:25/",
    "https://shop.example:80/",
    "https://shop.example:5432/",
    "https://shop.example:6379/",
    "https://shop.example:6667/",
    "https://shop.example:10250/",
    "https://shop.example\r\nX-Injected: 1/",
]


def lookup(*addresses: str) -> Callable[[str, int], list[Any]]:
    """A name server that gives these answers to every question."""

    def answer(host: str, port: int) -> list[Any]:
        families = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in addresses]
        return [
            (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))
            for family, address in zip(families, addresses, strict=True)
        ]

    return answer


# -- the guard


@pytest.mark.parametrize("url", HOSTILE_URLS)
def test_a_hostile_url_reaches_nobody(url: str, attempts: list[Any]) -> None:
    async def call() -> int:
        async with listening() as listener, Egress(lookup=lookup("127.0.0.1")) as egress:
            with pytest.raises(Forbidden):
                await egress.call(
                    "POST", url.replace("{port}", str(listener.port)), body=b"{}", deadline_seconds=2
                )
            return listener.connections

    assert asyncio.run(call()) == 0
    assert attempts == []


def test_a_name_whose_answer_is_no_address_reaches_nobody(attempts: list[Any]) -> None:
    """test_egress_names.py has the addresses that are not public."""

    async def call() -> int:
        async with listening() as listener, Egress(lookup=lookup("not an address")) as egress:
            with pytest.raises((Forbidden, Unreachable)):
                await egress.call("POST", f"https://shop.example:{listener.port}/", deadline_seconds=2)
            return listener.connections

    assert asyncio.run(call()) == 0
    assert attempts == []


def test_the_observers_see_a_call_that_is_allowed(attempts: list[Any]) -> None:
    async def call() -> tuple[int, int]:
        async with listening() as listener, Egress(allow_private=True) as egress:
            answer = await egress.call("GET", f"http://127.0.0.1:{listener.port}/", deadline_seconds=2)
            return answer.status, listener.connections

    assert asyncio.run(call()) == (200, 1)
    assert len(attempts) == 1


def test_a_name_with_public_answers_only_is_called_at_exactly_those(attempts: list[Any]) -> None:
    async def call() -> None:
        async with Egress(lookup=lookup("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946")) as egress:
            with pytest.raises(Unreachable):
                await egress.call("POST", "https://shop.example/", deadline_seconds=2)

    asyncio.run(call())

    assert {address[0] for address in attempts} == {"93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"}


def test_a_name_that_changes_its_answer_after_the_check_gains_nothing(attempts: list[Any]) -> None:
    answers = iter([lookup("93.184.216.34"), lookup("127.0.0.1"), lookup("127.0.0.1")])
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[Any]:
        asked.append(host)
        return next(answers)(host, port)

    async def call() -> int:
        async with listening() as listener, Egress(lookup=rebinding) as egress:
            with pytest.raises(Unreachable):
                await egress.call("POST", f"https://shop.example:{listener.port}/", deadline_seconds=2)
            return listener.connections

    assert asyncio.run(call()) == 0
    assert asked == ["shop.example"], "what was vetted must be what is connected to"
    assert [address[0] for address in attempts] == ["93.184.216.34"]


def test_the_last_gate_gives_no_socket_whatever_the_others_let_through() -> None:
    for address in ("127.0.0.1", "::1", "169.254.169.254"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with pytest.raises(OSError, match=r"^$"):
            Egress()._socket((family, socket.SOCK_STREAM, 0, "", (address, 443)))


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    async def call() -> tuple[int, int, int]:
        async with listening() as target:
            to_target = (
                f"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:{target.port}/\r\nContent-Length: 0\r\n\r\n"
            )
            async with listening(to_target.encode()) as first, Egress(allow_private=True) as egress:
                answer = await egress.call("POST", f"http://127.0.0.1:{first.port}/", deadline_seconds=2)
                return answer.status, first.connections, target.connections

    assert asyncio.run(call()) == (307, 1, 0)


def test_the_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def call() -> tuple[int, int]:
        async with listening() as proxy, listening() as target:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
            async with Egress(allow_private=True) as egress:
                await egress.call("GET", f"http://127.0.0.1:{target.port}/", deadline_seconds=2)
            return proxy.connections, target.connections

    assert asyncio.run(call()) == (0, 1)


def test_the_answers_of_internal_names_are_not_told() -> None:
    async def call() -> str:
        async with Egress(lookup=lookup("10.1.2.3")) as egress:
            with pytest.raises(Forbidden) as forbidden:
                await egress.call("POST", "https://db.prod.example/", deadline_seconds=2)
            return str(forbidden.value)

    assert "10.1.2.3" not in asyncio.run(call())


@pytest.mark.parametrize("url", HOSTILE_URLS)
def test_a_hostile_url_is_refused_early_with_a_reason(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        check_url(url.replace("{port}", "443"))


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/hook?a=b#c",
        "https://shop.example.:8443/",
        "https://bücher.example/ü",
        "https://8.8.8.8/",
        "https://[2606:4700:4700::1111]:8443/",
        "https://a_b.shop.example/",
        "https://1password.example/",
    ],
)
def test_an_ordinary_url_is_admitted(url: str) -> None:
    check_url(url)


def test_a_url_may_be_2048_characters_long_and_no_longer() -> None:
    check_url("https://shop.example/".ljust(2048, "a"))
    with pytest.raises(ValueError, match="longer"):
        check_url("https://shop.example/".ljust(2049, "a"))


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000/", "http://localhost:9000/", "https://[::1]/"])
def test_a_local_stack_may_call_itself(url: str) -> None:
    check_url(url, allow_private=True)
    with pytest.raises(ValueError, match="URL"):
        check_url(url)


# -- the bounds


def _answer_of(serve: Serve, deadline_seconds: float = 2) -> Any:
    async def call() -> Any:
        async with listening(serve=serve) as listener, Egress(allow_private=True) as egress:
            return await egress.call(
                "POST", f"http://127.0.0.1:{listener.port}/", body=b"{}", deadline_seconds=deadline_seconds
            )

    return asyncio.run(call())


def test_one_deadline_runs_over_everything_however_busy_the_other_side_is() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")
        for _ in range(12_000):  # ten minutes, longer than a test may last; the client hangs up long before
            writer.write(b"O")
            await writer.drain()
            await asyncio.sleep(0.05)

    with pytest.raises(TimedOut, match=r"no answer within 0.3 s"):
        _answer_of(drip, deadline_seconds=0.3)


def test_names_whose_servers_do_not_answer_hold_up_no_other_name() -> None:
    release = threading.Event()

    def hang_but_for_one(host: str, port: int) -> list[Any]:
        if host != "good.example":
            release.wait(30)
        return lookup("127.0.0.1")(host, port)

    async def main() -> None:
        async with listening() as listener, Egress(allow_private=True, lookup=hang_but_for_one) as egress:
            hanging = [
                asyncio.create_task(
                    egress.call("POST", f"http://hangs-{n}.example:{listener.port}/", deadline_seconds=30)
                )
                for n in range(200)
            ]
            await asyncio.sleep(0)  # each of them has asked for its name
            answer = await egress.call("POST", f"http://good.example:{listener.port}/", deadline_seconds=10)
            assert answer.status == 200
            release.set()
            await asyncio.gather(*hanging)

    asyncio.run(main())


def test_a_success_with_a_body_that_never_ends_is_a_success() -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhello")
        await writer.drain()
        await reader.read(1)  # until the client hangs up

    answer = _answer_of(stall, deadline_seconds=0.3)

    assert (answer.status, answer.body, answer.complete) == (200, b"hello", False)


def test_a_body_is_read_up_to_its_limit_and_the_rest_is_left() -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 500 X\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(1000):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000

    answer = _answer_of(flood)

    assert (answer.status, len(answer.body), answer.complete) == (500, BODY_MAX_BYTES, False)
    assert sent < 50_000_000


def test_a_body_of_exactly_the_limit_is_complete() -> None:
    async def exact(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BODY_MAX_BYTES + b"x" * BODY_MAX_BYTES
        )
        await writer.drain()

    answer = _answer_of(exact)

    assert (len(answer.body), answer.complete) == (BODY_MAX_BYTES, True)


def test_a_compressed_body_is_not_expanded() -> None:
    bomb = gzip.compress(b"0" * 5_000_000)

    async def compressed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb
        )
        await writer.drain()

    assert _answer_of(compressed).body == bomb[:BODY_MAX_BYTES]


def test_headers_and_body_are_captured_in_a_form_that_can_be_stored() -> None:
    many = b"".join(b"X-%d: %s\r\n" % (number, b"v" * 2000) for number in range(80))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nX-Odd: \xff\xfe\r\n"
        writer.write(head + many + b"Content-Length: 5\r\n\r\n\x00\xffabc")
        await writer.drain()

    captured = _answer_of(answer)

    assert captured.headers["Set-Cookie"] == "a, b"
    assert len(captured.headers) == HEADERS_MAX_COUNT
    assert max(map(len, captured.headers.values())) == 1024
    assert captured.text == "\ufffd\ufffdabc"


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 banana\r\n\r\n"])
def test_an_answer_that_is_not_http_is_told_in_words(answer: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1: the (answer isn't HTTP|connection was closed)"):
        _answer_of(speak)


def test_nobody_listening_is_told_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    async def call() -> None:
        async with Egress(allow_private=True) as egress:
            with pytest.raises(Unreachable, match="the connection failed"):
                await egress.call("GET", f"http://127.0.0.1:{port}/", deadline_seconds=2)

    asyncio.run(call())


# -- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of shop.example, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.example")])
    now = SystemClock().now()
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "shop.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def _server_tls(certificate: Path, names: list[str | None]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    return context


def test_the_name_is_sni_and_host_while_the_connection_goes_to_the_address(certificate: Path) -> None:
    names: list[str | None] = []

    async def call() -> bytes:
        async with listening(tls=_server_tls(certificate, names)) as listener:
            trusting = ssl.create_default_context(cafile=str(certificate))
            async with Egress(allow_private=True, lookup=lookup("127.0.0.1"), ssl_context=trusting) as egress:
                await egress.call(
                    "POST", f"https://shop.example:{listener.port}/hook", body=b"{}", deadline_seconds=2
                )
            return listener.requests[0]

    request = asyncio.run(call())

    assert names == ["shop.example"]
    assert b"\r\nHost: shop.example:" in request
    assert b"\r\nAccept-Encoding: identity\r\n" in request


@pytest.mark.parametrize("name", ["shop.example", "other.example"])
def test_a_certificate_nobody_vouches_for_gets_no_request(certificate: Path, name: str) -> None:
    async def call() -> list[bytes]:
        async with listening(tls=_server_tls(certificate, [])) as listener:
            context = ssl.create_default_context(cafile=str(certificate) if name != "shop.example" else None)
            async with Egress(allow_private=True, lookup=lookup("127.0.0.1"), ssl_context=context) as egress:
                with pytest.raises(Unreachable, match="TLS failed"):
                    await egress.call("POST", f"https://{name}:{listener.port}/", deadline_seconds=2)
            return listener.requests

    assert asyncio.run(call()) == []
