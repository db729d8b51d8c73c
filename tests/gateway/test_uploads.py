"""Bodies: none is held for a request that is refused, and those that are held are few, whoever sends them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import requests

from gateway import bodies
from gateway.bodies import Incoming
from gateway.walls.uploads import Pool, Uploads
from kit.errors import Refused
from kit.ids import new_id
from tests.gateway.desk import HTTP_SECONDS, Shop
from tests.gateway.strangers import CLOSED, HANGS, Stranger, Watched, head, networks, watched_gateway
from tests.support.pictures import PNG
from tests.support.stack import Stack

PICTURE_BYTES = 5 * 2**20
MIB = 2**20
MULTIPART = "multipart/form-data; boundary=x"


def upload(path: str) -> bytes:
    """The head of a picture that has 5 MiB."""
    return head("POST", path, Content_Type=MULTIPART, Content_Length=PICTURE_BYTES)


async def stalled(gateway: Watched, count: int, request: bytes, sent: int) -> tuple[set[int], int]:
    """So many clients, each of a network of its own, send the head and so many bytes of the body, and then no more.

    Returns the statuses they are answered, and how many bytes the worker grew by while they were there.
    """
    warm = f"{gateway.url}/pay/{new_id()}"
    await asyncio.to_thread(requests.get, warm, timeout=HTTP_SECONDS)  # what the first page loads stays
    before = gateway.memory()
    strangers = [await Stranger.connected(gateway, source=source) for source in networks(count)]
    for stranger in strangers:
        stranger.send(request + bytes(sent))
    statuses = set(await asyncio.gather(*(stranger.status() for stranger in strangers)))
    grown = await asyncio.to_thread(gateway.memory) - before
    for stranger in strangers:
        stranger.close()
    return statuses, grown


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/pay/x/late", 404),
        ("POST", f"/pay/{new_id()}/late", 404),
        ("POST", "/pay/x/nowhere", 404),
        ("DELETE", "/pay/x/late", 405),
        ("GET", "/pay/x/late", 404),
    ],
)
def test_a_stalled_upload_that_nothing_takes_is_answered_and_costs_no_memory(
    stack: Stack, tmp_path: Path, method: str, path: str, status: int
) -> None:
    request = upload(path).replace(b"POST", method.encode(), 1)
    if path.endswith("nowhere"):  # elsewhere the announced length alone is too much
        request = request.replace(str(PICTURE_BYTES).encode(), b"60000")
    with watched_gateway(stack, tmp_path) as gateway:
        statuses, grown = asyncio.run(stalled(gateway, 200, request, sent=MIB if method != "GET" else 60_000))
    assert statuses <= {status, CLOSED}
    assert grown < 30 * MIB


def test_a_thousand_stalled_uploads_leave_memory_flat(stack: Stack, tmp_path: Path) -> None:
    with watched_gateway(stack, tmp_path) as gateway:
        statuses, grown = asyncio.run(stalled(gateway, 1000, upload("/pay/x/late"), sent=MIB))
    assert statuses <= {404, CLOSED}
    assert grown < 100 * MIB  # the thousand connections themselves are a third of it


def test_a_wrong_key_is_refused_before_its_body_has_come(stack: Stack, tmp_path: Path) -> None:
    request = head("POST", "/api/v1/create-invoice", X_Api_Key="fg_wrong", Content_Length=1000)

    async def asked(gateway: Watched) -> int:
        stranger = await Stranger.connected(gateway)
        stranger.send(request)
        status = await stranger.status(bodies.BODY_SECONDS / 2)
        stranger.close()
        return status

    with watched_gateway(stack, tmp_path) as gateway:
        assert asyncio.run(asked(gateway)) == 403


def test_uploads_for_a_payment_are_few_per_network_and_in_all(
    shop: Shop, stack: Stack, tmp_path: Path
) -> None:
    """16 MiB of a network and 32 in all: three pictures of 5 MiB, and six."""
    invoice_id = shop.create()["invoice_id"]
    path = f"/pay/{invoice_id}/late"

    async def story(gateway: Watched) -> None:
        async def sends(source: str, seconds: float) -> tuple[Stranger, int]:
            stranger = await Stranger.connected(gateway, source=source)
            stranger.send(upload(path) + bytes(MIB))
            return stranger, await stranger.status(seconds)

        one, other, third = networks(3)
        held = await asyncio.gather(*(sends(source, 2) for source in [one] * 3 + [other] * 3))
        assert [status for _, status in held] == [HANGS] * 6
        more = [await sends(source, 5) for source in (one, third)]
        assert [status for _, status in more] == [429, 503]
        assert gateway.counted("fiatgate_turned_away_total", kind="pictures of one client") == 1
        assert gateway.counted("fiatgate_turned_away_total", kind="pictures") == 1
        assert await asyncio.to_thread(merchant_is_served, gateway)
        held[0][0].close()
        assert await asyncio.to_thread(picture_is_taken, gateway)
        for stranger, _ in [*held, *more]:
            stranger.close()

    def merchant_is_served(gateway: Watched) -> bool:
        headers = {"X-Api-Key": shop.api_key}
        answer = requests.post(
            f"{gateway.url}/api/v1/create-invoice", json=shop.body(), headers=headers, timeout=HTTP_SECONDS
        )
        return answer.status_code == 201

    def picture_is_taken(gateway: Watched) -> bool:
        files: dict[str, Any] = {"note": (None, "late"), "picture": ("p.png", PNG, "image/png")}
        answer = requests.post(
            f"{gateway.url}{path}",
            files=files,
            timeout=HTTP_SECONDS,
            allow_redirects=False,
        )
        return answer.status_code == 303

    with watched_gateway(stack, tmp_path) as gateway:
        asyncio.run(story(gateway))


def test_what_is_given_back_can_be_reserved_again() -> None:
    pool = Pool("pictures", most=10, most_per_client=6)
    give_back = pool.reserve("a", 6)
    with pytest.raises(Refused, match="RATE_LIMITED"):
        pool.reserve("a", 1)
    other = pool.reserve("b", 4)
    with pytest.raises(Refused, match="DB_UNAVAILABLE"):
        pool.reserve("c", 1)
    give_back()
    other()
    pool.reserve("a", 6)


# -- how long a body may take


async def body_of(piece: bytes, count: int, every_seconds: float) -> bytes:
    """What is read of a body that comes in so many pieces."""
    left = count

    async def receive() -> dict[str, Any]:
        nonlocal left
        await asyncio.sleep(every_seconds)
        left -= 1
        return {"type": "http.request", "body": piece, "more_body": left > 0}

    headers = [(b"transfer-encoding", b"chunked")]
    uploads = Uploads(pictures_most=2**25, pictures_most_per_client=2**24)
    return await Incoming(receive, headers, path="/pay/x/late", uploads=uploads).read("127.0.0.1")


@pytest.fixture
def _shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(bodies, "LEAST_BYTES_PER_SECOND", 1000)


@pytest.mark.usefixtures("_shorter")
def test_a_body_that_comes_slowly_and_steadily_is_waited_for() -> None:
    assert len(asyncio.run(body_of(b"a" * 500, 8, every_seconds=0.1))) == 4000


@pytest.mark.usefixtures("_shorter")
def test_a_body_that_trickles_is_given_up() -> None:
    with pytest.raises(Refused, match="did not arrive in time"):
        asyncio.run(body_of(b"a", 100, every_seconds=0.05))
