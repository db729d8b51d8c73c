"""The engine against real endpoints: what is sent, what counts, what is written down, what comes next."""

import gzip
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from cli.receiving import OwnReceiver as DemoReceiver
from kit.base.ids import new_id
from services.webhooks.delivery import engine
from services.webhooks.delivery.lanes import LANE, MERCHANT
from services.webhooks.delivery.sender import BODY_MAX_BYTES
from services.webhooks.domain import RETRY_DELAYS_SECONDS, USER_AGENT
from services.webhooks.store import claims
from services.webhooks.store.stages import Claimed, LaneKey, Outcome, Rooms, Shipment, lane_of
from tests.support.clock import ManualClock
from tests.support.receiver import Answer, Receiver
from tests.support.servers import PostgresServer
from tests.webhooks.house import House, signed_by
from tests.webhooks.raw import raw_receiver, self_signed

# -- what is sent


def test_a_queued_event_is_delivered_once_signed_over_its_raw_body(house: House, receiver: Receiver) -> None:
    with house.engine():
        invoice_id = house.queue(receiver.url())
        event = house.wait_for_status(invoice_id, "success")
    [request] = receiver.received()
    assert request.body == event.payload
    assert signed_by(request, house.secret)
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == USER_AGENT
    assert request.headers["x-idempotency-key"] == str(event.payload_event_id)
    assert request.headers["x-signature-timestamp"] == str(int(house.clock.now().timestamp()))
    assert (event.auto_attempts, event.next_retry_at, event.locked_at) == (1, None, None)


def test_the_attempt_keeps_what_the_receiver_said(house: House, receiver: Receiver) -> None:
    receiver.answer(
        Answer(status=202, body="danke ü".encode(), headers={"X-Shop": "a", "Content-Type": "text/plain"})
    )
    with house.engine():
        invoice_id = house.queue(receiver.url())
        [attempt] = house.wait_for_attempts(invoice_id, 1)
    assert (attempt.try_number, attempt.trigger, attempt.status) == (1, "auto", "success")
    assert (attempt.http_status, attempt.response_body, attempt.error_message) == (202, "danke ü", None)
    assert attempt.response_headers is not None
    assert attempt.response_headers["X-Shop"] == "a"
    assert attempt.duration_ms >= 0


# -- the schedule


def test_the_whole_retry_schedule_up_to_dead_with_the_same_bytes_each_time(
    house: House, receiver: Receiver
) -> None:
    receiver.answer(Answer(status=500))
    with house.engine():
        invoice_id = house.queue(receiver.url())
        for attempts, delay_seconds in enumerate(RETRY_DELAYS_SECONDS, start=1):
            house.wait_for_attempts(invoice_id, attempts)
            event = house.event(invoice_id)
            assert event.status == "pending"
            assert event.next_retry_at is not None
            wait = event.next_retry_at - house.clock.now()
            assert timedelta(seconds=delay_seconds) <= wait <= timedelta(seconds=delay_seconds + 1)
            house.advance(seconds=delay_seconds - 0.001)  # not yet
            house.deps.wake.set()
            assert len(receiver.received()) == attempts
            house.advance(seconds=1.002)
        event = house.wait_for_status(invoice_id, "dead")
        house.advance(seconds=86_400)
        house.queue(receiver.url("other"))  # once this one has come, the engine has looked again
        receiver.wait_for(1, path="other")
    requests = receiver.received()
    assert len(requests) == 8
    assert {request.body for request in requests} == {event.payload}
    assert {request.headers["x-idempotency-key"] for request in requests} == {str(event.payload_event_id)}
    assert all(signed_by(request, house.secret) for request in requests)
    assert len({request.headers["x-signature-timestamp"] for request in requests}) == 8
    assert (event.auto_attempts, event.next_retry_at) == (8, None)
    assert [attempt.try_number for attempt in house.attempts(invoice_id)] == list(range(1, 9))


def test_delays_are_kept_on_the_real_clock(make_house: Callable[..., House], receiver: Receiver) -> None:
    house = make_house(webhook_retry_delays=(1,))
    receiver.answer(Answer(status=503))
    with house.engine():
        invoice_id = house.queue(receiver.url())
        event = house.wait_for_status(invoice_id, "dead")
    first, second = (request.at_seconds for request in receiver.received())
    assert second - first >= 1
    assert event.auto_attempts == 2


