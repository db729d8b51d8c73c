"""While catalog or merchants hang, invoices are created and marked paid as before; pages show what they last knew."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
import requests

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from kit.rpc.server import Options, RpcServer
from services.invoices import clients, rpc
from services.invoices.clients import CatalogClient, IdentityClient, Storefronts
from services.invoices.domain.creating import NewInvoice
from services.invoices.operations import checkout
from services.invoices.wiring import Deps
from tests.gateway.process import gateway_process
from tests.invoices.conftest import World
from tests.support.serving import TEST_MASTER_KEY, connected

START_SECONDS = 60
HTTP_SECONDS = 15
SHOPS = 8
PAGES_AT_A_TIME = 3
PURCHASES = 5  # fewer than one merchant's share of the accounts
# Longer than any test waits for what must not wait for the peer.
FOR_LONG_SECONDS = 60.0


@dataclass(frozen=True)
class Peer:
    """A service that invoices calls, as a process of its own."""

    address: str
    process: subprocess.Popen[bytes]

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Inside the block it neither answers nor hangs up."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def peer(service: str, database_url: Callable[[str], str], nats_url: str) -> Iterator[Peer]:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    own = {
        f"FIATGATE_{service.upper()}_DATABASE_URL": database_url(service),
        f"FIATGATE_{service.upper()}_ADDRESS": address,
        "FIATGATE_NATS_URL": nats_url,
        "FIATGATE_MASTER_KEYS": TEST_MASTER_KEY,
        "FIATGATE_DESK_URL": "http://localhost:8081",
        "FIATGATE_DASHBOARD_URL": "http://localhost:8082",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", f"services.{service}", "serve"],
        env=os.environ | own,
        stderr=subprocess.DEVNULL,
    )
    try:
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(START_SECONDS)
        yield Peer(address, process)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def catalog(module_world: World, database_url: Callable[[str], str], nats_url: str) -> Iterator[Peer]:
    with peer("catalog", database_url, nats_url) as started:
        yield started


@pytest.fixture(scope="module")
def merchants(module_world: World, database_url: Callable[[str], str], nats_url: str) -> Iterator[Peer]:
    with peer("identity", database_url, nats_url) as started:
        yield started


def calling(world: World, *, catalog: Peer | None = None, merchants: Peer | None = None) -> World:
    """The same world, where invoices asks these processes."""
    settings = world.deps.settings
    catalog_client = CatalogClient(catalog.address if catalog else settings.catalog_address)
    identity_client = IdentityClient(merchants.address if merchants else settings.identity_address)
    catalog_client.catalog()
    storefronts = Storefronts(identity_client, catalog_client)
    deps = replace(world.deps, catalog=catalog_client, identity=identity_client, storefronts=storefronts)
    return replace(world, deps=deps)


def shops(world: World) -> list[merchants_pb2.Merchant]:
    """New merchants: nothing is remembered of them yet."""
    return [
        world.merchants.CreateMerchant(
            merchants_pb2.CreateMerchantRequest(
                name=f"Shop {number}",
                owner_email=f"{new_id()}@example.com",
                category_code="shops",
                callback_url="https://shop.example/hook",
                success_url="https://shop.example/thanks",
                fail_url="https://shop.example/sorry",
                active=True,
            )
        ).merchant
        for number in range(SHOPS)
    ]


class Service:
    """Invoices as a server, and stubs that call it."""

    def __init__(self, server: RpcServer, address: str, channel: grpc.Channel) -> None:
        self._server = server
        self.address = address
        self.invoices = pb_grpc.InvoicesServiceStub(channel)
        self.checkout = pb_grpc.CheckoutServiceStub(channel)

    @property
    def working(self) -> int:
        """Calls of any kind in work."""
        return sum(use.working for use in self._server.slots_use().values())


@contextmanager
def served(deps: Deps) -> Iterator[Service]:
    server = RpcServer(Options(service="invoices", slots=rpc.SLOTS))
    rpc.add_to(server, deps)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        with connected(address) as channel:
            yield Service(server, address, channel)
    finally:
        server.stop(1).wait(5)


@contextmanager
def pages_wait(service: Service, invoice_ids: list[str]) -> Iterator[list[Future[pb.GetCheckoutResponse]]]:
    """Inside the block as many pages as may be in work wait for the peer that hangs, and more wait for a thread."""

    def look(invoice_id: str) -> pb.GetCheckoutResponse:
        return service.checkout.GetCheckout(
            pb.GetCheckoutRequest(invoice_id=invoice_id), timeout=FOR_LONG_SECONDS
        )

    with ThreadPoolExecutor(len(invoice_ids)) as threads:
        looks = [threads.submit(look, each) for each in invoice_ids]
        wait_until(lambda: service.working >= PAGES_AT_A_TIME, "pages to wait", timeout_seconds=15)
        yield looks


def buy(world: World, service: Service, deals: list[tuple[str, str]]) -> None:
    """Creates an invoice and marks a deal paid, some times each. Raises Refused when one waits for long."""
    for invoice_id, deal_id in deals:
        create(world, service)
        service.checkout.MarkPaid(pb.MarkPaidRequest(invoice_id=invoice_id, deal_id=deal_id))


def create(world: World, service: Service) -> None:
    id = str(new_id())
    service.invoices.CreateInvoice(
        pb.CreateInvoiceRequest(
            merchant=world.merchant,
            key_id=world.key_id,
            amount="100.00",
            currency_code="EUR",
            customer_id=id,
            external_id=id,
        )
    )


def deals_of(world: World) -> list[tuple[str, str]]:
    deals = [world.with_deal() for _ in range(PURCHASES)]
    return [(str(deal.invoice_id), str(deal.id)) for deal in deals]


@pytest.mark.parametrize("name", ["catalog", "merchants"])
def test_creating_and_marking_paid_go_on_while_a_peer_hangs_and_pages_are_looked_at(
    world: World, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(clients, "PAGE_SECONDS", FOR_LONG_SECONDS)
    peer: Peer = request.getfixturevalue(name)
    world = calling(world, **{name: peer})
    invoice_ids = [str(world.create(merchant=shop).id) for shop in shops(world)]
    deals = deals_of(world)
    with served(world.deps) as service, ExitStack() as until_bought:
        until_bought.enter_context(peer.hanging())
        with pages_wait(service, invoice_ids) as looks:
            buy(world, service, deals)
            assert not any(each.done() for each in looks), "the pages no longer waited"
            until_bought.close()


def test_i_have_paid_reaches_invoices_while_catalog_hangs_and_pages_are_looked_at(
    world: World, catalog: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a gateway that has not met the payments before, so it checks first that they exist."""
    monkeypatch.setattr(clients, "PAGE_SECONDS", FOR_LONG_SECONDS)
    world = calling(world, catalog=catalog)
    invoice_ids = [str(world.create(merchant=shop).id) for shop in shops(world)]
    deals = deals_of(world)
    with (
        served(world.deps) as service,
        gateway_process({"invoices": service.address}, tmp_path / "gateway.log") as url,
        ExitStack() as until_paid,
    ):
        until_paid.enter_context(catalog.hanging())
        with pages_wait(service, invoice_ids) as looks:
            statuses = [say_paid(url, *each) for each in [*deals, (str(new_id()), str(new_id()))]]
            assert statuses == [303] * len(deals) + [404]
            assert not any(each.done() for each in looks), "the pages no longer waited"
            until_paid.close()


