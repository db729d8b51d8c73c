"""Streams of open pages: what changed while one began, and how many there may be."""

import asyncio
from contextlib import AsyncExitStack, ExitStack, aclosing
from typing import Any

import pytest
import requests

from kit.events.hints import Hints
from kit.web.live import STREAMS_PER_ITEM, STREAMS_PER_NETWORK, Live
from kit.web.walls.buckets import Buckets
from tests.gateway.desk import HTTP_SECONDS, Shop
from tests.gateway.strangers import Watched

pytestmark = pytest.mark.anyio


def a_worker() -> Live:
    """NATS is away: nothing rings."""
    return Live(Hints("nats://127.0.0.1:1", name="test"), item="payment")


def a_stream(live: Live, item: str = "payment", *, changes: bool = False) -> Any:
    async def check() -> bool:
        return changes

    return live.stream(item, "net", subject="hint", has_changed=False, check=check, stopping=asyncio.Event())


def test_what_changed_while_a_stream_began_is_found_by_looking_once_more() -> None:
    """NATS doesn't know of the listener yet, and the hint has gone by."""

    async def events() -> list[str | None]:
        async with aclosing(a_stream(a_worker(), changes=True)) as stream:
            return [event.event if event else None for event in [await anext(stream) for _ in range(3)]]

    assert asyncio.run(events()) == [None, None, "changed"]


def test_a_page_whose_connection_is_cut_leaves_no_task_behind() -> None:
    async def story() -> None:
        waits = asyncio.Event()

        async def follow() -> None:
            async for _ in a_stream(a_worker()):
                waits.set()

        following = asyncio.create_task(follow())
        await waits.wait()
        following.cancel()  # as the server does with the request
        async with asyncio.timeout(10):
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    asyncio.run(story())


def test_streams_have_a_bound(shop: Shop, lenient: Watched) -> None:
    url = f"{lenient.url}/pay/{shop.create()['invoice_id']}/events"
    with ExitStack() as opened:
        streams = [
            opened.enter_context(requests.get(url, stream=True, timeout=HTTP_SECONDS))
            for _ in range(STREAMS_PER_ITEM + 1)
        ]
        assert [stream.status_code for stream in streams] == [200] * STREAMS_PER_ITEM + [204]


async def test_one_network_takes_the_streams_of_no_other() -> None:
    live = a_worker()
    async with AsyncExitStack() as streams:
        for number in range(STREAMS_PER_NETWORK):
            await anext(await streams.enter_async_context(aclosing(a_stream(live, f"payment {number}"))))
        assert not live.has_room_for("another payment", "net")
        assert live.has_room_for("another payment", "other")
    assert live.has_room_for("another payment", "net")


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