# -- endpoints that misbehave


def _hang(_connection: socket.socket, over: threading.Event) -> None:
    over.wait(600)


def _reset(connection: socket.socket, _over: threading.Event) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    connection.close()


def _nonsense(connection: socket.socket, _over: threading.Event) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")


@pytest.mark.parametrize(
    ("behave", "timeout_seconds", "error"),
    [
        (_hang, 1, "no answer within 1 s"),
        (_reset, 25, "closed without an answer"),
        (_nonsense, 25, "the answer isn't HTTP"),
    ],
)
def test_no_answer_in_time_is_a_failure_that_says_why(
    make_house: Callable[..., House],
    behave: Callable[[socket.socket, threading.Event], None],
    timeout_seconds: int,
    error: str,
) -> None:
    house = make_house(webhook_timeout_seconds=timeout_seconds)
    with raw_receiver(behave) as url, house.engine():
        invoice_id = house.queue(url)
        [attempt] = house.wait_for_attempts(invoice_id, 1)
        event = house.event(invoice_id)
    assert (attempt.status, attempt.http_status, attempt.response_body) == ("failure", None, None)
    assert attempt.error_message is not None
    assert error in attempt.error_message
    assert event.next_retry_at is not None
    assert event.next_retry_at >= attempt.created_at + timedelta(
        milliseconds=attempt.duration_ms, seconds=29.9
    )


def test_a_certificate_that_nobody_vouches_for_is_a_failure(live_house: House, tmp_path: Path) -> None:
    with raw_receiver(_hang, tls=self_signed(tmp_path)) as url, live_house.engine():
        [attempt] = live_house.wait_for_attempts(live_house.queue(url), 1)
    assert attempt.status == "failure"
    assert attempt.error_message is not None
    assert "self-signed certificate" in attempt.error_message


