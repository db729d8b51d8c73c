"""kit.events.bus on a real NATS that also goes away."""

import json
import queue
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from kit.events.bus.connection import Bus
from kit.events.bus.messages import HINT_MOST_BYTES, BusClosed, BusUnavailable, Incoming, Outgoing
from kit.work.worker import Stop
from tests.support.consumers import open_pull
from tests.support.servers import NatsServer

pytestmark = pytest.mark.usefixtures("patient")


def _fact(subject: str, payload: bytes = b"") -> Outgoing:
    return Outgoing(new_id(), subject, payload, request_id="req-1")


def _take(bus: Bus, durable: str, subject: str, count: int) -> list[Incoming]:
    pull = open_pull(bus, durable, subject)
    taken: list[Incoming] = []
    while len(taken) < count:
        events = pull.take(16)
        assert events, f"{len(taken)} of {count} events came"
        taken += events
    bus.close_pull(pull)
    return taken


def test_what_is_published_is_delivered_with_its_ids(bus: Bus) -> None:
    facts = [_fact("fiatgate.test.delivered", b"%d" % number) for number in range(200)]
    assert sorted(bus.publish(facts)) == sorted(fact.event_id for fact in facts)
    events = _take(bus, "delivered", "fiatgate.test.delivered", 200)
    assert {event.event_id: event.payload for event in events} == {
        fact.event_id: fact.payload for fact in facts
    }
    assert {event.request_id for event in events} == {"req-1"}


def test_a_fact_published_twice_is_stored_once(bus: Bus) -> None:
    fact, end = _fact("fiatgate.test.twice"), _fact("fiatgate.test.twice")
    assert bus.publish([fact]) == [fact.event_id]
    assert bus.publish([fact]) == [fact.event_id]
    bus.publish([end])
    events = _take(bus, "twice", "fiatgate.test.twice", 2)
    assert [event.event_id for event in events] == [fact.event_id, end.event_id]


