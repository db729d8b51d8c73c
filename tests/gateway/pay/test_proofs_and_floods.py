"""Pictures, late money, streams and floods, over plain HTTP."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest
import requests

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.ids import new_id
from kit.events.hints import Hints
from kit.web.live import STREAMS_PER_ITEM, STREAMS_PER_NETWORK, Live
from kit.web.walls.buckets import Buckets
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.process import gateway_process
from tests.support.pictures import JPEG, PNG, WEBP
from tests.support.stack import Stack


def send(url: str, note: str, picture: bytes | None, name: str = "receipt.png") -> requests.Response:
    files: dict[str, Any] = {"note": (None, note)}
    if picture is not None:
        files["picture"] = (name, picture, "image/png")
    return requests.post(url, files=files, timeout=HTTP_SECONDS, allow_redirects=False)


def marked(desk: Desk, shop: Shop, method: str) -> tuple[str, str]:
    """The page and the deal of a payment that is said to be made."""
    invoice = shop.create()
    return invoice["payment_link"], desk.mark_paid(invoice["invoice_id"], method).deal_id


# -- pictures


@pytest.mark.parametrize(
    ("picture", "content_type"), [(PNG, "image/png"), (JPEG, "image/jpeg"), (WEBP, "image/webp")]
)
def test_an_appeals_picture_reaches_the_operator_only(
    desk: Desk, shop: Shop, method: str, picture: bytes, content_type: str
) -> None:
    page, deal_id = marked(desk, shop, method)
    assert send(f"{page}/appeal", "see here", picture, "../../etc/passwd.html").status_code == 303
    (proof,) = desk.deals.GetDeal(pb.GetDealRequest(deal_id=deal_id)).proofs
    assert (proof.kind, proof.content_type, proof.size) == (pb.PROOF_KIND_APPEAL, content_type, len(picture))
    kept = desk.deals.GetProof(pb.GetProofRequest(deal_id=deal_id, kind=pb.PROOF_KIND_APPEAL))
    assert kept.content == picture
    assert "passwd" not in requests.get(page, timeout=HTTP_SECONDS).text


def test_the_operator_saves_the_picture(
    desk: Desk, shop: Shop, stack: Stack, method: str, tmp_path: Path
) -> None:
    page, deal_id = marked(desk, shop, method)
    send(f"{page}/appeal", "", PNG)
    file = tmp_path / "picture.png"
    stack.cli("deals", "show", deal_id, "--save-picture", str(file))
    assert file.read_bytes() == PNG


@pytest.mark.parametrize(
    "picture",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        b"GIF89a",
        b"%PDF-1.7",
        PNG + bytes(5_242_880),
    ],
    ids=["svg", "gif", "pdf", "too large"],
)
def test_what_is_no_picture_is_refused_and_what_was_written_stays(
    desk: Desk, shop: Shop, method: str, picture: bytes
) -> None:
    page, deal_id = marked(desk, shop, method)
    response = send(f"{page}/appeal", "Paid at <noon>", picture)
    assert response.status_code == 422
    assert "must be JPEG, PNG or WebP" in response.text
    assert "Paid at &lt;noon&gt;</textarea>" in response.text
    assert not desk.deals.GetDeal(pb.GetDealRequest(deal_id=deal_id)).proofs


def test_no_other_page_takes_so_much(desk: Desk, shop: Shop, method: str) -> None:
    page, _ = marked(desk, shop, method)
    assert send(f"{page}/cancel", "", PNG + bytes(100_000)).status_code == 413
    assert send(f"{page}/appeal", "", bytes(6_000_000)).status_code == 413


# -- late money


def test_late_money_is_recorded_once_and_changes_nothing(
    desk: Desk, shop: Shop, stack: Stack, method: str
) -> None:
    invoice = shop.create()
    desk.choose(invoice["invoice_id"], method)
    desk.cancel(invoice["invoice_id"])
    before = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]
    for note in ("first", "second"):
        assert send(f"{invoice['payment_link']}/late", note, PNG).status_code == 303
    number = case_number(requests.get(invoice["payment_link"], timeout=HTTP_SECONDS).text)
    case = stack.cli("cases", "show", str(number))
    assert (case["note"], case["proof"]["size"]) == ("first", len(PNG))
    assert case["requisite"]["account"] == "4000002500003155"
    assert number in [each["number"] for each in stack.cli("cases", "list", "--open")]
    stack.cli("cases", "resolve", str(number), "--outcome", "<b>Sent back</b>", "--as", "eve@example.com")
    page = requests.get(invoice["payment_link"], timeout=HTTP_SECONDS).text
    assert "&lt;b&gt;Sent back&lt;/b&gt;" in page
    assert number not in [each["number"] for each in stack.cli("cases", "list", "--open")]
    assert shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"] == before


def case_number(html: str) -> int:
    found = re.search(r'class="number">(\d+)<', html)
    assert found
    return int(found[1])


@pytest.mark.parametrize("state", ["pending", "success", "before a method"])
def test_where_no_money_can_be_late_there_is_no_case(desk: Desk, shop: Shop, method: str, state: str) -> None:
    invoice = shop.create()
    if state == "success":
        desk.confirm(invoice["invoice_id"], method)
    elif state == "before a method":
        desk.cancel(invoice["invoice_id"])
    assert send(f"{invoice['payment_link']}/late", "give me money", None).status_code == 303
    page = requests.get(invoice["payment_link"], timeout=HTTP_SECONDS).text
    assert 'class="case"' not in page
    assert "I have already paid" not in page


# -- streams


def listen(page: str, state: str = "") -> requests.Response:
    return requests.get(f"{page}/events?state={state}", stream=True, timeout=HTTP_SECONDS)


def test_a_stream_rings_at_once_when_the_page_is_behind(shop: Shop) -> None:
    with listen(shop.create()["payment_link"], "pay of long ago") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert stream.headers["Cache-Control"] == "no-store"
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith(b"event")) == b"event: changed"


def test_what_changed_while_a_stream_began_is_found_by_looking_once_more() -> None:
    """Nothing rings here: NATS doesn't know of the listener yet, and the hint has gone by."""

    async def changed() -> bool:
        return True

    async def events() -> list[str | None]:
        live = Live(Hints("nats://127.0.0.1:1", name="test"), item="payment")
        stream = live.stream(
            "payment", "net", subject="hint", has_changed=False, check=changed, stopping=asyncio.Event()
        )
        async with aclosing(stream):
            return [event.event if event else None for event in [await anext(stream) for _ in range(3)]]

    assert asyncio.run(events()) == [None, None, "changed"]


