"""The rights on NATS on a real server with the configuration of `make run`: what each user may do and what it may not.

The whole stack runs with these users as well: what a process needs and may not do fails in the tests of the stack.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from deploy.local.waiting import wait_until
from deploy.nats_rights import (
    ANSWERS_SECONDS,
    CONTROL_LINE_MOST_BYTES,
    DURABLES,
    OPERATOR,
    OWNERS,
    PROCESSES,
    RIGHTS,
    USERS,
    accounts,
)
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.events.bus import reading
from kit.events.bus.connection import Bus
from kit.events.bus.messages import BusRefused, BusUnavailable, Outgoing
from kit.events.bus.pull import REQUEST_SECONDS
from kit.events.bus.stream import OwnStream
from kit.events.subjects import STREAM
from services.catalog.events import CATALOG_CHANGED
from services.invoices import errors
from services.invoices import events as invoices
from services.webhooks import workers as webhooks
from services.withdrawals import workers as withdrawals
from tests.support.nats_users import Client, consumers, refusals, stored
from tests.support.servers import NatsServer

FACT: Final = invoices.FINISHED
MANAGING: Final = tuple(
    f"$JS.API.{call}"
    for call in (
        f"STREAM.PURGE.{STREAM}",
        f"STREAM.DELETE.{STREAM}",
        f"STREAM.MSG.DELETE.{STREAM}",
        f"STREAM.SNAPSHOT.{STREAM}",
        f"STREAM.RESTORE.{STREAM}",
        "STREAM.CREATE.SHADOW",
        "ACCOUNT.PURGE.$G",
        *(
            f"CONSUMER.{call}.{STREAM}.{durable}"
            for durable in DURABLES.values()
            for call in ("DELETE", "PAUSE")
        ),
    )
)
"""What the operator may do and no process."""

OWNED: Final = {
    FACT: "invoices",
    "fiatgate.invoices.anything": "invoices",
    f"$JS.API.STREAM.CREATE.{STREAM}": "invoices",
    f"$JS.API.STREAM.UPDATE.{STREAM}": "invoices",
    f"$JS.API.STREAM.INFO.{STREAM}": "invoices",
    f"$JS.API.STREAM.MSG.GET.{STREAM}": "invoices",
    "fiatgate-hint.invoice.0198": "invoices",
    CATALOG_CHANGED: "catalog",
    **{
        f"$JS.API.CONSUMER.{call}.{STREAM}.{durable}": "invoices"
        for durable in DURABLES.values()
        for call in ("INFO", "DURABLE.CREATE")
    },
    **{
        subject: user
        for user, durable in DURABLES.items()
        for subject in (
            f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{durable}",
            f"$JS.ACK.{STREAM}.{durable}.1.1.1.1.0",
        )
    },
}
"""What one process may publish and no other."""

FOR_NOBODY: Final = (
    "fiatgate.withdrawals.paid",  # of the stream, but nobody's fact
    "fiatgate-hint.other",
    "fiatgate-hint.requests-counted",  # no process publishes it
    f"$JS.API.CONSUMER.CREATE.{STREAM}",
    f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.another",
    f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.another",
    "$JS.API.STREAM.NAMES",
    "$SYS.REQ.SERVER.PING",
    "anything",
    *(f"_INBOX.{user}.reply" for user in USERS),  # an answer comes from the server alone
)

HEARD: Final = {
    CATALOG_CHANGED: {"invoices"},
    "fiatgate-hint.invoice.*": {"gateway"},
    FACT: set[str](),  # facts come through the consumers
    "fiatgate.>": set[str](),
    ">": set[str](),
    "$JS.>": set[str](),
    "_INBOX.>": set[str](),
    **{f"_INBOX.{user}.>": {user} for user in ("invoices", *DURABLES)},
    "_INBOX.operator.>": set[str](),
}
"""Which processes may hear it."""


# -- the table


def refused_of(server: NatsServer, user: str, subjects: Iterable[str], *, publishes: bool) -> set[str]:
    async def act(client: Client) -> None:
        for subject in subjects:
            await (client.publish(subject, b"{}") if publishes else client.subscribe(subject))

    refused = " ".join(refusals(server, user, act)).lower()
    return {each for each in subjects if f'"{each}"'.lower() in refused}


@pytest.mark.parametrize("user", USERS)
def test_a_user_publishes_its_own_subjects_and_no_others(nats_server: NatsServer, user: str) -> None:
    subjects = {*OWNED, *MANAGING, *FOR_NOBODY}
    allowed = subjects if user == OPERATOR else {each for each in OWNED if OWNED[each] == user}
    assert refused_of(nats_server, user, subjects, publishes=True) == subjects - allowed


@pytest.mark.parametrize("user", USERS)
def test_a_user_hears_its_own_subjects_and_no_others(nats_server: NatsServer, user: str) -> None:
    allowed = {subject for subject, users in HEARD.items() if user in users or user == OPERATOR}
    assert refused_of(nats_server, user, HEARD, publishes=False) == HEARD.keys() - allowed


def test_the_table_has_the_names_of_the_code() -> None:
    assert {"withdrawals": withdrawals.CONSUMER, "webhooks": webhooks.CONSUMER} == DURABLES
    assert set(invoices.CONSUMERS) == set(DURABLES.values()), "invoices makes the consumers"
    for process in PROCESSES:
        assert all(subjects for subjects in RIGHTS[process].publish), "each publishes something"


# -- attacks


@pytest.mark.parametrize("user", [user for user in PROCESSES if user != "invoices"])
def test_no_other_process_can_forge_a_finished_invoice(
    nats_server: NatsServer, invoices_bus: Bus, user: str
) -> None:
    before = stored(nats_server)
    forged = {"Nats-Msg-Id": str(new_id())}
    assert refusals(nats_server, user, lambda client: client.publish(FACT, b"a million USDT", headers=forged))
    assert stored(nats_server) == before


@pytest.mark.parametrize("user", PROCESSES)
def test_no_process_can_empty_or_delete_the_stream(
    nats_server: NatsServer, invoices_bus: Bus, user: str
) -> None:
    fact = Outgoing(new_id(), FACT, b"kept")
    assert invoices_bus.publish([fact]) == [fact.event_id]
    before = stored(nats_server)

    async def attack(client: Client) -> None:
        for call in ("PURGE", "DELETE"):
            await client.publish(f"$JS.API.STREAM.{call}.{STREAM}", b"")

    assert len(refusals(nats_server, user, attack)) == 2
    assert stored(nats_server) == before


ANSWERED: Final = (
    FACT,
    f"$JS.API.STREAM.PURGE.{STREAM}",
    f"$JS.API.STREAM.DELETE.{STREAM}",
    *(f"$JS.API.CONSUMER.DELETE.{STREAM}.{durable}" for durable in DURABLES.values()),
)
"""Where a process that was taken over has JetStream send its answers: the server checks no permission there."""


class WithoutPermissions(NatsServer):
    """Only the accounts are left of what a user may not do."""

    def _prepare(self) -> None:
        super()._prepare()
        written = self.folder / "nats.json"
        config = json.loads(written.read_text())
        for account in config["accounts"].values():
            for user in account["users"]:
                user["permissions"] = {"publish": ">", "subscribe": ">"}
        written.write_text(json.dumps(config))


@pytest.fixture
def unguarded(tmp_path: Path) -> Iterator[NatsServer]:
    server = WithoutPermissions(tmp_path / "nats")
    server.start()
    yield server
    server.stop()


class OfAnEarlierVersion(NatsServer):
    """The user `invoices` may not read single messages yet."""

    def _prepare(self) -> None:
        super()._prepare()
        written = self.folder / "nats.json"
        config = json.loads(written.read_text())
        (user,) = (each for each in config["accounts"][STREAM]["users"] if each["user"] == "invoices")
        user["permissions"]["publish"]["allow"].remove(f"$JS.API.STREAM.MSG.GET.{STREAM}")
        written.write_text(json.dumps(config))


def test_a_right_that_the_server_does_not_give_yet_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the call only times out."""
    monkeypatch.setattr(reading, "READ_TIMEOUT_SECONDS", 0.5)
    server = OfAnEarlierVersion(tmp_path / "nats")
    server.start()
    bus = Bus(server.url_of("invoices"), name="invoices", stream=OwnStream(replicas=1))
    try:
        bus.start()
        assert bus.wait_ready(10)
        assert bus.publish([Outgoing(new_id(), FACT, b"kept")])
        since = SystemClock().now() - timedelta(minutes=1)
        with pytest.raises(BusRefused, match=rf'(?i)for publish to "\$JS.API.STREAM.MSG.GET.{STREAM}"'):
            bus.read(since=since, limit=10)
        assert "docs/operations/install.md#users-of-nats" in errors.nats_refuses("…").message
        server.stop()
        wait_until(lambda: not bus.connected, "the bus to notice", timeout_seconds=10)
        with pytest.raises(BusUnavailable) as away:
            bus.read(since=since, limit=10)
        assert not isinstance(away.value, BusRefused)
    finally:
        bus.close()
        server.stop()


