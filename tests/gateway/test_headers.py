"""Headers that no client of ours would send: each is answered, and never with a 500."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.gateway.desk import Shop
from tests.gateway.strangers import Stranger, Watched

pytestmark = pytest.mark.anyio

AT_A_TIME = 50

HEADERS = (
    "Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Connection", "Content-Encoding",
    "Content-Length", "Content-Type", "Cookie", "Date", "Expect", "Forwarded", "If-Match",
    "If-Modified-Since", "If-None-Match", "If-Range", "Host", "Origin", "Range", "Referer",
    "Sec-Fetch-Site", "Traceparent", "Transfer-Encoding", "Upgrade", "X-Api-Key", "X-Forwarded-For",
    "X-Forwarded-Host", "X-Forwarded-Proto",
)  # fmt: skip
LONG = 2000
VALUES = (
    "", "application/json" + "(" * LONG, "(" * LONG, "multipart/form-data; boundary=" + '"' * LONG,
    'a="' + "\\" * LONG, ";" * LONG, "a=b;" * (LONG // 4), "application/json; charset=" + "x" * LONG,
    'application/json; charset*=utf-8\'\'%FF%FE; charset*0="a"; charset*1="b"',
    "application/x-www-form-urlencoded; " + "a=;" * 500, "," * LONG, "en;q=" + "9" * LONG,
    "en;q=1e999, *;q=NaN", "9" * 5000, "-1", "bytes=0-" + ",0-" * 600, 'W/"' + '"' * LONG,
    "for=" + '"[' * 500, "fiatgate_language=" + "\\377" * 400, 'a="\\"; fiatgate_language=%00; $Version=1',
    "\xff\xfe\xfd", "\t \t", "00-" + "f" * 32 + "-" + "g" * 16 + "-01", "Mon, 99 Abc 99999 99:99:99 GMT",
    "=?utf-8?q?" + "=00" * 500 + "?=",
)  # fmt: skip


def requests_with(shop: Shop, invoice_id: str, name: str, value: str) -> Iterator[bytes]:
    """Two kinds in turn, with that header in place of its own: in the end each header has met each kind."""
    form, order = b"deal_id=x", json.dumps(shop.body()).encode()
    key = {"X-Api-Key": shop.api_key}
    kinds: list[tuple[str, str, dict[str, str], bytes]] = [
        ("GET", f"/pay/{invoice_id}", {}, b""),
        ("POST", f"/pay/{invoice_id}/paid", {"Content-Type": "application/x-www-form-urlencoded"}, form),
        ("GET", "/api/v1/currencies", key, b""),
        ("POST", "/api/v1/create-invoice", {**key, "Content-Type": "application/json"}, order),
        ("GET", "/docs", {}, b""),
    ]
    turn = VALUES.index(value)
    for method, path, own, body in (kinds[turn % 5], kinds[(turn + 2) % 5]):
        sized = {"Content-Length": str(len(body))} if body and name != "Transfer-Encoding" else {}
        headers = {"Host": "x", "Connection": "close"} | own | sized | {name: value}
        lines = [f"{method} {path} HTTP/1.1", *(f"{each}: {text}" for each, text in headers.items())]
        yield "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@pytest.mark.parametrize("name", HEADERS)
async def test_no_header_makes_a_500(shop: Shop, lenient: Watched, name: str) -> None:
    invoice_id = shop.create()["invoice_id"]
    sent = [each for value in VALUES for each in requests_with(shop, invoice_id, name, value)]

    turns = asyncio.Semaphore(AT_A_TIME)

    async def status(request: bytes) -> int:
        async with turns:
            stranger = await Stranger.connected(lenient)
            stranger.send(request)
            # A body that is announced and does not come is waited for; its answer is another test's.
            found = await stranger.status(2 if name in ("Content-Length", "Transfer-Encoding") else 20)
            stranger.close()
            return found

    wrong = {
        (request[:60], found)
        for request, found in zip(sent, await asyncio.gather(*map(status, sent)), strict=True)
        if not 200 <= found < 500 and found != 501 and not (found == -1 and name == "Content-Length")
    }
    assert not wrong
    assert lenient.counted("fiatgate_unexpected_errors_total") == 0
