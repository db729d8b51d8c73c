"""Facts forged over NATS on a running stack: nothing is credited, no webhook is sent, and the true fact comes later."""

import asyncio
import uuid
from collections.abc import Sequence
from urllib.parse import urlsplit

import nats.aio.client
import nats.errors
import pytest

from deploy.local.waiting import wait_until
from deploy.nats_rights import OPERATOR, PROCESSES
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.proto import timestamp_from
from kit.events.bus.messages import EVENT_ID_HEADER, REQUEST_ID_HEADER
from services.invoices.events import FINISHED
from tests.e2e.market import Invoice, Operator, Shop
from tests.support.receiver import Receiver
from tests.support.stack import Stack

MILLION = "1000000.000000"


def finished(shop: Shop, invoice_id: str, callback_url: str) -> pb.InvoiceFinished:
    """A success of a million USDT."""
    return pb.InvoiceFinished(
        event_id=str(uuid.uuid4()),
        event_type="invoice.success",
        invoice_id=invoice_id,
        merchant_id=shop.merchant_id,
        key_id=str(uuid.uuid4()),
        external_id="forged",
        status=pb.INVOICE_STATUS_SUCCESS,
        sub_status="successfully_paid",
        finished_at=timestamp_from(SystemClock().now()),
        expires_at=timestamp_from(SystemClock().now()),
        amount="920000.00",
        currency_code="EUR",
        rate_usd="0.92",
        callback_url=callback_url,
        success_url="https://shop.example/thanks",
        fail_url="https://shop.example/sorry",
        merchant_usdt=MILLION,
    )


def publish(url: str, facts: Sequence[pb.InvoiceFinished]) -> list[str]:
    """As a relay does; what the server says against it. The request's id is the forged event's."""
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error))

    async def run() -> None:
        client = nats.aio.client.Client()
        try:
            await client.connect(url, error_cb=note, allow_reconnect=False)
            for fact in facts:
                headers = {EVENT_ID_HEADER: str(uuid.uuid4()), REQUEST_ID_HEADER: fact.event_id}
                await client.publish(FINISHED, fact.SerializeToString(), headers=headers)
            await client.flush()  # its ping overtakes what is sent
            await client.flush()
        except nats.errors.Error as error:
            refused.append(str(error))
        finally:
            await client.close()

    asyncio.run(run())
    return refused


@pytest.fixture
def invoice(shop: Shop, receiver: Receiver) -> Invoice:
    return shop.create(receiver.url())


@pytest.fixture
def forged(shop: Shop, invoice: Invoice, receiver: Receiver) -> list[pb.InvoiceFinished]:
    """Of an invoice that does not exist, and of one that is not paid."""
    return [finished(shop, each, receiver.url()) for each in (str(uuid.uuid4()), invoice.id)]


def cancel_and_see_the_true_fact(stack: Stack, invoice: Invoice, receiver: Receiver) -> None:
    stack.cli("invoices", "cancel", invoice.id)
    (received,) = receiver.wait_for(1)
    assert invoice.shop.verified(received)["status"] == "canceled"
    assert invoice.wait_for_delivery()["event_type"] == "invoice.canceled"
    assert len(receiver.received()) == 1


def test_neither_a_stranger_nor_another_process_can_announce_a_finished_invoice(
    stack: Stack,
    shop: Shop,
    operator: Operator,
    invoice: Invoice,
    receiver: Receiver,
    forged: list[pb.InvoiceFinished],
) -> None:
    before = operator.available(shop)
    urls = stack.home.running_stack()["nats_urls"]
    server = urlsplit(urls[OPERATOR])
    anonymous = f"nats://{server.hostname}:{server.port}"
    for url in (anonymous, *(urls[process] for process in PROCESSES if process != "invoices")):
        assert publish(url, forged), url
    cancel_and_see_the_true_fact(stack, invoice, receiver)
    assert operator.available(shop) == before


def test_a_password_that_may_publish_is_not_enough_to_forge_a_finished_invoice(
    stack: Stack,
    shop: Shop,
    operator: Operator,
    invoice: Invoice,
    receiver: Receiver,
    forged: list[pb.InvoiceFinished],
) -> None:
    """Invoices signs its facts: what it has not signed is parked and has no effect."""
    before = operator.available(shop)
    assert not publish(stack.home.running_stack()["nats_urls"]["invoices"], forged)
    ours = {fact.event_id for fact in forged}
    parked: list[dict[str, str]] = []

    def parked_by_both() -> bool:
        parked[:] = [each for each in stack.cli("parked", "list") if each["request_id"] in ours]
        return len(parked) == 2 * len(forged)

    try:
        wait_until(parked_by_both, "both services to park it", timeout_seconds=30)
        assert {each["error"] for each in parked} == {"Unproven: it carries no signature"}
        cancel_and_see_the_true_fact(stack, invoice, receiver)
        assert operator.available(shop) == before
    finally:  # the stack is shared
        for event_id in {each["event_id"] for each in parked}:
            stack.cli("parked", "discard", event_id, "--even-if-true")
