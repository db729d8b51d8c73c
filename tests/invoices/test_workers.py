"""The loops over real NATS: what is finished is on the bus at once, and the catalog's copy follows its hints."""

from collections.abc import Iterator
from threading import Thread

import pytest

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.events.bus.connection import Bus
from kit.work.worker import Stop, run_all
from services.invoices import events, workers
from services.invoices.clients import CatalogClient
from services.invoices.domain.states import InvoiceStatus
from services.invoices.operations import checkout, reading
from tests.invoices.conftest import World
from tests.support.consumers import open_pull


@pytest.fixture(scope="module")
def bus_url(nats_url: str) -> str:
    return nats_url


@pytest.fixture(scope="module")
def running(module_world: World) -> Iterator[World]:
    deps, stop = module_world.deps, Stop()
    deps.bus.start()
    loops = [*workers.companions(deps), *workers.workers(deps)]
    thread = Thread(target=run_all, args=(loops, stop), kwargs={"grace_seconds": 10})
    thread.start()
    yield module_world
    stop.set()
    thread.join(20)
    deps.bus.close()


def test_a_finished_invoice_is_announced_once_it_is_committed(
    running: World, world: World, nats_url: str
) -> None:
    new = world.create()
    checkout.cancel_checkout(world.deps, invoice_id=str(new.id))
    listener = Bus(nats_url, name="listener")
    listener.start()
    assert listener.wait_ready(10) and running.deps.bus.wait_ready(10), "the stream's owner is connected too"
    pull = open_pull(listener, "test-listener", events.FINISHED)
    seen: list[pb.InvoiceFinished] = []

    def heard() -> bool:
        for message in pull.take(10):
            seen.append(pb.InvoiceFinished.FromString(message.payload))
            message.acknowledge()
        return any(fact.invoice_id == str(new.id) for fact in seen)

    wait_until(heard, "the announcement to arrive", timeout_seconds=15)
    listener.close()
    (fact,) = [fact for fact in seen if fact.invoice_id == str(new.id)]
    assert (fact.event_type, fact.reason) == ("invoice.canceled", "user_canceled")


def test_the_expiry_workers_end_what_is_due(running: World, world: World) -> None:
    waiting, deal = world.create(), world.with_deal()
    world.clock.advance(minutes=31)

    def both_expired() -> bool:
        refs = (waiting.id, deal.invoice_id)
        views = [
            reading.get_invoice(world.deps, merchant_id=world.merchant.merchant_id, invoice_ref=str(ref))
            for ref in refs
        ]
        return all(view.status == InvoiceStatus.EXPIRED for view in views)

    wait_until(both_expired, "both to expire", timeout_seconds=15)


def test_a_change_of_the_catalog_is_known_here_before_long(running: World, world: World) -> None:
    currency = catalog_pb2.Currency(
        code="CHF",
        name="Franc",
        symbol="Fr",
        decimals=2,
        min_amount="1",
        max_amount="5",
        markup="0",
        enabled=True,
    )
    assert "CHF" not in world.deps.catalog.catalog().currencies
    world.catalog.SetCurrency(catalog_pb2.SetCurrencyRequest(currency=currency))
    wait_until(
        lambda: "CHF" in world.deps.catalog.catalog().currencies,
        "the new currency to be known",
        timeout_seconds=15,
    )


def test_the_gauges_tell_what_waits(running: World, world: World) -> None:
    world.with_deal()
    gauges = {gauge.name: gauge.value for gauge in workers.gauges(world.deps) if gauge.label == ("", "")}
    assert gauges["deals_pending"] == 1
    assert set(gauges) == {
        "outbox_unpublished",
        "outbox_oldest_seconds",
        "deals_pending",
        "deals_awaiting_confirmation",
        "deals_in_appeal",
        "oldest_confirmation_seconds",
        "oldest_appeal_seconds",
        "cases_open",
        "invoices_set_aside",
        "methods_crowded",
        "daily_sums_behind_seconds",
        "approvals_pending",
        "approvals_oldest_seconds",
    }


def test_a_catalog_that_is_away_is_waited_out() -> None:
    copying, stop = CatalogClient(f"127.0.0.1:{free_ports(1)[0]}").reloading(), Stop()
    thread = Thread(target=copying.run, args=(stop,))
    thread.start()
    wait_until(lambda: copying.health().detail != "", "the first failure", timeout_seconds=15)
    stop.set()
    thread.join(10)
    assert copying.health().healthy
    assert copying.health().detail.startswith("Outage: catalog")
