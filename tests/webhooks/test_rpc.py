"""The service over gRPC: messages in, messages and reasons out, in a process that only serves."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from deploy.local.waiting import wait_until
from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from fiatgate.webhooks.v1.webhooks_pb2_grpc import WebhooksServiceStub
from kit.base.ids import new_id
from kit.db.queues import waiting
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.rpc.server import Options, RpcServer
from services.webhooks import rpc, workers
from services.webhooks.domain import signature
from services.webhooks.store import events
from services.webhooks.store.events import HISTORY_ATTEMPTS
from services.webhooks.store.queues import QUEUES
from services.webhooks.wiring import RESENDS as RESENDS_OF_ONE
from tests.support.acting import refusal
from tests.support.clock import START, ManualClock
from tests.support.receiver import Answer, Receiver
from tests.support.serving import connected, serving
from tests.webhooks.house import House

SHARE = RESENDS_OF_ONE.working
RESENDS = 16  # as many as a process had threads, for everything, before resends had their own


@pytest.fixture
def stub(house: House) -> Iterator[WebhooksServiceStub]:
    server = RpcServer(Options(service="webhooks", threads=RESENDS, call_seconds=30, slots=rpc.SLOTS))
    rpc.add_to(server, house.deps)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with channel(f"127.0.0.1:{port}", name="webhooks") as opened:
        yield WebhooksServiceStub(opened)
    server.stop(0).wait()


def test_the_history_shows_events_with_their_attempts(
    house: House, stub: WebhooksServiceStub, receiver: Receiver
) -> None:
    receiver.answer_next(Answer(status=500, body=b"no"))
    with house.engine():
        invoice_id = house.queue(receiver.url(), event_type="invoice.adjusted")
        house.wait_for_attempts(invoice_id, 1)
    asked = pb.ListInvoiceEventsRequest(merchant_id=str(house.merchant_id), invoice_id=str(invoice_id))
    [event] = stub.ListInvoiceEvents(asked).events
    assert event.event_type == "invoice.adjusted"
    assert event.status == pb.EVENT_STATUS_PENDING
    assert event.callback_url == receiver.url()
    assert json.loads(event.request_payload)["order_id"] == str(invoice_id)
    assert event.request_payload == receiver.received()[0].body
    assert event.next_retry_at.ToDatetime() >= START.replace(tzinfo=None) + timedelta(seconds=30)
    assert not event.HasField("locked_at")
    assert not event.HasField("locked_by")
    [attempt] = event.attempts
    assert (attempt.try_number, attempt.trigger) == (1, pb.ATTEMPT_TRIGGER_AUTO)
    assert (attempt.status, attempt.http_status) == (pb.ATTEMPT_STATUS_FAILURE, 500)
    assert (attempt.response_body, attempt.error_message) == ("no", "HTTP status 500")
    assert attempt.response_headers["Content-Length"] == "2"
    assert stub.GetEvent(pb.GetEventRequest(event_id=event.event_id)).event == event


def test_the_history_of_an_unknown_invoice_or_of_another_merchants_is_empty(
    house: House, stub: WebhooksServiceStub
) -> None:
    invoice_id = house.queue("https://shop.example.com/")
    for merchant, invoice in ((house.merchant_id, new_id()), (new_id(), invoice_id)):
        asked = pb.ListInvoiceEventsRequest(merchant_id=str(merchant), invoice_id=str(invoice))
        assert list(stub.ListInvoiceEvents(asked).events) == []


def test_events_are_followed_in_order_and_one_that_sql_changed_ends_the_answer(
    house: House, stub: WebhooksServiceStub
) -> None:
    queued = [house.queue("https://shop.example.com/") for _ in range(3)]
    house.queue("https://shop.example.com/", merchant_id=new_id())

    def followed(after: int = 0, limit: int = 0) -> list[pb.FollowedEvent]:
        asked = pb.FollowEventsRequest(merchant_id=str(house.merchant_id), after_event_id=after, limit=limit)
        return list(stub.FollowEvents(asked).events)

    found = followed()
    assert [each.event.invoice_id for each in found] == [str(each) for each in queued]
    assert [each.event.event_id for each in followed(limit=2)] == [each.event.event_id for each in found[:2]]
    assert followed(after=found[1].event.event_id) == found[2:]
    signed = found[0].headers["X-Signature"]
    assert signed == signature(
        house.secret, found[0].headers["X-Signature-Timestamp"], found[0].event.request_payload
    )
    with house.deps.db.transaction() as tx:
        tx.execute(text("UPDATE events SET seal = NULL WHERE id = :id"), {"id": found[1].event.event_id})
    assert followed() == found[:1]


def test_events_of_a_merchant_become_visible_in_the_order_of_their_numbers(house: House) -> None:
    """A reader that saw a later one first would never ask for the earlier one."""
    waits = text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with ThreadPoolExecutor(2) as threads, house.deps.db.transaction() as tx:
        events.take_turns(tx, [house.merchant_id])
        later = threads.submit(house.queue, "https://shop.example.com/")
        threads.submit(house.queue, "https://shop.example.com/", merchant_id=new_id()).result()
        with house.deps.db.autocommit() as connection:
            wait_until(
                lambda: connection.execute(waits).scalar_one() == 1,
                "the later one to wait",
                timeout_seconds=10,
            )
        assert not later.done()
        tx.commit()
        later.result()


def test_an_operator_sees_the_history_without_naming_the_merchant(
    house: House, stub: WebhooksServiceStub
) -> None:
    invoice_id = house.queue("https://shop.example.com/")
    [event] = stub.ListInvoiceEvents(pb.ListInvoiceEventsRequest(invoice_id=str(invoice_id))).events
    assert event.merchant_id == str(house.merchant_id)


def test_an_event_under_way_shows_who_is_at_it(house: House, stub: WebhooksServiceStub) -> None:
    house.queue("https://shop.example.com/")
    [claimed] = house.claim(worker="host:1")
    event = stub.GetEvent(pb.GetEventRequest(event_id=claimed.event_id)).event
    assert event.locked_by == "host:1"
    assert event.locked_at.ToDatetime() == START.replace(tzinfo=None)


def test_an_attempt_without_answer_has_none_of_its_parts(house: House, stub: WebhooksServiceStub) -> None:
    with house.engine():
        invoice_id = house.queue("http://127.0.0.1:1/")
        house.wait_for_attempts(invoice_id, 1)
    event_id = house.event(invoice_id).id
    [attempt] = stub.GetEvent(pb.GetEventRequest(event_id=event_id)).event.attempts
    assert not attempt.HasField("http_status")
    assert not attempt.HasField("response_body")
    assert dict(attempt.response_headers) == {}
    assert attempt.error_message == "127.0.0.1: the connection failed"
    assert attempt.not_sent == pb.NOT_SENT_UNSPECIFIED
    assert attempt.request_headers["User-Agent"] == "Fiatgate-Webhooks/1"


def test_an_attempt_without_request_says_why_and_shows_none(make_house: Callable[..., House]) -> None:
    house = make_house(clock=ManualClock(), webhook_allow_private=False)
    sealed, unsealed, unsigned = (house.queue("https://127.0.0.1/") for _ in range(3))
    with house.deps.db.transaction() as tx:
        tx.execute(text("UPDATE events SET seal = '' WHERE invoice_id = :id"), {"id": unsealed})
    with (
        serving(rpc.add_to, house.deps, service="webhooks", threads=RESENDS, slots=rpc.SLOTS) as address,
        connected(address) as opened,
    ):
        stub = WebhooksServiceStub(opened)

        def resent(invoice_id: UUID) -> tuple[int, str]:
            request = pb.ResendLatestRequest(merchant_id=str(house.merchant_id), invoice_id=str(invoice_id))
            answer = stub.ResendLatest(request)
            [attempt] = stub.GetEvent(pb.GetEventRequest(event_id=answer.event_id)).event.attempts
            assert (dict(attempt.request_headers), attempt.HasField("http_status")) == ({}, False)
            assert attempt.not_sent == answer.not_sent
            return answer.not_sent, attempt.error_message

        assert resent(sealed) == (pb.NOT_SENT_ADDRESS, "not sent: the URL's address is not public")
        assert resent(unsealed)[0] == pb.NOT_SENT_HELD_BACK
        event_id = house.event(sealed).id
        tested = stub.SendTest(pb.SendTestRequest(merchant_id=str(house.merchant_id), event_id=event_id))
        assert (tested.ok, dict(tested.request_headers), tested.cooldown_seconds) == (False, {}, 10)
        assert tested.error_message == "not sent: the URL's address is not public"
        house.merchants.deactivate(house.key_id)
        assert resent(unsigned)[0] == pb.NOT_SENT_NO_KEY


def test_however_often_somebody_resends_the_history_stays_one_answer(
    house: House, stub: WebhooksServiceStub, receiver: Receiver
) -> None:
    receiver.answer(Answer(body=b"\xff" * 20_000, headers={f"X-{number}": "v" * 200 for number in range(60)}))
    invoice_id = house.queue(receiver.url())
    house.resend(invoice_id)
    repeat = """
        INSERT INTO attempts (event_id, try_number, trigger, status, http_status, response_headers, response_body,
            duration_ms, created_at)
        SELECT event_id, number, trigger, status, http_status, response_headers, response_body, duration_ms, created_at
        FROM attempts, generate_series(2, :last) AS number
    """
    with house.deps.db.transaction() as tx:
        tx.execute(text(repeat), {"last": HISTORY_ATTEMPTS + 3})
    event = stub.GetEvent(pb.GetEventRequest(event_id=house.event(invoice_id).id)).event
    assert [attempt.try_number for attempt in event.attempts] == list(range(4, HISTORY_ATTEMPTS + 4))
    assert event.ByteSize() > 2_000_000  # and yet it came


def test_a_resend_answers_with_its_attempt(
    house: House, stub: WebhooksServiceStub, receiver: Receiver
) -> None:
    receiver.answer_next(Answer(status=201))
    invoice_id = house.queue(receiver.url())
    asked = pb.ResendLatestRequest(merchant_id=str(house.merchant_id), invoice_id=str(invoice_id))
    resent = stub.ResendLatest(asked, timeout=20)
    assert (resent.ok, resent.http_status, resent.event_id) == (True, 201, house.event(invoice_id).id)
    assert resent.attempt_id == house.attempts(invoice_id)[0].id
    refused = refusal(stub.ResendLatest, asked, timeout=20)
    assert refused.reason == "WEBHOOK_RESEND_COOLDOWN"
    assert refused.metadata == {"retry_after_seconds": "60"}


def test_a_resend_that_nothing_answers_has_no_status(house: House, stub: WebhooksServiceStub) -> None:
    invoice_id = house.queue("http://127.0.0.1:1/")
    asked = pb.ResendLatestRequest(merchant_id=str(house.merchant_id), invoice_id=str(invoice_id))
    resent = stub.ResendLatest(asked, timeout=20)
    assert not resent.ok
    assert not resent.HasField("http_status")


# -- proofs


def test_checked_invoices_are_told_with_their_event_and_others_left_out(
    house: House, stub: WebhooksServiceStub
) -> None:
    payload_event_id = new_id()
    invoice_id = house.queue("https://shop.example.com/", event_id=payload_event_id)
    answer = stub.CheckInvoices(pb.CheckInvoicesRequest(invoice_ids=[str(invoice_id), str(new_id())]))
    [checked] = answer.invoices
    assert (checked.invoice_id, checked.events) == (str(invoice_id), 1)
    assert checked.payload_event_id == str(payload_event_id)


def test_stuck_is_what_is_overdue_and_under_nobodys_lease(house: House, stub: WebhooksServiceStub) -> None:
    forgotten = house.queue("https://shop.example.com/")
    house.clock.advance(seconds=61)
    house.queue("https://shop.example.com/")  # due, but not for long

    def stuck() -> list[str]:
        return [event.invoice_id for event in stub.ListStuckEvents(pb.ListStuckEventsRequest()).events]

    assert stuck() == [str(forgotten)]
    assert house.claim(limit=1)
    assert stuck() == []
    house.clock.advance(seconds=house.deps.settings.lease_seconds + 61)
    assert str(forgotten) in stuck()
    [first] = stub.ListStuckEvents(pb.ListStuckEventsRequest(limit=1, overdue_seconds=10)).events
    assert first.invoice_id == str(forgotten)


def test_a_call_reschedules_so_many_events_and_the_longest_overdue_first(
    house: House, stub: WebhooksServiceStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.rpc.values.LIST_MOST_ROWS", 2)
    first = house.queue("https://shop.example.com/")
    for _ in range(2):
        house.clock.advance(seconds=1)
        last = house.queue("https://shop.example.com/")
    house.clock.advance(hours=1)

    def reschedule() -> int:
        return stub.RescheduleStuckEvents(pb.RescheduleStuckEventsRequest()).rescheduled

    assert reschedule() == 2
    assert house.event(first).next_retry_at == house.clock.now()
    assert house.event(last).next_retry_at != house.clock.now()
    assert (reschedule(), reschedule()) == (1, 0)


def test_rescheduled_events_get_an_attempt_now(
    house: House, stub: WebhooksServiceStub, receiver: Receiver
) -> None:
    invoice_id = house.queue(receiver.url())
    house.claim()  # by somebody who is never heard of again
    house.clock.advance(hours=1)
    assert stub.RescheduleStuckEvents(pb.RescheduleStuckEventsRequest()).rescheduled == 1
    assert stub.RescheduleStuckEvents(pb.RescheduleStuckEventsRequest()).rescheduled == 0
    event = house.event(invoice_id)
    assert (event.next_retry_at, event.locked_at) == (house.clock.now(), None)
    with house.engine():
        house.wait_for_status(invoice_id, "success")


def test_a_dead_webhook_waits_for_the_operator_for_a_week(make_house: Callable[..., House]) -> None:
    house = make_house(clock=ManualClock())
    house.queue("https://shop.example.com/")
    with house.deps.db.autocommit() as connection:
        connection.execute(text("UPDATE events SET status = 'dead', next_retry_at = NULL"))

    def dead() -> tuple[int, float]:
        with house.deps.db.autocommit() as connection:
            (queue,) = waiting(connection, QUEUES[:1], now=house.clock.now())
        (gauge,) = [each for each in workers.gauges(house.deps) if each.name == queue.name]
        return queue.count, gauge.value

    assert dead() == (1, 1)
    house.clock.advance(days=7)
    assert dead() == (0, 0)


def test_gauges_tell_what_is_due_how_long_and_what_is_under_way(make_house: Callable[..., House]) -> None:
    house = make_house(clock=ManualClock())
    for _ in range(3):
        house.queue("https://shop.example.com/")
    house.clock.advance(seconds=7)
    house.claim(limit=1)
    gauges = {gauge.name: gauge.value for gauge in workers.gauges(house.deps)}
    assert gauges.pop("attempt_months_ahead") >= 0
    assert gauges == {
        "webhooks_due": 2,
        "oldest_due_seconds": 7,
        "oldest_undelivered_seconds": 7,
        "inflight": 1,
        "parked": 0,
        "webhooks_dead": 0,
    }


def test_resends_of_one_merchant_to_receivers_that_hang_delay_no_other_merchant(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    house = make_house(webhook_timeout_seconds=10)
    shop = house.merchants.merchant()
    key_id, _ = house.merchants.key(shop)
    receiver.answer(Answer(delay_seconds=6), path="tarpit")
    hanging = [house.queue(receiver.url("tarpit")) for _ in range(RESENDS)]
    other = house.queue(receiver.url("other"), merchant_id=shop, key_id=key_id)
    with (
        serving(rpc.add_to, house.deps, service="webhooks", threads=RESENDS, slots=rpc.SLOTS) as address,
        connected(address) as opened,
        ThreadPoolExecutor(RESENDS) as threads,
    ):
        stub = WebhooksServiceStub(opened)

        def resend(merchant_id: UUID, invoice_id: UUID) -> str:
            asked = pb.ResendLatestRequest(merchant_id=str(merchant_id), invoice_id=str(invoice_id))
            try:
                return str(stub.ResendLatest(asked, timeout=20).http_status)
            except Refused as refused:
                return refused.reason

        asked = [threads.submit(resend, house.merchant_id, each) for each in hanging]
        receiver.wait_for(SHARE, path="tarpit")
        assert resend(shop, other) == "200"
        assert sum(not each.done() for each in asked) >= SHARE, "they hang still"
        answers = Counter(each.result() for each in asked)
    assert answers == {"200": SHARE, "RATE_LIMITED": RESENDS - SHARE}
    assert len(receiver.received("tarpit")) == SHARE
