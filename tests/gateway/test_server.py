"""Unusual requests, bodies that come slowly, and the process itself."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import falcon.asgi
import pytest
import requests
from falcon.testing import create_scope

from gateway.exchange import Exchange, Request
from gateway.links import Links
from gateway.refusals import Refusals
from gateway.walls.uploads import Uploads
from kit.base.ids import new_id
from kit.rpc.errors import Refused, invalid
from kit.web import bodies
from kit.web.bodies import ArrivingBody
from kit.web.edge import Edge
from kit.web.exchange import SCOPE_KEY
from kit.web.walls.clients import Clients
from tests.gateway.desk import HTTP_SECONDS, Shop, code_of
from tests.gateway.process import SERVICES, gateway_process
from tests.gateway.strangers import Watched
from tests.support.stack import Stack


def exchange(stack: Stack, request: bytes) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Sends bytes, reads until the other side closes; status, headers with lower-case names, body."""
    place = urlsplit(stack.url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=10) as connection:
        connection.sendall(request)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return int(status_line.split()[1]), headers, json.loads(body)


def test_an_upgrade_to_websocket_is_ignored_and_http_goes_on(stack: Stack) -> None:
    upgrade = (
        b"Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    )
    request = (
        b"GET /api/v1/currencies HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\n" + upgrade + b"\r\n"
    )
    status, headers, body = exchange(stack, request)
    assert (status, body["error"]["code"]) == (401, "API_KEY_MISSING")
    assert headers["x-request-id"] == body["request_id"]


def one_request(shop: Shop, target: str, *key_lines: str) -> bytes:
    lines = [f"GET {target} HTTP/1.1", "Host: x", *key_lines, "Connection: close", "", ""]
    return "\r\n".join(lines).encode()


def test_a_key_sent_twice_is_invalid(stack: Stack, shop: Shop) -> None:
    """Even when it's the same and right: two readers of such a request could take different ones."""
    line = f"X-Api-Key: {shop.api_key}"
    _, _, body = exchange(stack, one_request(shop, "/api/v1/currencies", line, line))
    assert body["error"]["code"] == "API_KEY_INVALID"


@pytest.mark.parametrize("space", [" ", "\t", " \t "])
def test_a_key_of_spaces_is_missing(stack: Stack, shop: Shop, space: str) -> None:
    _, _, body = exchange(stack, one_request(shop, "/api/v1/currencies", f"X-Api-Key:{space}"))
    assert body["error"]["code"] == "API_KEY_MISSING"


def test_a_header_with_underscores_is_no_key(stack: Stack, shop: Shop) -> None:
    _, _, body = exchange(stack, one_request(shop, "/api/v1/currencies", f"X_Api_Key: {shop.api_key}"))
    assert body["error"]["code"] == "API_KEY_MISSING"


def test_the_absolute_form_is_understood(stack: Stack, shop: Shop) -> None:
    """RFC 9112 section 3.2.2; some proxies send it."""
    line = f"X-Api-Key: {shop.api_key}"
    status, _, _ = exchange(
        stack, one_request(shop, f"{stack.url}/api/v1/payment-methods?currency={shop.currency}", line)
    )
    assert status == 200


def test_a_closed_page_ends_its_stream(stack: Stack, shop: Shop) -> None:
    place = urlsplit(stack.url)
    path = f"/pay/{shop.create()['invoice_id']}/events"
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=5) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        assert b" 200 " in connection.recv(65536)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):  # TimeoutError if it went on
            pass


# -- the edge, without a server: a client's time is not the test's


def an_edge(open_app: Any) -> Edge:
    clients = Clients((), header="x-forwarded-for", prefix_4=32, prefix_6=64)
    return Edge(open_app, clients=clients, bounds=uploads().bounds)


def uploads() -> Uploads:
    return Uploads(pictures_most=2**25, pictures_most_per_client=2**24)


async def _served(
    receive_events: list[dict[str, Any]], headers: list[tuple[bytes, bytes]], path: bytes = b"/"
) -> Refused | None:
    """What is found wrong with a body that arrives in these pieces, and then no more."""
    found: list[Refused | None] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        exchange: Exchange = scope[SCOPE_KEY]
        try:
            if exchange.refused is None:
                await exchange.receive_body()
            found.append(exchange.refused)
        except Refused as refused:
            found.append(refused)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    @asynccontextmanager
    async def open_app() -> AsyncIterator[Any]:
        yield app

    is_open, is_over = asyncio.Event(), asyncio.Event()

    async def live() -> dict[str, Any]:
        if is_open.is_set():
            await is_over.wait()
        return {}

    async def send(message: dict[str, Any]) -> None:
        is_open.set()

    the_edge = an_edge(open_app)
    scope = {"type": "http", "method": "POST", "raw_path": path, "headers": headers, "client": None}
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(the_edge({"type": "lifespan"}, live, send))
        await is_open.wait()
        await the_edge(scope, _then_silence(receive_events), send)
        is_over.set()
    return found[0] if found else None


def _then_silence(events: list[dict[str, Any]]) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def receive() -> dict[str, Any]:
        if not events:
            await asyncio.Event().wait()
        return events.pop(0)

    return receive