def test_a_page_whose_connection_is_cut_leaves_no_task_behind() -> None:
    async def unchanged() -> bool:
        return False

    async def story() -> None:
        live = Live(Hints("nats://127.0.0.1:1", name="test"), item="payment")
        waits = asyncio.Event()
        stream = live.stream(
            "payment", "net", subject="hint", has_changed=False, check=unchanged, stopping=asyncio.Event()
        )

        async def follow() -> None:
            async for _ in stream:
                waits.set()

        following = asyncio.create_task(follow())
        await waits.wait()
        following.cancel()  # as the server does with the request
        async with asyncio.timeout(10):
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    asyncio.run(story())


def test_streams_have_a_bound(shop: Shop, stack: Stack, tmp_path: Path) -> None:
    invoice_id = shop.create()["invoice_id"]
    with gateway_process(stack.addresses, tmp_path / "gateway.log") as url:
        streams = [listen(f"{url}/pay/{invoice_id}") for _ in range(STREAMS_PER_ITEM)]
        assert listen(f"{url}/pay/{invoice_id}").status_code == 204
        for stream in streams:
            stream.close()


def test_one_network_takes_the_streams_of_no_other() -> None:
    async def unchanged() -> bool:
        return False

    async def story() -> None:
        live = Live(Hints("nats://127.0.0.1:1", name="test"), item="payment")
        async with AsyncExitStack() as streams:
            for number in range(STREAMS_PER_NETWORK):
                stream = live.stream(
                    f"payment {number}",
                    "net",
                    subject="hint",
                    has_changed=False,
                    check=unchanged,
                    stopping=asyncio.Event(),
                )
                await streams.enter_async_context(aclosing(stream))
                await anext(stream)
            assert not live.has_room_for("another payment", "net")
            assert live.has_room_for("another payment", "other")
        assert live.has_room_for("another payment", "net")

    asyncio.run(story())


def test_an_open_page_does_not_hold_up_a_stop(shop: Shop, stack: Stack, tmp_path: Path) -> None:
    invoice_id = shop.create()["invoice_id"]
    with gateway_process(
        stack.addresses, tmp_path / "gateway.log"
    ) as url:  # it waits for the stop, not for long
        stream = listen(f"{url}/pay/{invoice_id}")
        assert stream.status_code == 200
    stream.close()


# -- floods


def test_a_flood_on_one_payment_is_stopped_and_others_go_on(shop: Shop, stack: Stack, tmp_path: Path) -> None:
    flooded, other = shop.create()["invoice_id"], shop.create()["invoice_id"]
    settings = {"FIATGATE_PAGE_REQUESTS_PER_MINUTE": "10"}
    with gateway_process(stack.addresses, tmp_path / "gateway.log", **settings) as url:
        answers: list[Any] = [requests.get(f"{url}/pay/{flooded}", timeout=HTTP_SECONDS) for _ in range(12)]
        assert answers[9].status_code == 200
        assert answers[-1].status_code == 429
        assert answers[-1].headers["Retry-After"] == "6"
        assert "This page was loaded too many times" in answers[-1].text
        assert requests.post(f"{url}/pay/{flooded}/cancel", data={"a": "b"}, timeout=9).status_code == 429
        assert requests.get(f"{url}/pay/{other}", timeout=HTTP_SECONDS).status_code == 200


def test_a_bucket_fills_up_again() -> None:
    now = [1000.0]  # seconds
    buckets = Buckets(60, now_seconds=lambda: now[0])
    assert all(buckets.take("a") for _ in range(60))
    assert not buckets.take("a")
    assert buckets.take("b")
    now[0] += 1
    assert buckets.take("a")
    assert not buckets.take("a")
    buckets.give_back("a")
    assert buckets.take("a")


def test_no_limit_is_no_limit() -> None:
    buckets = Buckets(0)
    assert all(buckets.take("a") for _ in range(1000))


def test_an_unknown_payment_has_no_stream_and_no_code(stack: Stack) -> None:
    for step in ("events", "qr.svg", "late"):
        assert requests.get(f"{stack.url}/pay/{new_id()}/{step}", timeout=HTTP_SECONDS).status_code == 404
