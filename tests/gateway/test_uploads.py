"""Bodies: none is held for a request that is refused, and those that are held are few, whoever sends them."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
import requests

from deploy.local.waiting import wait_until
from gateway.walls.uploads import FORMS_MOST_PER_PAYMENT, Uploads
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from kit.web import bodies
from kit.web.bodies import ArrivingBody
from kit.web.walls.uploads import Pool
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.strangers import Stranger, Watched, head, networks
from tests.support.pictures import PNG

pytestmark = pytest.mark.anyio

PICTURE_BYTES = 5 * 2**20
MIB = 2**20
FORM = "application/x-www-form-urlencoded"
KINDS_OF_PICTURES = ("pictures", "pictures of one client", "pictures of one payment")
MULTIPART = "multipart/form-data; boundary=x"


@pytest.fixture(scope="module")
def gateway(lenient: Watched) -> Watched:
    return lenient


def upload(path: str) -> bytes:
    """The head of a picture that has 5 MiB."""
    return head("POST", path, X_Api_Key="fg_wrong", Content_Type=MULTIPART, Content_Length=PICTURE_BYTES)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api/v1/create-invoice", 403),
        ("POST", "/pay/x/late", 404),
        ("POST", "/pay/{new_id}/late", 404),
        ("POST", "/pay/x/nowhere", 404),
        ("DELETE", "/pay/x/late", 405),
        ("GET", "/pay/x/late", 404),
    ],
)
async def test_a_body_that_nothing_takes_is_not_waited_for(
    gateway: Watched, method: str, path: str, status: int
) -> None:
    request = upload(path.format(new_id=new_id())).replace(b"POST", method.encode(), 1)
    if path.endswith(("nowhere", "create-invoice")):  # the announced length alone would be too much
        request = request.replace(str(PICTURE_BYTES).encode(), b"8000")

    stranger = await sends(gateway, "127.0.0.1", request + bytes(1000))
    assert await stranger.status(bodies.BODY_SECONDS / 2) == status
    stranger.close()


# -- bodies that something takes


@pytest.fixture(scope="module")
def late(desk: Desk, shop: Shop, method: str) -> Sequence[str]:
    """Where customers of nine payments may report late money."""
    invoice_ids = [shop.create()["invoice_id"] for _ in range(9)]
    for invoice_id in invoice_ids:
        desk.choose(invoice_id, method)
        desk.cancel(invoice_id)
    return [f"/pay/{invoice_id}/late" for invoice_id in invoice_ids]


async def until_under_way(gateway: Watched, kind: str, size: int) -> None:
    """Waits until so many bytes are reserved."""
    await asyncio.to_thread(
        wait_until,
        lambda: gateway.counted("fiatgate_upload_bytes", kind=kind) == size,
        f"{size} bytes of {kind} to be under way",
        timeout_seconds=8,
    )


async def sends(gateway: Watched, source: str, request: bytes) -> Stranger:
    stranger = await Stranger.connected(gateway, source=source)
    stranger.send(request)
    return stranger


async def test_pictures_are_few_per_payment_and_network_and_in_all(
    shop: Shop, gateway: Watched, late: Sequence[str]
) -> None:
    """16 MiB of a network and 32 in all: three pictures of 5 MiB, and six."""
    one, other, third = networks(3)
    refused = {kind: gateway.counted("fiatgate_turned_away_total", kind=kind) for kind in KINDS_OF_PICTURES}

    def merchant_is_served() -> bool:
        headers = {"X-Api-Key": shop.api_key}
        answer = requests.post(
            f"{gateway.url}/api/v1/create-invoice", json=shop.body(), headers=headers, timeout=HTTP_SECONDS
        )
        return answer.status_code == 201

    def picture_is_taken() -> bool:
        files: dict[str, Any] = {"note": (None, "late"), "picture": ("p.png", PNG, "image/png")}
        answer = requests.post(
            f"{gateway.url}{late[0]}", files=files, timeout=HTTP_SECONDS, allow_redirects=False
        )
        return answer.status_code == 303

    sources = [one] * 3 + [other] * 3
    held = [
        await sends(gateway, source, upload(path) + bytes(MIB))
        for source, path in zip(sources, late[:6], strict=True)
    ]
    await until_under_way(gateway, "pictures", 6 * PICTURE_BYTES)
    more = [(one, late[6]), (third, late[7]), (third, late[0])]
    for (source, path), status in zip(more, (429, 503, 429), strict=True):
        stranger = await sends(gateway, source, upload(path) + bytes(MIB))
        assert await stranger.status() == status
        held.append(stranger)
    for kind, before in refused.items():
        assert gateway.counted("fiatgate_turned_away_total", kind=kind) == before + 1
    assert await asyncio.to_thread(merchant_is_served)
    held[0].close()
    await until_under_way(gateway, "pictures", 5 * PICTURE_BYTES)
    assert await asyncio.to_thread(picture_is_taken)
    for stranger in held:
        stranger.close()


async def test_a_picture_for_a_payment_that_has_no_use_for_it_is_not_waited_for(
    desk: Desk, shop: Shop, method: str, gateway: Watched
) -> None:
    """Such uploads held the room that pictures of customers need."""
    invoice_id = shop.create()["invoice_id"]
    desk.choose(invoice_id, method)
    for step in ("late", "appeal"):
        stranger = await sends(gateway, "127.0.0.1", upload(f"/pay/{invoice_id}/{step}"))
        assert await stranger.status(bodies.BODY_SECONDS / 2) == 303
        stranger.close()


async def test_forms_that_never_end_leave_room_for_the_forms_of_others(shop: Shop, gateway: Watched) -> None:
    """16 clients of each of eight networks, with the link of one payment: they took 64 KiB each, and that was all."""
    flooded, other = (shop.create()["invoice_id"] for _ in range(2))
    forms = (
        head("POST", f"/pay/{flooded}/paid", Content_Type=FORM, Transfer_Encoding="chunked") + b"1\r\na\r\n"
    )
    cancel = head("POST", f"/pay/{other}/cancel", Content_Type=FORM, Content_Length=3) + b"a=b"
    stalled = await asyncio.gather(
        *(sends(gateway, source, forms) for source in networks(8) for _ in range(16))
    )
    await until_under_way(gateway, "forms", FORMS_MOST_PER_PAYMENT * bodies.FIRST_BYTES)
    customer = await sends(gateway, "127.0.0.1", cancel)
    assert await customer.status() == 303
    for stranger in [customer, *stalled]:
        stranger.close()


async def test_sixty_four_orders_of_one_merchant_may_come_in_chunks_at_a_time(
    shop: Shop, gateway: Watched
) -> None:
    """Each was counted with the 64 KiB that it might have had: the 33rd was refused."""
    request = head(
        "POST",
        "/api/v1/create-invoice",
        X_Api_Key=shop.api_key,
        Content_Type="application/json",
        Transfer_Encoding="chunked",
    )

    orders = await asyncio.gather(*(sends(gateway, "127.0.0.1", request + b"1\r\n{\r\n") for _ in range(64)))
    await until_under_way(gateway, "orders", 64 * bodies.FIRST_BYTES)
    for order in orders:
        rest = json.dumps(shop.body()).encode()[1:]
        order.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))
    assert [await order.status() for order in orders] == [201] * 64
    for order in orders:
        order.close()


def test_what_is_given_back_can_be_reserved_again() -> None:
    pool = Pool("pictures", most=10, most_per_client=6)
    own = pool.reserve("a", 6)
    with pytest.raises(Refused, match="RATE_LIMITED"):
        pool.reserve("a", 1)
    other = pool.reserve("b", 4)
    with pytest.raises(Refused, match="DB_UNAVAILABLE"):
        pool.reserve("c", 1)
    own.release()
    other.release()
    pool.reserve("a", 6)


def test_a_reservation_grows_within_the_bounds_and_becomes_what_the_body_has() -> None:
    pool = Pool("orders", most=10, most_per_client=6)
    own = pool.reserve("a", 2)
    own.resize(6)
    with pytest.raises(Refused, match="RATE_LIMITED"):
        own.resize(7)
    own.resize(1)
    pool.reserve("a", 5)
    own.release()
    pool.reserve("a", 1)


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
    return await ArrivingBody(receive, headers, bounds=uploads.bounds("/pay/x/late")).read("127.0.0.1")


async def test_a_body_that_comes_slowly_and_steadily_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """For longer than BODY_SECONDS: each piece earns half a second, and takes a tenth."""
    monkeypatch.setattr(bodies, "BODY_SECONDS", 1)
    monkeypatch.setattr(bodies, "LEAST_BYTES_PER_SECOND", 1000)
    assert len(await body_of(b"a" * 500, 12, every_seconds=0.1)) == 6000


async def test_a_body_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(bodies, "LEAST_BYTES_PER_SECOND", 1000)
    with pytest.raises(Refused, match="did not arrive in time"):
        await body_of(b"a", 1000, every_seconds=0.05)