def answers_sent_elsewhere(user: str) -> Callable[[Client], Awaitable[None]]:
    """Asks what the user may ask, and has the answers sent to where it may not publish."""
    durable = DURABLES[user]
    ask, settle = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{durable}", f"$JS.ACK.{STREAM}.{durable}.1.1.1.1.0"
    nothing_more = json.dumps({"batch": 1, "no_wait": True}).encode()

    async def attack(client: Client) -> None:
        for reply in ANSWERED:
            await client.publish(ask, nothing_more, reply=reply)
            await client.publish(ask, nothing_more, reply=reply, headers={"Nats-Trace-Dest": reply})
            await client.publish(settle, b"+NXT " + nothing_more, reply=reply)
        await client.request(ask, nothing_more, timeout=10)  # the answers before this one have been sent

    return attack


@pytest.mark.parametrize("user", DURABLES)
def test_no_answer_of_the_server_can_be_sent_into_the_stream_or_to_its_managers(
    nats_server: NatsServer, invoices_bus: Bus, user: str
) -> None:
    reader = Bus(nats_server.url_of(user), name=user)
    reader.start()
    assert reader.wait_ready(10)
    fact = Outgoing(new_id(), FACT, b"kept")
    assert invoices_bus.publish([fact]) == [fact.event_id]
    _take_until(reader, fact)  # an answer without content does more: it is a request without content
    before = stored(nats_server)
    refusals(nats_server, user, answers_sent_elsewhere(user))
    assert stored(nats_server) == before
    assert consumers(nats_server) == set(DURABLES.values())
    reader.close()