def test_a_2xx_in_time_is_a_success_though_its_body_never_ends(live_house: House) -> None:
    def slow_body(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
        over.wait(600)

    with raw_receiver(slow_body) as url:
        invoice_id = live_house.queue(url)
        outcome = live_house.resend(invoice_id).outcome
    [attempt] = live_house.attempts(invoice_id)
    assert (attempt.status, attempt.http_status, attempt.response_body) == ("success", 200, "hello")
    assert outcome.duration_ms < outcome.held_ms, "it held its slot for longer than its status took"


def test_of_a_huge_body_sixteen_kibibytes_are_kept(house: House) -> None:
    sent = threading.Event()

    def huge(connection: socket.socket, _over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            for _ in range(1000):
                connection.sendall(b"x" * 1_000_000)
        except OSError:
            sent.set()  # the sender hung up long before the gigabyte

    with raw_receiver(huge) as url, house.engine():
        [attempt] = house.wait_for_attempts(house.queue(url), 1)
        assert sent.wait(10)
    assert attempt.status == "success"
    assert attempt.response_body == "x" * BODY_MAX_BYTES


def test_a_gzip_body_is_not_expanded(house: House, receiver: Receiver) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    receiver.answer(Answer(body=bomb, headers={"Content-Encoding": "gzip"}))
    with house.engine():
        [attempt] = house.wait_for_attempts(house.queue(receiver.url()), 1)
    assert attempt.status == "success"
    assert attempt.response_body is not None
    assert len(attempt.response_body.encode()) <= BODY_MAX_BYTES


def test_many_and_long_headers_are_cut(house: House, receiver: Receiver) -> None:
    receiver.answer(Answer(headers={f"X-{number}": "v" * 500 for number in range(80)}))
    with house.engine():
        [attempt] = house.wait_for_attempts(house.queue(receiver.url()), 1)
    assert attempt.response_headers is not None
    assert 0 < len(attempt.response_headers) <= 64
    assert sum(len(key) + len(value) for key, value in attempt.response_headers.items()) <= 8192


def test_a_redirect_is_a_failure_and_is_not_followed(house: House, receiver: Receiver) -> None:
    receiver.answer(Answer(status=307, headers={"Location": receiver.url("elsewhere")}))
    with house.engine():
        [attempt] = house.wait_for_attempts(house.queue(receiver.url()), 1)
    assert (attempt.status, attempt.http_status) == ("failure", 307)
    assert receiver.received("elsewhere") == []


def test_without_private_addresses_allowed_nothing_is_sent_to_loopback(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    """Not to the receiver of `make demo` either."""
    house = make_house(webhook_allow_private=False)
    with DemoReceiver() as demo, house.engine():
        for url in (receiver.url(), demo.url):
            for scheme, told in (("http:", "https://"), ("https:", "not public")):
                [attempt] = house.wait_for_attempts(house.queue(url.replace("http:", scheme)), 1)
                assert attempt.status == "failure"
                assert told in (attempt.error_message or "")
        assert (receiver.received(), demo.wait(0)) == ([], [])


def test_an_url_that_cannot_be_parsed_fails_and_does_not_disturb_others(
    house: House, receiver: Receiver
) -> None:
    with house.engine():
        broken = house.queue("https://[::1/hook:99999999")
        sound = house.queue(receiver.url())
        [attempt] = house.wait_for_attempts(broken, 1)
        house.wait_for_status(sound, "success")
    assert attempt.status == "failure"


# -- leases


def test_a_claimed_event_is_not_claimed_again_until_its_lease_is_over(house: House) -> None:
    house.queue("http://127.0.0.1:1/")
    [first] = house.claim()
    assert house.claim() == []
    house.clock.advance(seconds=house.deps.settings.lease_seconds)
    [second] = house.claim()
    assert second.event_id == first.event_id
    assert second.lease_token != first.lease_token


def test_a_killed_workers_event_is_delivered_after_its_lease(house: House, receiver: Receiver) -> None:
    invoice_id = house.queue(receiver.url())
    assert house.claim(worker="killed")
    with house.engine():
        event = house.event(invoice_id)
        assert event.locked_by == "killed"
        house.wait_for_status(house.queue(receiver.url("other")), "success")
        assert receiver.received() == []
        house.advance(seconds=house.deps.settings.lease_seconds)
        house.wait_for_status(invoice_id, "success")
    assert len(receiver.received()) == 1


def test_a_result_that_comes_after_a_newer_claim_is_dropped(house: House, receiver: Receiver) -> None:
    invoice_id = house.queue(receiver.url())
    [stale] = house.claim()
    late = _sent(house, stale, receiver, Answer(status=500))
    house.clock.advance(seconds=house.deps.settings.lease_seconds)
    [fresh] = house.claim()
    timely = _sent(house, fresh, receiver, Answer(status=200))

    assert house.deps.recorder.record([late]) == []
    event = house.event(invoice_id)
    assert (event.status, event.auto_attempts) == ("pending", 0)
    assert event.lease_token == fresh.lease_token

    [written] = house.deps.recorder.record([late, timely])
    assert written.lease_token == fresh.lease_token
    assert house.deps.recorder.record([late]) == []
    assert house.deps.recorder.record([timely]) == []
    assert house.event(invoice_id).status == "success"
    assert [attempt.status for attempt in house.attempts(invoice_id)] == ["success"]


def test_in_one_batch_the_stale_result_is_dropped_and_the_others_are_written(
    house: House, receiver: Receiver
) -> None:
    invoices = [house.queue(receiver.url()) for _ in range(3)]
    outcomes = [_sent(house, claimed, receiver, Answer()) for claimed in house.claim()]
    house.clock.advance(seconds=house.deps.settings.lease_seconds)
    [stolen] = house.claim(limit=1)
    written = {each.event_id for each in house.deps.recorder.record(outcomes)}
    assert len(written) == 2
    assert stolen.event_id not in written
    assert sorted(house.event(invoice).status for invoice in invoices) == ["pending", "success", "success"]


def _sent(house: House, claimed: Claimed, receiver: Receiver, answer: Answer) -> Outcome:
    receiver.answer(answer)
    return house.deps.courier.send(Shipment(claimed, house.secret))


def test_two_engines_side_by_side_send_each_event_once(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    one, other = make_house(), make_house()
    invoices = [one.queue(receiver.url()) for _ in range(60)]
    with one.engine(), other.engine():
        receiver.wait_for(60)
        one.wait(lambda: all(one.event(each).status == "success" for each in invoices), "all delivered")
    keys = [request.headers["x-idempotency-key"] for request in receiver.received()]
    assert len(keys) == len(set(keys)) == 60


# -- the others


def test_an_endpoint_that_hangs_does_not_delay_the_others(live_house: House, receiver: Receiver) -> None:
    house = live_house
    with house.engine(), raw_receiver(_hang) as hanging_url:
        for _ in range(200):
            house.queue(hanging_url)
        house.wait(lambda: house.claim_count() > 0, "the first claims")
        sound = [house.queue(receiver.url()) for _ in range(20)]
        house.wait(lambda: all(house.event(each).status == "success" for each in sound), "the sound ones")
        assert house.attempt_count() == len(sound), "those that hang do so still"
        # A claim does not count the new events that are being written meanwhile: at most as many again.
        assert house.claim_count() <= 2 * LANE.first


def test_a_merchant_with_many_endpoints_that_hang_does_not_delay_the_others(
    live_house: House, receiver: Receiver
) -> None:
    house = live_house
    other = house.merchants.merchant()
    other_key, _ = house.merchants.key(other)
    with ExitStack() as endpoints:
        for _ in range(20):
            endpoint = endpoints.enter_context(socket.create_server(("127.0.0.1", 0), backlog=32))
            for _ in range(8):  # it is connected to and never answers
                house.queue(f"http://127.0.0.1:{endpoint.getsockname()[1]}/")
        with house.engine():
            house.wait(lambda: house.claim_count() >= MERCHANT.first, "the merchant's slots to be taken")
            for _ in range(20):
                house.queue(receiver.url(), merchant_id=other, key_id=other_key)
            house.wait(lambda: house.attempt_count() >= 20, "the other merchant's to be delivered")
            assert len(receiver.received()) == house.attempt_count() == 20, "those that hang do so still"
            assert house.claim_count() <= MERCHANT.first
            endpoints.close()  # so that the stop waits for none of them


def test_a_claim_takes_the_oldest_events_and_of_each_lane_and_each_merchant_no_more_than_its_room(
    house: House,
) -> None:
    quick, other, unasked = (house.merchants.merchant() for _ in range(3))
    for merchant_id, host in [(unasked, "a"), (quick, "b"), (quick, "c"), (other, "a"), (other, "d")] * 3:
        house.queue(f"https://{host}.example/", merchant_id=merchant_id)
        house.clock.advance(seconds=1)
    b, c = LaneKey(quick, "b.example:443"), LaneKey(quick, "c.example:443")
    a, d = LaneKey(other, "a.example:443"), LaneKey(other, "d.example:443")
    rooms = Rooms(total=6, lanes={b: 2, a: 1, d: 9, c: 9}, merchants={quick: 4, other: 9})
    claimed = house.claim(rooms=rooms)
    assert Counter(map(lane_of, claimed)) == {b: 2, c: 2, a: 1, d: 1}
    times = [each.next_retry_at for each in claimed]
    assert times == sorted(filter(None, times))
    [youngest] = house.claim(rooms=Rooms(9, {b: 9}, {quick: 9}))
    assert youngest.event_id > max(each.event_id for each in claimed if lane_of(each) == b)


def test_a_look_finds_the_lanes_with_something_due_that_nobody_holds(house: House) -> None:
    def key(host: str) -> LaneKey:
        return LaneKey(house.merchant_id, f"{host}.example:443")

    for host in ("a", "b", "b", "c"):
        house.queue(f"https://{host}.example/")
    before = house.clock.now()
    assert house.claim(rooms=Rooms(1, {key("a"): 1}, {house.merchant_id: 1}))
    house.clock.advance(seconds=1)
    house.queue("https://d.example/")
    assert set(house.lanes_due()) == {key("b"), key("c"), key("d")}
    assert house.lanes_due(since=before) == [key("d")]
    house.clock.advance(seconds=house.deps.settings.lease_seconds)
    assert set(house.lanes_due()) == {key(host) for host in "abcd"}


def test_any_number_of_lanes_is_read_some_at_a_time(house: House) -> None:
    """A merchant may have hundreds of thousands of destinations: one read of all of them would never end in time."""
    hosts = [f"{letter}.example" for letter in "abcde"]
    for host in hosts:
        house.queue(f"https://{host}/")
    held = LaneKey(house.merchant_id, "b.example:443")
    assert house.claim(rooms=Rooms(1, {held: 1}, {house.merchant_id: 1}))
    seen, last_lane = [], claims.BEFORE_ALL
    for _ in range(3):
        with house.deps.db.autocommit() as connection:
            found = claims.lanes_due_after(connection, last_lane, most=2, now=house.clock.now())
        seen.append([key.destination[0] for key in found.due])
        last_lane = found.last_lane
    assert (seen, last_lane) == ([["a"], ["c", "d"], ["e"]], claims.BEFORE_ALL)


def test_reads_and_claims_take_nothing_from_the_backlogs_of_other_lanes(house: House) -> None:
    """As PostgreSQL itself counts the rows that it read: who passes over others' backlogs waits for them."""
    house.queue("https://full.example/")
    with house.deps.db.transaction() as tx:
        tx.execute(_BACKLOG)
    since = house.clock.now()
    house.clock.advance(seconds=1)
    house.queue("https://quick.example/")
    full, quick = (LaneKey(house.merchant_id, f"{host}.example:443") for host in ("full", "quick"))
    with house.deps.db.transaction() as tx:
        connection, now = tx.connection(), house.clock.now()
        tx.execute(text("ANALYZE events"))
        before = connection.scalar(_ROWS_READ)
        found = claims.lanes_due_after(connection, claims.BEFORE_ALL, most=100, now=now)
        assert found == claims.DueLanes([full, quick], claims.BEFORE_ALL)
        new = claims.lanes_due_since(connection, since, most=100, now=now)
        assert new == claims.NewlyDueLanes([quick], read_to=None)
        lease = claims.Lease(token=new_id(), worker="host:1", now=now, until=now + timedelta(seconds=60))
        rooms = Rooms(500, {quick: 500, full: 20}, {house.merchant_id: 500})
        assert Counter(map(lane_of, claims.claim_due(connection, lease, rooms))) == {quick: 1, full: 20}
        assert claims.next_due_at(connection, now=now) is None
        assert connection.scalar(_ROWS_READ) - before < 100


def test_after_an_outage_a_look_reads_some_of_what_became_due_and_the_next_goes_on_from_there(
    house: House,
) -> None:
    """The time since the last look grows while the database is away; what one look reads must not."""
    house.queue("https://full.example/")
    house.clock.advance(seconds=1)
    with house.deps.db.transaction() as tx:
        tx.execute(_BACKLOG_BEHIND)
    house.clock.advance(hours=2)
    house.queue("https://last.example/")
    since = house.clock.now() - timedelta(hours=3)
    found: list[set[str]] = []
    with house.deps.db.transaction() as tx:
        connection = tx.connection()
        tx.execute(text("ANALYZE events"))
        for _ in range(6):
            before = connection.scalar(_ROWS_READ)
            look = claims.lanes_due_since(connection, since, most=1000, now=house.clock.now())
            assert connection.scalar(_ROWS_READ) - before <= 1000 + 10
            found.append({key.destination for key in look.due})
            if look.read_to is None:
                break
            assert look.read_to > since
            since = look.read_to
    full, last = "full.example:443", "last.example:443"
    assert found == [{full}] * 5 + [{full, last}]
    assert look.read_to is None


def test_of_many_events_that_are_due_at_one_time_a_look_passes_over_none(house: House) -> None:
    since = house.clock.now()
    house.clock.advance(seconds=1)
    hosts = {f"{letter}.example" for letter in "abcde"}
    for host in sorted(hosts):
        house.queue(f"https://{host}/")
    found: set[str] = set()
    for _ in hosts:
        with house.deps.db.autocommit() as connection:
            look = claims.lanes_due_since(connection, since, most=2, now=house.clock.now())
        found |= {key.destination.removesuffix(":443") for key in look.due}
        if look.read_to is None:
            break
        since = look.read_to
    assert found == hosts


def test_an_event_far_behind_many_others_is_delivered_all_the_same(
    house: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "NEW_EVENTS_READ", 2)
    with house.engine():
        house.queue(receiver.url("first"))
        receiver.wait_for(1, path="first")
        for number in range(20):  # all due at the same moment: the clock stands still
            house.queue(receiver.url(f"of-{number}"))
        for number in range(20):
            receiver.wait_for(1, path=f"of-{number}")


# One in each second that follows.
_BACKLOG_BEHIND = text("""
INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url, destination,
    payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)
SELECT gen_random_uuid(), gen_random_uuid(), merchant_id, key_id, event_type, status, callback_url, destination,
    payload, 0, 0, next_retry_at + number * interval '1 second', created_at, updated_at
FROM events, generate_series(1, 5000) AS number
""")

_BACKLOG = text("""
INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url, destination,
    payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)
SELECT gen_random_uuid(), gen_random_uuid(), merchant_id, key_id, event_type, status, callback_url, destination,
    payload, 0, 0, next_retry_at - interval '1 hour', created_at, updated_at
FROM events, generate_series(1, 5000)
""")

_ROWS_READ = text("""
SELECT pg_stat_get_xact_tuples_returned('events'::regclass) + pg_stat_get_xact_tuples_fetched('events'::regclass)
""")


def test_while_merchants_is_away_nothing_is_sent_and_no_failure_is_counted(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    house = make_house(clock=ManualClock())
    away = make_house(clock=house.clock, identity_address="127.0.0.1:1")
    invoice_id = house.queue(receiver.url())
    with away.engine():
        house.wait(lambda: "identity" in _detail(away), "the trouble to be told")
    event = house.event(invoice_id)
    assert (event.status, event.auto_attempts, event.locked_at) == ("pending", 0, None)
    with house.engine():
        house.wait_for_status(invoice_id, "success")


def _detail(house: House) -> str:
    return house.engine_worker.health().detail


def test_a_delivery_whose_result_met_a_database_that_was_away_is_written_later_and_not_repeated(
    make_house: Callable[..., House], receiver: Receiver, postgres: PostgresServer
) -> None:
    house = make_house()
    receiver.answer(Answer(delay_seconds=0.5))
    with house.engine():
        invoice_id = house.queue(receiver.url())
        receiver.wait_for(1)
        house.flush()
        postgres.kill()
        try:
            house.wait(lambda: "Unavailable" in _detail(house), "the outage to be noticed")
        finally:
            postgres.start()
        house.wait_for_status(invoice_id, "success")
    assert len(receiver.received()) == 1
    assert house.event(invoice_id).auto_attempts == 1


def test_at_the_stop_what_was_not_begun_is_given_back_and_what_was_begun_is_written(
    make_house: Callable[..., House],
) -> None:
    house = make_house(webhook_timeout_seconds=25)
    release = threading.Event()

    def answer_late(connection: socket.socket, over: threading.Event) -> None:
        release.wait(60)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with raw_receiver(answer_late) as url:
        invoices = [house.queue(url) for _ in range(30)]
        with house.engine() as stop:
            house.wait(lambda: house.claim_count() >= 16, "the first claims")
            stop.set()
            release.set()
    events = [house.event(invoice) for invoice in invoices]
    assert all(event.locked_at is None for event in events)
    assert sum(event.status == "success" for event in events) >= 16


@pytest.mark.parametrize(("stop_seconds", "delay_seconds", "written"), [(20, 0.8, 1), (1, 600, 0)])
def test_the_stop_waits_for_a_slow_receiver_for_as_long_as_the_process_may_take(
    make_house: Callable[..., House],
    receiver: Receiver,
    stop_seconds: int,
    delay_seconds: float,
    written: int,
) -> None:
    house = make_house(webhook_timeout_seconds=25, stop_seconds=stop_seconds)
    receiver.answer_next(Answer(delay_seconds=delay_seconds))
    invoice_id = house.queue(receiver.url())
    with house.engine():
        receiver.wait_for(1)
    assert len(house.attempts(invoice_id)) == written
