"""The kinds of calls: none uses up what another one needs, and no merchant what others need of one kind."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg2
import pytest
from google.protobuf.message_factory import GetMessageClass

from deploy.local.waiting import wait_until
from fiatgate.bank.v1 import feed_pb2
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2, simulation_pb2
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2, withdrawals_pb2
from gateway.walls.calls import KINDS, calls_by_method
from kit.rpc import deadline
from kit.web.exchange import REQUEST_SECONDS
from kit.web.walls.places import Bound, NoPlace, Places
from tests.gateway.desk import Desk, Shop
from tests.gateway.process import ROOT
from tests.gateway.strangers import Stranger, Watched, head
from tests.support.stack import Stack

pytestmark = pytest.mark.anyio

NONE_YET = 404  # how a merchant without withdrawals is answered
MONEY = (corrections_pb2, refunds_pb2, withdrawals_pb2)
LISTS = 16  # of one merchant at once: two run and six wait


@contextmanager
def lists_hang(stack: Stack) -> Iterator[None]:
    """Lists of invoices wait inside the block; those of withdrawals do not."""
    with closing(psycopg2.connect(stack.superuser_url("invoices"))) as connection, connection:
        connection.cursor().execute("LOCK TABLE invoices IN ACCESS EXCLUSIVE MODE")
        yield


async def test_a_merchant_whose_lists_hang_leaves_places_to_others(
    shop: Shop, desk: Desk, currency: str, stack: Stack, lenient: Watched
) -> None:
    other = desk.shop(currency)
    hanging = head("GET", "/api/v1/invoices", X_Api_Key=shop.api_key)
    quick = head("GET", "/api/v1/withdrawals", X_Api_Key=other.api_key)

    opened: list[Stranger] = []

    async def asked(request: bytes) -> Stranger:
        client = await Stranger.connected(lenient)
        opened.append(client)
        client.send(request)
        return client

    def turned_away(wall: str, **labels: str) -> float:
        return lenient.counted("fiatgate_turned_away_total", wall=wall, **labels)

    assert await (await asked(quick)).status() == NONE_YET
    shares, calls = turned_away("shares", kind="lists"), turned_away("calls")
    with lists_hang(stack):
        clients = [await asked(hanging) for _ in range(LISTS)]
        await asyncio.to_thread(
            wait_until,
            lambda: turned_away("shares", kind="lists") >= shares + 8,
            "the calls beyond the merchant's share to be refused",
            timeout_seconds=15,
        )
        assert await (await asked(quick)).status() == NONE_YET
    assert turned_away("calls") == calls
    assert 429 in [await client.status() for client in clients]
    for client in opened:
        client.close()


# -- places by themselves


class Busy:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._end = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.order: list[str] = []  # the owners, as they got their places

    async def begin(self, owner: str) -> asyncio.Task[None]:
        """A call, after it has got its place or begun to wait for it."""

        async def call() -> None:
            async with self._places.place(owner):
                self.order.append(owner)
                await self._end.wait()

        task = asyncio.create_task(call())
        self._tasks.append(task)
        await asyncio.sleep(0)
        return task

    def let_go(self) -> None:
        """The calls end as soon as their tasks run."""
        self._end.set()

    async def end(self) -> None:
        self.let_go()
        await asyncio.gather(*self._tasks, return_exceptions=True)


LONG_SECONDS = 60  # nothing waits for so long: what is refused is refused at once


def few(*, of_one: Bound | None = None, seconds: float = LONG_SECONDS) -> Places:
    return Places(Bound(running=2, waiting=3), of_one=of_one, seconds=seconds)


async def test_where_all_places_are_taken_few_wait_and_the_rest_is_refused() -> None:
    busy = Busy(few())
    for _ in range(5):
        await busy.begin("one")
    refused = await busy.begin("one")
    with pytest.raises(NoPlace) as full:
        await refused
    assert not full.value.of_one
    assert len(busy.order) == 2
    await busy.end()
    assert len(busy.order) == 5


async def test_a_call_that_gets_no_place_in_time_is_refused_and_forgotten() -> None:
    places = few(seconds=0.01)
    busy = Busy(places)
    for _ in range(2):
        await busy.begin("one")
    late = await busy.begin("other")
    with pytest.raises(NoPlace):
        await late
    assert len(places) == 1
    await busy.end()
    assert not len(places)
    async with places.place("one"):
        pass


async def test_a_call_waits_only_while_enough_of_its_requests_time_is_left_to_do_it() -> None:
    """It was sent all the same, and its answer came to nobody."""
    places = Places(Bound(running=1, waiting=9), seconds=LONG_SECONDS, kept_seconds=LONG_SECONDS)
    busy = Busy(places)
    with deadline.within(LONG_SECONDS - 1):
        await busy.begin("one")  # a free place needs no wait
        late = await busy.begin("one")
    with pytest.raises(NoPlace):
        await late
    patient = await busy.begin("one")  # without a deadline
    await busy.end()
    await patient
    assert len(busy.order) == 2


async def test_an_owner_has_a_share_and_leaves_the_rest_to_others() -> None:
    busy = Busy(few(of_one=Bound(running=1, waiting=1)))
    for _ in range(2):
        await busy.begin("one")
    refused = await busy.begin("one")
    with pytest.raises(NoPlace) as full:
        await refused
    assert full.value.of_one
    await busy.begin("other")
    assert busy.order == ["one", "other"]
    await busy.end()
    assert busy.order == ["one", "other", "one"]


async def test_owners_take_turns() -> None:
    busy = Busy(Places(Bound(running=1, waiting=10), seconds=LONG_SECONDS))
    for owner in ("one", "one", "one", "one", "other"):
        await busy.begin(owner)
    await busy.end()
    assert busy.order == ["one", "one", "other", "one", "one"]


async def test_a_caller_that_leaves_while_it_waits_takes_no_place() -> None:
    places = Places(Bound(running=1, waiting=10), seconds=LONG_SECONDS)
    busy = Busy(places)
    await busy.begin("one")
    gone = await busy.begin("gone")
    gone.cancel()
    await busy.begin("other")
    await busy.end()
    assert busy.order == ["one", "other"]
    assert not len(places)


async def test_a_call_that_stops_waiting_in_the_moment_in_which_another_one_ends_keeps_no_place() -> None:
    """Its task had not run since, so it was given the place: the worker lost a place for good each time."""
    places = Places(Bound(running=1, waiting=10), seconds=LONG_SECONDS)
    busy = Busy(places)
    await busy.begin("one")
    gone = await busy.begin("gone")
    await busy.begin("other")
    busy.let_go()
    gone.cancel()  # before the task of the first call has run
    await busy.end()
    assert busy.order == ["one", "other"]
    assert not len(places)
    async with places.place("new"):
        pass


async def test_the_owner_with_the_most_waiting_calls_makes_room_for_another() -> None:
    busy = Busy(few())
    greedy = [await busy.begin("greedy") for _ in range(5)]
    await busy.begin("other")
    with pytest.raises(NoPlace) as full:
        await greedy[-1]
    assert full.value.of_one
    await busy.begin("third")
    refused = await busy.begin("fourth")
    with pytest.raises(NoPlace):  # each has one now
        await refused
    await busy.end()
    assert busy.order == ["greedy", "greedy", "greedy", "other", "third"]


def test_every_request_of_a_kind_with_a_share_says_whose_it_is() -> None:
    shared = {method for kind in KINDS if kind.share is not None for method in kind.methods}
    requests = {
        f"{service.name}/{method.name}": GetMessageClass(method.input_type)
        for file in (*MONEY, catalog_pb2, invoices_pb2, webhooks_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert shared
    for kind in KINDS:
        if kind.share is not None:
            assert all(kind.owner(requests[method]()) == "" for method in kind.methods)


# -- the kinds


def test_no_two_kinds_share_their_places() -> None:
    methods = [method for kind in KINDS for method in kind.methods]
    assert len(methods) == len(set(methods))
    calls = calls_by_method()
    apart = ("MerchantsService/Authenticate", "InvoicesService/CreateInvoice", "CheckoutService/GetCheckout")
    assert len({id(calls[method]) for method in apart}) == 3


def test_a_shop_with_64_connections_waits_for_its_currencies_as_long_as_its_requests_may_take() -> None:
    """After two seconds it was refused with 429, on a busy machine."""
    (offers,) = (kind for kind in KINDS if kind.name == "offers")
    assert offers.share is not None
    assert offers.share.running + offers.share.waiting >= 64
    assert REQUEST_SECONDS - 1 <= offers.seconds < REQUEST_SECONDS


def test_every_call_of_a_kind_is_one_that_a_service_answers() -> None:
    known = {
        f"{service.name}/{method.name}"
        for file in (*MONEY, catalog_pb2, feed_pb2, invoices_pb2, merchants_pb2, simulation_pb2, webhooks_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert {method for kind in KINDS for method in kind.methods} <= known


def test_every_call_of_the_gateway_is_of_a_kind() -> None:
    """One that is of none would be answered with a 500."""
    source = "".join(path.read_text() for path in (ROOT / "gateway").rglob("*.py"))
    called = set(re.findall(r"(?:self\._|deps\.)[a-z]+\.([A-Z][A-Za-z]+)\b", source))
    assert called == {method.partition("/")[2] for kind in KINDS for method in kind.methods}