def test_the_server_remembers_where_an_answer_goes_hardly_longer_than_the_request_is_open() -> None:
    """Otherwise a user who asks without end fills the server's memory."""
    assert REQUEST_SECONDS + 0.5 <= ANSWERS_SECONDS <= REQUEST_SECONDS + 1
    exports = accounts(dict.fromkeys(USERS, ""))[STREAM]["exports"]
    thresholds = {each["response_threshold"] for each in exports if "service" in each}
    assert thresholds == {f"{ANSWERS_SECONDS}s"}


def test_a_subject_for_answers_can_not_be_long(nats_server: NatsServer) -> None:
    """The server remembers tens of thousands of them a second."""
    who = json.dumps({"user": "webhooks", "pass": "webhooks-password", "verbose": False})
    ask = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{DURABLES['webhooks']}"
    reply = f"_INBOX.webhooks.{'x' * CONTROL_LINE_MOST_BYTES}"
    with (
        socket.create_connection(("127.0.0.1", nats_server.port), timeout=10) as connection,
        connection.makefile("r") as answers,
    ):
        connection.sendall(f"CONNECT {who}\r\nPUB {ask} {reply} 2\r\n-1\r\nPING\r\n".encode())
        assert answers.readline().startswith("INFO")
        assert "maximum control line" in answers.readline().lower()


def _take_until(bus: Bus, fact: Outgoing) -> None:
    pull = bus.open_pull(DURABLES[bus._client_name])

    def came() -> bool:
        events = pull.take(16)
        for event in events:
            event.acknowledge()
        return fact.event_id in {event.event_id for event in events}

    wait_until(came, "the fact", timeout_seconds=10)
    bus.close_pull(pull)


def test_without_its_permissions_a_process_still_has_no_way_to_the_stream(unguarded: NatsServer) -> None:
    """Accounts hold by themselves: nothing goes from one to another that the table does not name."""
    owner = Bus(
        unguarded.url_of("invoices"),
        name="invoices",
        stream=OwnStream(replicas=1, consumers=invoices.CONSUMERS),
    )
    owner.start()
    assert owner.wait_ready(10)
    fact = Outgoing(new_id(), FACT, b"kept")
    assert owner.publish([fact]) == [fact.event_id]

    async def attack(client: Client) -> None:
        push = {"durable_name": "push", "deliver_subject": MANAGING[0], "headers_only": True}
        create = json.dumps({"stream_name": STREAM, "config": push}).encode()
        for subject in (*ANSWERED, *MANAGING):
            await client.publish(subject, b"")
        for durable in ("push", *DURABLES.values()):
            await client.publish(f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{durable}", create)

    for user in PROCESSES:
        if user not in OWNERS:
            assert not refusals(unguarded, user, attack)
    owner.close()
    assert stored(unguarded) == 1
    assert consumers(unguarded) == set(DURABLES.values())
