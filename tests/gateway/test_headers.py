"""Headers that no client of ours would send: each is answered, and never with a 500."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
import requests

from tests.gateway.desk import HTTP_SECONDS, Shop, code_of
from tests.gateway.strangers import Stranger, Watched, watched_gateway
from tests.support.stack import Stack

AT_A_TIME = 50

HEADERS = (
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Cookie",
    "Date",
    "Expect",
    "Forwarded",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "Host",
    "Origin",
    "Range",
    "Referer",
    "Sec-Fetch-Site",
    "Traceparent",
    "Transfer-Encoding",
    "Upgrade",
    "X-Api-Key",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
)
LONG = 2000
VALUES = (
    "",
    "application/json" + "(" * LONG,
    "(" * LONG,
    "multipart/form-data; boundary=" + '"' * LONG,
    'a="' + "\\" * LONG,
    ";" * LONG,
    "a=b;" * (LONG // 4),
    "application/json; charset=" + "x" * LONG,
    'application/json; charset*=utf-8\'\'%FF%FE; charset*0="a"; charset*1="b"',
    "application/x-www-form-urlencoded; " + "a=;" * 500,
    "," * LONG,
    "en;q=" + "9" * LONG,
    "en;q=1e999, *;q=NaN",
    "9" * 5000,
    "-1",
    "bytes=0-" + ",0-" * 600,
    'W/"' + '"' * LONG,
    "for=" + '"[' * 500,
    "fiatgate_language=" + "\\377" * 400,
    'a="\\"; fiatgate_language=%00; $Version=1',
    "\xff\xfe\xfd",
    "\t \t",
    "00-" + "f" * 32 + "-" + "g" * 16 + "-01",
    "Mon, 99 Abc 99999 99:99:99 GMT",
    "=?utf-8?q?" + "=00" * 500 + "?=",
)


@pytest.fixture(scope="module")
def gateway(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """One that counts nobody."""
    settings = {
        "FIATGATE_NETWORK_PAGE_REQUESTS_PER_MINUTE": "0",
        "FIATGATE_PAGE_REQUESTS_PER_MINUTE": "0",
        "FIATGATE_STRANGERS_PER_MINUTE": "0",
        "FIATGATE_TRUSTED_PROXIES": "127.0.0.0/8",
    }
    with watched_gateway(stack, tmp_path_factory.mktemp("headers"), **settings) as opened:
        yield opened


def requests_with(shop: Shop, invoice_id: str, name: str, value: str) -> Iterator[bytes]:
    """One of each kind, with that header in place of its own."""
    form, order = b"deal_id=x", json.dumps(shop.body()).encode()
    key = {"X-Api-Key": shop.api_key}
    for method, path, own, body in (
        ("GET", f"/pay/{invoice_id}", {}, b""),
        ("POST", f"/pay/{invoice_id}/paid", {"Content-Type": "application/x-www-form-urlencoded"}, form),
        ("GET", "/api/v1/currencies", key, b""),
        ("POST", "/api/v1/create-invoice", {**key, "Content-Type": "application/json"}, order),
        ("GET", "/docs", {}, b""),
    ):
        sized = {"Content-Length": str(len(body))} if body and name != "Transfer-Encoding" else {}
        headers = {"Host": "x", "Connection": "close"} | own | sized | {name: value}
        lines = [f"{method} {path} HTTP/1.1", *(f"{each}: {text}" for each, text in headers.items())]
        yield "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@pytest.mark.parametrize("name", HEADERS)
def test_no_header_makes_a_500(shop: Shop, gateway: Watched, name: str) -> None:
    invoice_id = shop.create()["invoice_id"]
    sent = [each for value in VALUES for each in requests_with(shop, invoice_id, name, value)]

    async def status(request: bytes, turns: asyncio.Semaphore) -> int:
        async with turns:
            stranger = await Stranger.connected(gateway)
            stranger.send(request)
            # A body that is announced and does not come is waited for; its answer is another test's.
            found = await stranger.status(2 if name in ("Content-Length", "Transfer-Encoding") else 20)
            stranger.close()
            return found

    async def story() -> list[int]:
        turns = asyncio.Semaphore(AT_A_TIME)
        return await asyncio.gather(*(status(each, turns) for each in sent))

    wrong = {
        (request[:60], found)
        for request, found in zip(sent, asyncio.run(story()), strict=True)
        if not 200 <= found < 500 and found != 501 and not (found == -1 and name == "Content-Length")
    }
    assert not wrong
    assert gateway.counted("fiatgate_unexpected_errors_total") == 0


def test_a_type_of_many_parentheses_is_no_json(shop: Shop, gateway: Watched) -> None:
    answer = requests.post(
        f"{gateway.url}/api/v1/create-invoice",
        data=json.dumps(shop.body()),
        headers={"X-Api-Key": shop.api_key, "Content-Type": "application/json" + "(" * LONG},
        timeout=HTTP_SECONDS,
    )
    assert (answer.status_code, code_of(answer)) == (400, "VALIDATION_ERROR")
