"""kill -9 of each process in the middle of a purchase: its money and its webhook come out right all the same.

On a stack of their own: elsewhere somebody waits for webhooks to the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal

import pytest

from tests.e2e.market import Customer, Invoice, Operator, Shop, patiently, settled
from tests.support.receiver import Receiver
from tests.support.stack import Stack

# A claim that died with its process is free again after 2 x the timeout + the margin: 11 s in place of 60. webhooks is
# killed first, so that this time passes while the others are killed.
KILLED = ("webhooks", "merchants", "catalog", "invoices", "withdrawals", "gateway", "nats", "postgres")
SETTINGS = {
    "FIATGATE_WEBHOOK_TIMEOUT_SECONDS": "3",
    "FIATGATE_WEBHOOK_LEASE_MARGIN_SECONDS": "5",
    "FIATGATE_INVOICE_TTL_SECONDS": "25",
}


@dataclass
class Survivors:
    """The purchases that met a kill, by the process that was killed; each has a path of the receiver to itself."""

    receiver: Receiver
    invoices: dict[str, list[Invoice]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that is killed piece by piece; durable, for without the disk PostgreSQL may forget what it said."""
    made = Stack(tmp_path_factory.mktemp("mortal") / "home", settings=SETTINGS, durable=True)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def its_shop(mortal: Stack) -> Shop:
    return Shop.opened(mortal)


@pytest.fixture(scope="module")
def its_operator(mortal: Stack) -> Iterator[Operator]:
    with Operator(mortal) as at_the_desk:
        yield at_the_desk


@pytest.fixture(scope="module")
def survivors() -> Iterator[Survivors]:
    with Receiver() as receiver:
        yield Survivors(receiver)


@pytest.fixture(scope="module", autouse=True)
def forgotten(its_shop: Shop, survivors: Survivors) -> Invoice:
    """An invoice that nobody ever opens, from before the first kill."""
    return its_shop.create(survivors.receiver.url("forgotten"))


@pytest.mark.parametrize("program", KILLED)
def test_customer_and_operator_go_on_while_a_process_is_killed(
    mortal: Stack, its_shop: Shop, its_operator: Operator, survivors: Survivors, program: str
) -> None:
    invoices = [
        its_shop.create(survivors.receiver.url(f"{program}-{place}"))
        for place in ("before", "during", "after")
    ]
    before, during, after = invoices
    customers = [Customer(invoice.created["payment_link"]) for invoice in invoices]
    customers[0].choose_and_pay()
    customers[1].choose_and_pay()
    with ThreadPoolExecutor(1) as killer:
        its_operator.confirm(before)  # its webhook and its credit are on the way now
        another = killer.submit(mortal.kill, program)
        patiently(lambda: its_operator.confirm(during))
        customers[2].choose_and_pay()
        patiently(lambda: its_operator.confirm(after))
        another.result(timeout=60)
    assert [patiently(invoice.read)["status"] for invoice in invoices] == ["success"] * 3
    mortal.wait_until_ready()
    survivors.invoices[program] = invoices


@pytest.mark.parametrize("program", KILLED)
def test_each_purchase_has_one_event_and_its_webhook_arrived(
    its_shop: Shop, survivors: Survivors, program: str
) -> None:
    for place, invoice in zip(("before", "during", "after"), survivors.invoices[program], strict=True):
        event = invoice.wait_for_delivery()
        assert event["event_type"] == "invoice.success"
        received = survivors.receiver.received(f"{program}-{place}")
        assert 1 <= len(received) <= 2, "at most one delivery was in the air when the process died"
        assert len({each.body for each in received}) == 1
        payload = its_shop.verified(received[0])
        assert payload == event["request_payload"]
        assert (payload["order_id"], payload["status"]) == (invoice.id, "success")


def test_an_invoice_that_nobody_opened_expired_meanwhile(
    its_shop: Shop, survivors: Survivors, forgotten: Invoice
) -> None:
    received = survivors.receiver.wait_for(1, path="forgotten", timeout_seconds=90)
    payload = its_shop.verified(received[0])
    expected = forgotten.expected_payload(
        received[0].headers["x-idempotency-key"], status="expired", reason="ttl_expired"
    )
    assert payload == expected
    assert forgotten.wait_for_delivery()["event_type"] == "invoice.expired"


def test_each_purchase_was_credited_once_and_the_books_are_right(
    mortal: Stack, its_shop: Shop, its_operator: Operator, survivors: Survivors
) -> None:
    every = [invoice for invoices in survivors.invoices.values() for invoice in invoices]
    due = sum((Decimal(invoice.read()["deal"]["merchant_usdt"]) for invoice in every), Decimal(0))
    settled(lambda: its_operator.available(its_shop) >= due, "all credits")
    verified = mortal.cli("verify", "--grace-seconds", "0")
    assert verified["ok"], verified["problems"]
    assert verified["checked"]["credits"] == len(every)
    assert its_operator.available(its_shop) == due
