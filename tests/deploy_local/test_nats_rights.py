"""The users of NATS on a real server with the configuration of `make run`: what each may do and what it may not.

The whole stack runs with these users as well: what a process needs and may not do fails in the tests of the stack.
"""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import nats.aio.client
import nats.errors
import nats.js.errors
import pytest
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from deploy.nats_rights import OPERATOR, PROCESSES, RIGHTS, STREAM, USERS
from gateway import limits
from gateway.hints import Hints
from gateway.pay import live
from kit.bus import STREAM as STREAM_OF_THE_CODE
from kit.bus import Bus, Outgoing
from kit.bus.messages import DROPPED, REFUSED
from kit.ids import new_id
from services.catalog.events import CATALOG_CHANGED
from services.invoices import events as invoices
from services.invoices.clients import CATALOG_HINT
from services.webhooks import workers as webhooks
from services.webhooks.events import INVOICE_FINISHED_SUBJECT
from services.withdrawals import workers as withdrawals
from services.withdrawals.events import INVOICE_FINISHED
from tests.support.servers import NatsServer

Client = nats.aio.client.Client

FACT: Final = "fiatgate.invoices.finished"
DURABLES: Final = {"withdrawals": withdrawals.CONSUMER, "webhooks": webhooks.CONSUMER}

