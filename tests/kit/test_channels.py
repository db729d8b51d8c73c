"""Channels find a service whose name was gone: one that was never there yet, and one whose pods had all left."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from kit.rpc import client, errors, renewed
from kit.rpc.errors import Refused
from kit.rpc.server import RpcServer
from tests.rolling.endpoints import Endpoints

METHOD = "/test.Shop/Ask"
ASKED = 8  # gRPC by itself asks so often in half a minute


@pytest.fixture
def names() -> Iterator[Endpoints]:
    with Endpoints() as running, capture_logs():  # each call that fails is a line
        yield running


@pytest.fixture
def refuses() -> threading.Event:
    """While it's set the shop refuses as one does whose database is away."""
    return threading.Event()


@pytest.fixture
def port(refuses: threading.Event) -> Iterator[int]:
    """Of a shop that answers."""

    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        if refuses.is_set():
            raise errors.database_unavailable()
        return request

    server = RpcServer()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(answer)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Shop", {"Ask": handler})])
    found = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield found
    server.stop(0).wait(5)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewed, "SILENT_SECONDS", 0.2)


def answers(channel: grpc.Channel) -> bool:
    call: Callable[..., Any] = channel.unary_unary(METHOD)
    try:
        return bool(call(b"there?") == b"there?")
    except Refused:
        return False


@pytest.mark.usefixtures("_impatient")
def test_a_name_that_was_not_there_yet_is_asked_for_again_and_again(names: Endpoints, port: int) -> None:
    with client.channel(names.target("shop", port), name="shop") as channel:
        wait_until(
            lambda: answers(channel) or names.asked("shop") >= ASKED, "it to be asked for", timeout_seconds=20
        )
        names.add("shop", "127.0.0.1")
        wait_until(lambda: answers(channel), "the shop to be found", timeout_seconds=15)


@pytest.mark.usefixtures("_impatient")
def test_so_it_is_over_asyncio(names: Endpoints, port: int) -> None:
    async def ask(channel: grpc.aio.Channel) -> bool:
        call: Callable[..., Any] = channel.unary_unary(METHOD)
        try:
            return bool(await call(b"there?") == b"there?")
        except Refused:
            return False

    async def story() -> None:
        async with client.aio_channel(names.target("shop", port), name="shop") as channel:
            async with asyncio.timeout(20):
                while names.asked("shop") < ASKED:
                    assert not await ask(channel)
            names.add("shop", "127.0.0.1")
            async with asyncio.timeout(15):
                while not await ask(channel):
                    pass

    asyncio.run(story())


@pytest.mark.usefixtures("_impatient")
def test_a_service_that_answers_keeps_its_channel_whatever_it_says(
    names: Endpoints, port: int, refuses: threading.Event
) -> None:
    names.add("shop", "127.0.0.1")
    channel: Any = client.channel(names.target("shop", port), name="shop")
    with channel:
        assert answers(channel)
        used = channel._channel.current()
        refuses.set()
        refused = 0

        def many_times() -> bool:
            nonlocal refused
            refused += not answers(channel)
            return refused > 50

        wait_until(many_times, "refusals", timeout_seconds=10, every_seconds=0.01)
        assert channel._channel.current() is used
