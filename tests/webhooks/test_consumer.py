"""`fiatgate.invoices.finished` over a real NATS: one event per invoice, whatever is delivered again."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import UUID

import psycopg2
import pytest

from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from kit.base.ids import new_id
from kit.base.proto import timestamp_from
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Outgoing
from services.invoices.events import FINISHED
from services.webhooks import workers
from services.webhooks.operations import verification
from tests.support.clock import START
from tests.support.databases import past_all_rules
from tests.support.receiver import Receiver
from tests.support.servers import NatsServer
from tests.support.signing import signed
from tests.webhooks.house import House, running


@pytest.fixture
def working_house(make_house: Callable[..., House], nats_server: NatsServer) -> Iterator[House]:
    house = make_house(nats_url=nats_server.url_of("webhooks"))
    house.deps.bus.start()
    with running(workers.workers(house.deps)):
        yield house
    house.deps.bus.close()


@pytest.fixture
def publish(invoices_bus: Bus) -> Callable[..., None]:
    """`publish(message, event_id=…)`: as the relay of invoices does."""

    def send(
        message: invoices_pb2.InvoiceFinished, *, event_id: UUID | None = None, sign: bool = True
    ) -> None:
        fact = Outgoing(event_id or new_id(), FINISHED, message.SerializeToString())
        if sign:
            fact = signed(fact)
        wait_until(
            lambda: invoices_bus.publish([fact]) == [fact.event_id], "the publication", timeout_seconds=15
        )

    return send


def _finished(house: House, callback_url: str | None, **fields: object) -> invoices_pb2.InvoiceFinished:
    usual: dict[str, object] = {
        "event_id": str(new_id()),
        "event_type": "invoice.expired",
        "invoice_id": str(new_id()),
        "merchant_id": str(house.merchant_id),
        "key_id": str(house.key_id),
        "external_id": "order-7",
        "status": invoices_pb2.INVOICE_STATUS_EXPIRED,
        "finished_at": timestamp_from(START),
        "expires_at": timestamp_from(START),
        "amount": "100.00",
        "currency_code": "EUR",
        "callback_url": callback_url,
        "reason": "ttl_expired",
    }
    return invoices_pb2.InvoiceFinished(**{**usual, **fields})  # type: ignore[arg-type]


def _events(house: House, invoice_id: str) -> int:
    return len(verification.check_invoices(house.deps, invoice_ids=[invoice_id]))


def test_a_finished_invoice_reaches_the_merchant(
    working_house: House, publish: Callable[..., None], receiver: Receiver
) -> None:
    message = _finished(working_house, receiver.url())
    publish(message)
    [request] = receiver.wait_for(1)
    assert json.loads(request.body) == {
        "event_id": message.event_id,
        "order_id": message.invoice_id,
        "external_id": "order-7",
        "status": "expired",
        "sub_status": None,
        "finished_at": "2026-01-15T12:00:00+00:00",
        "expires_at": "2026-01-15T12:00:00+00:00",
        "amount": "100.00",
        "currency": "EUR",
        "rate_usd": None,
        "success_url": None,
        "fail_url": None,
        "is_adjusted": False,
        "original_amount": None,
        "adjusted_amount": None,
        "reason": "ttl_expired",
    }


def test_the_same_invoice_announced_again_makes_no_second_event(
    working_house: House, publish: Callable[..., None], receiver: Receiver
) -> None:
    message = _finished(working_house, receiver.url("again"))
    event_id = new_id()
    publish(message, event_id=event_id)
    publish(message, event_id=event_id)
    publish(message)  # announced anew: another id on the bus, the same fact
    last = _finished(working_house, receiver.url("last"))
    publish(last)
    receiver.wait_for(1, path="last")  # by then the others have been handled
    receiver.wait_for(1, path="again")  # which may be under way still
    assert len(receiver.received("again")) == 1
    assert _events(working_house, message.invoice_id) == 1


def test_many_finished_invoices_become_an_event_each_of_the_request_that_ended_it(
    make_house: Callable[..., House], nats_server: NatsServer, invoices_bus: Bus, receiver: Receiver
) -> None:
    house = make_house(nats_url=nats_server.url_of("webhooks"))
    messages = [_finished(house, receiver.url(f"many-{number}")) for number in range(10)]
    messages.append(_finished(house, None))
    facts = [
        signed(Outgoing(new_id(), FINISHED, message.SerializeToString(), f"request-{number}"))
        for number, message in enumerate(messages)
    ]
    announced_again = signed(Outgoing(new_id(), FINISHED, messages[0].SerializeToString()))
    batch = [*facts, announced_again]
    wait_until(lambda: len(invoices_bus.publish(batch)) == 12, "the publication", timeout_seconds=15)
    house.deps.bus.start()
    with running(workers.workers(house.deps)):
        for number in range(10):
            receiver.wait_for(1, path=f"many-{number}")
    house.deps.bus.close()
    assert [_events(house, message.invoice_id) for message in messages] == [1] * 10 + [0]
    with (
        closing(psycopg2.connect(house.deps.settings.database_url)) as connection,
        connection.cursor() as cursor,
    ):
        ids = [message.invoice_id for message in messages]
        cursor.execute("SELECT request_id FROM events WHERE invoice_id = ANY(%s::uuid[])", (ids,))
        assert {request_id for (request_id,) in cursor} == {f"request-{number}" for number in range(10)}


def test_a_lost_event_comes_back_when_the_invoice_is_announced_anew(
    working_house: House, publish: Callable[..., None], receiver: Receiver
) -> None:
    message = _finished(working_house, receiver.url("lost"))
    publish(message)
    receiver.wait_for(1, path="lost")
    working_house.wait_for_status(UUID(message.invoice_id), "success")
    url = past_all_rules(working_house.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        of_event = "FROM events WHERE invoice_id = %s"
        cursor.execute(
            f"DELETE FROM attempts WHERE event_id IN (SELECT id {of_event})", (message.invoice_id,)
        )
        cursor.execute(f"DELETE {of_event}", (message.invoice_id,))
    publish(message)
    first, second = receiver.wait_for(2, path="lost")
    assert first.body == second.body


def test_an_invoice_without_callback_makes_no_event(
    working_house: House, publish: Callable[..., None], receiver: Receiver
) -> None:
    silent = _finished(working_house, None)
    publish(silent)
    publish(_finished(working_house, receiver.url("next")))
    receiver.wait_for(1, path="next")
    assert _events(working_house, silent.invoice_id) == 0


def test_a_message_that_is_not_terminal_makes_no_webhook_and_stops_no_other(
    working_house: House, publish: Callable[..., None], receiver: Receiver
) -> None:
    broken = _finished(working_house, receiver.url("never"), status=invoices_pb2.INVOICE_STATUS_PENDING)
    publish(broken)
    publish(_finished(working_house, receiver.url("after")))
    receiver.wait_for(1, path="after")
    assert receiver.received("never") == []
    assert _events(working_house, broken.invoice_id) == 0


def test_a_forged_success_makes_no_webhook_and_the_true_one_is_made_later(
    working_house: House, publish: Callable[..., None], receiver: Receiver
) -> None:
    event_id = new_id()
    true = _finished(working_house, receiver.url("hook"))
    forged = invoices_pb2.InvoiceFinished()
    forged.CopyFrom(true)
    forged.status, forged.event_type = invoices_pb2.INVOICE_STATUS_SUCCESS, "invoice.success"
    publish(forged, event_id=event_id, sign=False)
    publish(_finished(working_house, receiver.url("next")))
    receiver.wait_for(1, path="next")
    wait_until(lambda: _parked(working_house) == 1, "the forged one to be parked", timeout_seconds=15)
    assert _events(working_house, true.invoice_id) == 0

    publish(true, event_id=event_id)
    [request] = receiver.wait_for(1, path="hook")
    assert json.loads(request.body)["status"] == "expired"
    assert _events(working_house, true.invoice_id) == 1
    assert _parked(working_house) == 1


def _parked(house: House) -> int:
    return next(int(gauge.value) for gauge in workers.gauges(house.deps) if gauge.name == "parked")