def test_a_body_that_never_arrives_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.05)
    pieces = [{"type": "http.request", "body": b"{", "more_body": True}]
    refused = asyncio.run(_served(pieces, [(b"content-length", b"10")]))
    assert refused is not None
    assert refused.reason == "VALIDATION_ERROR"


def test_a_body_that_never_arrives_is_no_bad_query_value() -> None:
    """Also where none is asked for: the shape of bad query values is one that most endpoints don't document."""

    async def answered() -> falcon.asgi.Response:
        body = ArrivingBody(_then_silence([]), [], bounds=uploads().bounds("/"))
        exchange = Exchange(request_id="r", started_seconds=0, stopping=asyncio.Event(), arriving=body)
        scope = create_scope(path="/api/v1/currencies") | {SCOPE_KEY: exchange}
        request, response = Request(scope, _then_silence([])), falcon.asgi.Response()
        refused = invalid("VALIDATION_ERROR", "the body did not arrive within 10 seconds")
        await Refusals(Links("https://pay.example"), is_test=False).on_refused(request, response, refused, {})
        return response

    response = asyncio.run(answered())
    assert response.status_code == 400
    assert json.loads(response.data or b"")["error"]["details"][0]["loc"] == ["body"]


def test_a_client_that_hangs_up_costs_nothing_more() -> None:
    assert asyncio.run(_served([{"type": "http.disconnect"}], [(b"content-length", b"10")])) is None


def test_a_body_without_end_is_not_read_for_ever() -> None:
    pieces = [{"type": "http.request", "body": b"a" * 50_000, "more_body": True} for _ in range(100)]
    refused = asyncio.run(_served(pieces, [(b"transfer-encoding", b"chunked")]))
    assert refused is not None
    assert refused.reason == "PAYLOAD_TOO_LARGE"
    assert len(pieces) == 98


# -- the process


def test_alive_and_ready_are_two_things(crippled: Watched) -> None:
    assert requests.get(f"{crippled.url}/healthz", timeout=HTTP_SECONDS).json() == {"status": "alive"}
    ready = requests.get(f"{crippled.url}/readyz", timeout=HTTP_SECONDS)
    assert ready.status_code == 503
    assert ready.json()["services"] == dict.fromkeys(set(SERVICES) - {"bank"}, "serving") | {
        "withdrawals": "not serving"
    }


def test_ready_says_so(stack: Stack) -> None:
    ready = requests.get(f"{stack.url}/readyz/", timeout=5)
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    head = requests.head(f"{stack.url}/readyz", timeout=5)
    assert (head.status_code, head.content) == (200, b"")


def test_the_bare_address_says_where_to_go(stack: Stack) -> None:
    assert "/api/v1" in requests.get(stack.url, timeout=5).text


def test_a_gateway_without_any_service_waits_for_a_while_and_answers_with_the_temporary_error(
    tmp_path: Path,
) -> None:
    log = tmp_path / "gateway.log"
    with gateway_process({}, log, FIATGATE_GATEWAY_START_SECONDS="1") as url:
        assert "services_awaited" in log.read_text()
        for path in ("/api/v1/invoices", "/api/v1/currencies"):
            response = requests.get(url + path, headers={"X-Api-Key": "fg_a-secret"}, timeout=HTTP_SECONDS)
            assert (response.status_code, code_of(response)) == (503, "DB_UNAVAILABLE")
        page = requests.get(f"{url}/pay/{new_id()}", timeout=HTTP_SECONDS)
        assert page.status_code == 503
        assert page.headers["Content-Type"].startswith("text/html")
        assert 5 <= int(page.headers["Retry-After"]) <= 10
        requests.get(f"{url}/nowhere?fg_a-secret", timeout=HTTP_SECONDS)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    told = [line for line in lines if line["event"] == "request_answered"]
    assert all(line["request_id"] and line["duration_ms"] >= 0 for line in told)
    away, nowhere = (next(each for each in told if each["path"] == path) for path in (path, "/nowhere"))
    assert (away["status"], away["code"]) == (503, "DB_UNAVAILABLE")
    assert [(each["service"], each["code"], each["reason"]) for each in away["calls"]] == [
        ("identity", "UNAVAILABLE", "DB_UNAVAILABLE")
    ]
    assert (nowhere["status"], nowhere["code"]) == (404, "NOT_FOUND")
    assert "calls" not in nowhere
    assert "fg_a-secret" not in log.read_text()


def test_a_stop_waits_neither_for_idle_connections_nor_for_open_pages(
    stack: Stack, shop: Shop, tmp_path: Path
) -> None:
    """It would wait for them until GRACEFUL_SECONDS, far longer than `gateway_process` waits for the stop."""
    page = f"/pay/{shop.create()['invoice_id']}/events"
    with requests.Session() as session, gateway_process(stack.addresses, tmp_path / "gateway.log") as url:
        stream = requests.get(url + page, stream=True, timeout=HTTP_SECONDS)
        assert (stream.status_code, session.get(f"{url}/healthz", timeout=HTTP_SECONDS).status_code) == (
            200,
            200,
        )
    stream.close()