MANAGING: Final = tuple(
    f"$JS.API.{call}"
    for call in (
        f"STREAM.PURGE.{STREAM}",
        f"STREAM.DELETE.{STREAM}",
        f"STREAM.MSG.DELETE.{STREAM}",
        f"STREAM.MSG.GET.{STREAM}",
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
    "fiatgate-hint.invoice.0198": "invoices",
    CATALOG_CHANGED: "catalog",
    limits.SUBJECT: "gateway",
    **{
        subject: user
        for user, durable in DURABLES.items()
        for subject in (
            f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{durable}",
            f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{durable}",
            f"$JS.ACK.{STREAM}.{durable}.1.1.1.1.0",
        )
    },
}
"""What one process may publish and no other."""

FOR_NOBODY: Final = (
    "fiatgate.withdrawals.paid",  # of the stream, but nobody's fact
    "fiatgate-hint.other",
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
    limits.SUBJECT: {"gateway"},
    FACT: set[str](),  # facts come through the consumers
    "fiatgate.>": set[str](),
    ">": set[str](),
    "$JS.>": set[str](),
    "_INBOX.>": set[str](),
    **{f"_INBOX.{user}.>": {user} for user in ("invoices", *DURABLES)},
    "_INBOX.operator.>": set[str](),
}
"""Which processes may hear it."""

PUBLISHED: Final = [
    (user, subject, OWNED.get(subject) == user or user == OPERATOR)
    for user in USERS
    for subject in (*OWNED, *MANAGING, *FOR_NOBODY)
]
SUBSCRIBED: Final = [
    (user, subject, user in processes or user == OPERATOR)
    for user in USERS
    for subject, processes in HEARD.items()
]


async def _connect(server: NatsServer, user: str, refused: list[str]) -> Client:
    async def note(error: Exception) -> None:
        refused.append(str(error))

    return await nats.connect(
        server.url_of(user), inbox_prefix=f"_INBOX.{user}", error_cb=note, allow_reconnect=False
    )


def refusals(server: NatsServer, user: str, act: Callable[[Client], Awaitable[object]]) -> list[str]:
    """What the server refuses to a user who does this."""
    refused: list[str] = []

    async def run() -> None:
        client = await _connect(server, user, refused)
        await act(client)
        await client.flush()  # its ping overtakes what is sent
        await client.flush()  # the answer to this one comes after every refusal
        await client.close()

    asyncio.run(run())
    return refused


# -- the table


@pytest.mark.parametrize("user", USERS)
def test_a_user_publishes_its_own_subjects_and_no_others(nats_server: NatsServer, user: str) -> None:
    wrong = []
    for one, subject, allowed in PUBLISHED:
        if one == user:
            refused = refusals(nats_server, user, lambda client, to=subject: client.publish(to, b"{}"))  # type: ignore[misc]
            if bool(refused) == allowed:
                wrong.append((subject, refused))
    assert not wrong


@pytest.mark.parametrize("user", USERS)
def test_a_user_hears_its_own_subjects_and_no_others(nats_server: NatsServer, user: str) -> None:
    wrong = []
    for one, subject, allowed in SUBSCRIBED:
        if one == user:
            refused = refusals(nats_server, user, lambda client, to=subject: client.subscribe(to))  # type: ignore[misc]
            if bool(refused) == allowed:
                wrong.append((subject, refused))
    assert not wrong


def test_the_table_has_the_names_of_the_code() -> None:
    assert STREAM == STREAM_OF_THE_CODE
    assert {invoices.FINISHED, INVOICE_FINISHED_SUBJECT, INVOICE_FINISHED} == {FACT}
    assert CATALOG_HINT == CATALOG_CHANGED
    assert live.HINT == invoices.CHANGED_HINT
    for process in PROCESSES:
        assert all(subjects for subjects in RIGHTS[process].publish), "each publishes something"


# -- attacks


def stored(server: NatsServer) -> int:
    async def ask() -> int:
        client = await nats.connect(server.url)
        info = await client.jetstream().stream_info(STREAM)
        await client.close()
        return int(info.state.messages)

    return asyncio.run(ask())


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


def test_the_right_to_make_ones_own_consumer_makes_no_other(
    nats_server: NatsServer, invoices_bus: Bus
) -> None:
    """The server holds the name in the request against the one in the subject."""
    own, other = DURABLES["withdrawals"], "another"

    async def attack(client: Client) -> None:
        config = {"durable_name": other, "ack_policy": "none", "deliver_policy": "all"}
        request = json.dumps({"stream_name": STREAM, "config": config}).encode()
        answer = await client.request(f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{own}", request, timeout=5)
        assert "error" in json.loads(answer.data)

    assert not refusals(nats_server, "withdrawals", attack)

    async def consumers() -> set[str]:
        client = await nats.connect(nats_server.url)
        found = {each.name for each in await client.jsm().consumers_info(STREAM)}
        await client.close()
        return found

    assert other not in asyncio.run(consumers())


def test_a_delivery_asked_for_to_the_facts_own_subject_changes_no_fact(
    nats_server: NatsServer, invoices_bus: Bus
) -> None:
    """The server does not check where an answer goes: a consumer can have JetStream's answers stored as facts.

    What JetStream delivers has the id and the content it had. What it says itself has no id and is dropped.
    """
    fact = Outgoing(new_id(), FACT, b"as it was made")
    assert invoices_bus.publish([fact]) == [fact.event_id]
    attacker, webhook = (Bus(nats_server.url_of(user), name=user) for user in ("withdrawals", "webhooks"))
    for bus in (attacker, webhook):
        bus.start()
        assert bus.wait_ready(10)
    attacker.close_pull(attacker.open_pull(withdrawals.CONSUMER, FACT))
    before, dropped = stored(nats_server), DROPPED._value.get()
    next_message = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{withdrawals.CONSUMER}"
    request = json.dumps({"batch": 100, "no_wait": True}).encode()
    refusals(nats_server, "withdrawals", lambda client: client.publish(next_message, request, reply=FACT))
    wait_until(lambda: stored(nats_server) > before, "something strange", timeout_seconds=10)

    pull = webhook.open_pull(webhooks.CONSUMER, FACT)
    taken: list[tuple[object, bytes]] = []

    def has_dropped() -> bool:
        for event in pull.take(16):
            taken.append((event.event_id, event.payload))
            event.acknowledge()
        return bool(DROPPED._value.get() > dropped)

    wait_until(has_dropped, "the strange message to be dropped", timeout_seconds=10)
    for bus in (attacker, webhook):
        bus.close()
    assert (fact.event_id, fact.payload) in taken
    assert len(taken) == len({event_id for event_id, _ in taken}), "no other content under any id"


@pytest.mark.parametrize(
    "credentials", ["", "invoices:wrong@", "stranger:secret@", "operator:@"], ids=lambda text: text or "none"
)
def test_a_stranger_gets_no_connection(nats_server: NatsServer, credentials: str) -> None:
    async def quiet(_error: Exception) -> None:
        """It is raised as well."""

    async def knock() -> None:
        url = f"nats://{credentials}127.0.0.1:{nats_server.port}"
        client = Client()
        with pytest.raises(nats.errors.Error, match="Authorization Violation"):
            await client.connect(url, allow_reconnect=False, error_cb=quiet)
        await client.close()

    asyncio.run(knock())


def test_a_bus_with_a_wrong_password_says_so_and_goes_on_trying(nats_server: NatsServer) -> None:
    before = REFUSED.labels("password")._value.get()
    with capture_logs() as lines:
        bus = Bus(f"nats://invoices:wrong@127.0.0.1:{nats_server.port}", name="invoices", replicas=1)
        bus.start()
        wait_until(lambda: bool(lines), "the log line", timeout_seconds=10)
        assert not bus.connected and bus.healthy
        bus.close()
    assert "Authorization Violation" in lines[0]["error"]
    assert "wrong" not in str(lines)
    assert REFUSED.labels("password")._value.get() > before


# -- an installation gets its users


class InTransition(NatsServer):
    """The users are there, and a connection without a password is still one that may do everything."""

    def _prepare(self) -> None:
        super()._prepare()
        written = self.folder / "nats.json"
        config = json.loads(written.read_text())
        config["no_auth_user"] = "everybody"
        config["authorization"]["users"].append({"user": "everybody", "password": "of-nobody"})
        written.write_text(json.dumps(config))


def test_while_an_installation_gets_its_users_old_processes_work_beside_new_ones(tmp_path: Path) -> None:
    server = InTransition(tmp_path / "nats")
    server.start()
    old = Bus(f"nats://127.0.0.1:{server.port}", name="old", replicas=1)
    new = Bus(server.url_of("withdrawals"), name="withdrawals")
    try:
        for bus in (old, new):
            bus.start()
            assert bus.wait_ready(10)
        fact = Outgoing(new_id(), FACT, b"of the version before")
        assert old.publish([fact]) == [fact.event_id]
        _take_all(new, withdrawals.CONSUMER, {fact.event_id})
        assert refusals(server, "withdrawals", lambda client: client.publish(FACT, b"forged")), (
            "a process with a password has its own rights already"
        )
    finally:
        for bus in (old, new):
            bus.close()
        server.stop()


# -- what they need works


def test_with_its_rights_a_consumer_waits_for_the_stream_and_settles_what_comes(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    server.start()
    owner = Bus(server.url_of("invoices"), name="invoices", replicas=1)
    others = [Bus(server.url_of(user), name=user) for user in DURABLES]
    try:
        for bus in others:
            bus.start()
            assert bus.wait_ready(10)
            with pytest.raises(Exception, match="is not there yet"):
                bus.open_pull(DURABLES[bus._client_name], FACT)
        owner.start()
        assert owner.wait_ready(10) and owner.stream_created_at is not None
        facts = [Outgoing(new_id(), FACT, b"%d" % number) for number in range(3)]
        assert len(owner.publish(facts)) == 3
        for bus in others:
            _take_all(bus, DURABLES[bus._client_name], {fact.event_id for fact in facts})
    finally:
        for bus in (owner, *others):
            bus.close()
        server.stop()


def _take_all(bus: Bus, durable: str, expected: set[object]) -> None:
    """Put each off once, then acknowledge it; the consumer has nothing left then."""
    pull, put_off, settled = bus.open_pull(durable, FACT), set(), set()
    for _ in range(20):
        for event in pull.take(16):
            if event.event_id in put_off:
                event.acknowledge()
                settled.add(event.event_id)
            else:
                event.retry_after(0)
                put_off.add(event.event_id)
        if settled == expected:
            break
    bus.close_pull(pull)
    assert settled == expected


def test_with_their_rights_hints_reach_those_that_use_them(nats_server: NatsServer) -> None:
    heard: list[str] = []

    async def gateways(tell: Callable[[Hints], Awaitable[None]]) -> None:
        async with Hints(nats_server.url_of("gateway"), name="gateway") as hints:
            hints.on_hint(f"{live.HINT}.0198", lambda subject, _: heard.append(subject))
            hints.on_hint(limits.SUBJECT, lambda subject, _: heard.append(subject))
            await tell(hints)

    invoices_bus, catalog = (Bus(nats_server.url_of(user), name=user) for user in ("invoices", "catalog"))
    invoices_bus.on_hint(CATALOG_CHANGED, lambda subject, _: heard.append(subject))
    for bus in (invoices_bus, catalog):
        bus.start()
        assert bus.wait_ready(10)

    async def tell(hints: Hints) -> None:
        expected = {f"{live.HINT}.0198", limits.SUBJECT, CATALOG_CHANGED}
        async with asyncio.timeout(10):
            while set(heard) != expected:
                invoices_bus.hint(f"{live.HINT}.0198")
                catalog.hint(CATALOG_CHANGED)
                await hints.hint(limits.SUBJECT)
                await asyncio.sleep(0.05)

    asyncio.run(gateways(tell))
    for bus in (invoices_bus, catalog):
        bus.close()


def test_the_passwords_are_in_a_file_for_us_alone(nats_server: NatsServer) -> None:
    (config,) = nats_server.folder.glob("nats.json")
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    for user in USERS:
        assert f"{user}-password" in config.read_text()