def test_an_idle_pull_hands_on_each_event_and_does_not_wait_for_more(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.events.bus.pull.REQUEST_SECONDS", 600)  # longer than a test may last
    pull = open_pull(bus, "quick", "fiatgate.test.quick")
    taken: queue.Queue[Incoming] = queue.Queue()

    def take() -> None:
        for _ in range(20):
            (event,) = pull.take(16)
            event.acknowledge()
            taken.put(event)

    thread = threading.Thread(target=take)
    thread.start()
    for _ in range(20):
        fact = _fact("fiatgate.test.quick")
        bus.publish([fact])
        assert taken.get(timeout=60).event_id == fact.event_id
    thread.join(60)
    bus.close_pull(pull)


def test_an_event_put_off_comes_again(bus: Bus) -> None:
    fact = _fact("fiatgate.test.again")
    bus.publish([fact])
    pull = open_pull(bus, "again", "fiatgate.test.again")
    pull.take(1)[0].retry_after(0)
    assert pull.take(1)[0].event_id == fact.event_id
    bus.close_pull(pull)


def test_a_pull_whose_consumer_was_deleted_says_so_and_a_new_one_works(bus: Bus) -> None:
    pull = open_pull(bus, "deleted", "fiatgate.test.deleted")

    async def delete() -> None:
        await bus._client.jsm().delete_consumer("FIATGATE", "deleted")

    deletion = threading.Timer(0.1, lambda: bus._loop.call(delete, timeout_seconds=5))
    deletion.start()
    with pytest.raises(BusUnavailable, match="deleted"):
        for _ in range(5):
            pull.take(16)
    deletion.join(10)  # the pull hears of it before the one who asked for it
    bus.close_pull(pull)
    fact = _fact("fiatgate.test.deleted")
    bus.publish([fact])
    assert _take(bus, "deleted", "fiatgate.test.deleted", 1)[0].event_id == fact.event_id


def test_a_waiting_pull_can_be_interrupted(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kit.events.bus.pull.REQUEST_SECONDS", 600)  # longer than a test may last
    pull = open_pull(bus, "interrupted", "fiatgate.test.interrupted")
    threading.Timer(0.05, pull.interrupt).start()
    assert pull.take(16) == []
    bus.close_pull(pull)


def test_a_hint_reaches_whoever_listens(bus: Bus, make_bus: Callable[[str], Bus], nats_url: str) -> None:
    other = make_bus(nats_url)
    heard: list[tuple[str, bytes]] = []
    other.on_hint("fiatgate-hint.>", lambda subject, data: heard.append((subject, data)))
    assert other.wait_ready(5)

    def heard_after_telling() -> bool:
        bus.hint("fiatgate-hint.catalog", b"new")
        return bool(heard)

    wait_until(heard_after_telling, "the hint", timeout_seconds=5)
    assert heard[0] == ("fiatgate-hint.catalog", b"new")


def test_a_hint_larger_than_those_of_our_processes_is_dropped_unread(bus: Bus) -> None:
    heard: list[bytes] = []
    bus.on_hint("fiatgate-hint.large", lambda _subject, data: heard.append(data))

    def heard_after_telling() -> bool:
        bus.hint("fiatgate-hint.large", b"x" * (HINT_MOST_BYTES + 1))
        bus.hint("fiatgate-hint.large", b"small")
        return bool(heard)

    wait_until(heard_after_telling, "the small hint", timeout_seconds=5)
    assert set(heard) == {b"small"}


def test_a_flood_of_hints_calls_a_listener_now_and_then_and_the_last_hint_is_heard(bus: Bus) -> None:
    heard: list[bytes] = []
    bus.on_hint("fiatgate-hint.flood", lambda _subject, data: heard.append(data), every_seconds=0.5)

    def heard_after_telling() -> bool:
        bus.hint("fiatgate-hint.flood", b"first")
        return bool(heard)

    wait_until(heard_after_telling, "the first hint", timeout_seconds=5)
    for _ in range(1000):
        bus.hint("fiatgate-hint.flood", b"again")
    bus.hint("fiatgate-hint.flood", b"last")
    wait_until(lambda: heard[-1] == b"last", "the last hint", timeout_seconds=30)
    assert len(heard) < 100, "one call in half a second"


def test_a_listener_that_raises_hears_the_next_hint(bus: Bus) -> None:
    heard: list[bytes] = []

    def listen(_subject: str, data: bytes) -> None:
        heard.append(data)
        raise ValueError("a listener's bug")

    bus.on_hint("fiatgate-hint.bug", listen)

    def told_twice() -> bool:
        bus.hint("fiatgate-hint.bug")
        return len(heard) >= 2

    wait_until(told_twice, "two hints", timeout_seconds=5)


def test_a_bus_starts_without_nats_and_connects_when_it_comes(
    nats_server: NatsServer, make_bus: Callable[[str], Bus]
) -> None:
    nats_server.stop()
    bus = make_bus(nats_server.url)
    try:
        heard = threading.Event()
        bus.on_hint("fiatgate-hint.late", lambda _subject, _data: heard.set())
        bus.hint("fiatgate-hint.late")
        with pytest.raises(BusUnavailable):
            bus.publish([_fact("fiatgate.test.late")])
        with pytest.raises(BusUnavailable):
            bus.open_pull("late")
        assert bus.healthy
    finally:
        nats_server.start()
    assert bus.wait_ready(15)
    assert len(bus.publish([_fact("fiatgate.test.late")])) == 1

    def heard_after_telling() -> bool:
        bus.hint("fiatgate-hint.late")
        return heard.is_set()

    wait_until(heard_after_telling, "a hint", timeout_seconds=5)


def test_a_restart_of_nats_heals_publishing_pulling_and_hints(bus: Bus, nats_server: NatsServer) -> None:
    heard = threading.Event()
    bus.on_hint("fiatgate-hint.restart", lambda _subject, _data: heard.set())
    pull = open_pull(bus, "restart", "fiatgate.test.restart")
    before = _fact("fiatgate.test.restart")
    bus.publish([before])
    assert pull.take(16)[0].event_id == before.event_id
    nats_server.kill()
    nats_server.start()
    assert bus.wait_ready(15)
    after = _fact("fiatgate.test.restart")
    wait_until(lambda: len(bus.publish([after])) == 1, "the publication", timeout_seconds=15)
    taken: list[uuid.UUID] = []

    def taken_after() -> bool:
        taken.extend(event.event_id for event in pull.take(16))
        return after.event_id in taken

    wait_until(taken_after, "the event on the old pull", timeout_seconds=15)

    def heard_after_telling() -> bool:
        bus.hint("fiatgate-hint.restart")
        return heard.is_set()

    wait_until(heard_after_telling, "a hint", timeout_seconds=5)
    bus.close_pull(pull)


def test_a_deleted_stream_is_made_again_and_can_be_told_from_the_old_one(bus: Bus) -> None:
    first = bus.stream_seen

    async def delete() -> None:
        await bus._client.jsm().delete_stream("FIATGATE")

    bus._loop.call(delete, timeout_seconds=5)
    fact = _fact("fiatgate.test.stream")
    wait_until(lambda: bus.publish([fact]) == [fact.event_id], "the publication", timeout_seconds=15)
    assert first is not None
    assert bus.stream_seen is not None
    assert bus.stream_seen.created_at > first.created_at
    page = bus.read(since=first.created_at, limit=10)
    assert page.begins_at == bus.stream_seen.created_at


def test_a_reader_hears_from_which_time_on_the_stream_is_whole(bus: Bus) -> None:
    def begins_at() -> datetime:
        return bus.read(since=datetime(2026, 1, 1, tzinfo=UTC), limit=1000).begins_at

    async def remove() -> None:
        await bus._client.jsm().purge_stream("FIATGATE")

    subject = "fiatgate.test.whole"
    bus.publish([_fact(subject)])
    before = begins_at()
    bus.publish([_fact(subject)])
    assert begins_at() == before
    (*_, newest) = bus.read(since=before, limit=1000).facts
    bus._loop.call(remove, timeout_seconds=5)
    assert begins_at() == newest.stored_at, "an empty stream: after the last that was removed"
    bus.publish([_fact(subject)])
    (left,) = bus.read(since=before, limit=1000).facts
    assert begins_at() == left.stored_at > newest.stored_at


def test_a_connection_given_up_for_good_ends_the_worker_that_watches_it(bus: Bus) -> None:
    bus._loop.call(bus._client.close, timeout_seconds=5)
    assert not bus.healthy
    with pytest.raises(BusClosed):
        bus.run(Stop())
    with pytest.raises(BusClosed):
        bus.publish([_fact("fiatgate.test.closed")])


def test_one_server_of_several_is_enough_at_the_start(make_bus: Callable[[str], Bus], nats_url: str) -> None:
    away = [f"nats://operator:wrong@127.0.0.1:{port}" for port in free_ports(2)]
    bus = make_bus(",".join([nats_url, *away]))
    assert bus.wait_ready(30)
    fact = _fact("fiatgate.test.several")
    assert bus.publish([fact]) == [fact.event_id]


class _OfACluster(NatsServer):
    """A server of a cluster, without JetStream."""

    def __init__(self, folder: Path, *, port: int, others: list[int]) -> None:
        super().__init__(folder)
        routes = [f"nats://127.0.0.1:{each}" for each in others]
        self._cluster = {"name": "tests", "host": "127.0.0.1", "port": port, "routes": routes}

    def _prepare(self) -> None:
        super()._prepare()
        (file,) = self.folder.glob("*.json")
        config = json.loads(file.read_text())
        del config["jetstream"]
        file.write_text(json.dumps(config | {"server_name": self.folder.name, "cluster": self._cluster}))


def test_a_server_that_the_cluster_reports_is_reached_with_the_same_password(
    tmp_path: Path, make_bus: Callable[[str], Bus]
) -> None:
    ports = free_ports(2)
    first, second = (
        _OfACluster(tmp_path / name, port=port, others=ports)
        for name, port in zip(("first", "second"), ports, strict=True)
    )
    first.start()
    second.start()
    try:
        bus = make_bus(first.url)
        wait_until(lambda: bus.connected, "the connection", timeout_seconds=30)
        wait_until(
            lambda: bool(bus._client.discovered_servers), "the report of the cluster", timeout_seconds=30
        )
        first.kill()
        wait_until(
            lambda: bus.connected and f":{second.port}" in str(bus._client.connected_url),
            "the connection to the other server",
            timeout_seconds=60,
        )
    finally:
        second.stop()
        first.stop()