def say_paid(url: str, invoice_id: str, deal_id: str) -> int:
    """Returns the status of "I have paid"."""
    form = {"deal_id": deal_id}
    return requests.post(
        f"{url}/pay/{invoice_id}/paid", data=form, allow_redirects=False, timeout=HTTP_SECONDS
    ).status_code


@pytest.mark.parametrize("name", ["catalog", "merchants"])
def test_a_page_shows_what_was_last_known_while_a_peer_hangs(
    world: World, request: pytest.FixtureRequest, name: str
) -> None:
    peer: Peer = request.getfixturevalue(name)
    world = calling(world, **{name: peer})
    invoice_id = str(world.create().id)
    before = checkout.get_checkout(world.deps, invoice_id=invoice_id)
    assert before.offers
    with peer.hanging():
        for _ in range(3):
            world.deps.storefronts.close_all()
            page = checkout.get_checkout(world.deps, invoice_id=invoice_id)
            assert page.merchant.name == world.merchant.name
            assert [each.amount_fiat for each in page.offers] == [each.amount_fiat for each in before.offers]
            assert page.offers_refused is None


def test_what_is_known_is_not_shown_for_ever(
    world: World, catalog: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "STOREFRONT_MAX_AGE_SECONDS", 0.0)
    world = calling(world, catalog=catalog)
    invoice_id = str(world.create().id)
    assert checkout.get_checkout(world.deps, invoice_id=invoice_id).offers
    with catalog.hanging():
        world.deps.storefronts.close_all()
        page = checkout.get_checkout(world.deps, invoice_id=invoice_id)
        assert (page.offers, page.offers_refused) == ((), "DB_UNAVAILABLE")


def test_while_catalog_hangs_for_long_one_call_waits_for_it_and_the_others_are_refused_at_once(
    world: World, catalog: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, ThreadPoolExecutor(8) as threads:
        patched.setattr(clients, "CHOICE_SECONDS", FOR_LONG_SECONDS)
        world = calling(world, catalog=catalog)
        patched.setattr(clients, "CATALOG_MAX_AGE_SECONDS", 0.0)
        with catalog.hanging():
            asked = [threads.submit(world.create) for _ in range(40)]
            # The one that waits is refused too when its connection ends.
            wait_until(lambda: _ended(asked) >= 39, "all calls but one to be refused", timeout_seconds=15)
        refusals = [each.exception() for each in asked]
    assert all(isinstance(each, Refused) and each.reason == "DB_UNAVAILABLE" for each in refusals)
    wait_until(lambda: _creates(world), "catalog to be asked again", timeout_seconds=15)


def _ended(calls: list[Future[NewInvoice]]) -> int:
    return sum(each.done() for each in calls)


def _creates(world: World) -> bool:
    try:
        return world.create() is not None
    except Refused:
        return False
