"""The users of NATS at work: what each needs works, strangers are refused, and installations get users without loss."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import nats.aio.client
import nats.errors
import pytest
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from deploy.nats_rights import DURABLES, USERS
from gateway.pay import page
from kit.base.ids import new_id
from kit.events.bus.connection import Bus
from kit.events.bus.messages import REFUSED, BusUnavailable, Outgoing
from kit.events.bus.stream import OwnStream
from kit.events.hints import Hints
from services.catalog.events import CATALOG_CHANGED
from services.invoices.events import CONSUMERS
from services.invoices.events import FINISHED as FACT
from tests.support.nats_users import Client
from tests.support.servers import NatsServer


def owners(url: str) -> Bus:
    return Bus(url, name="invoices", stream=OwnStream(replicas=1, consumers=CONSUMERS))


# -- strangers


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
        bus = owners(f"nats://invoices:wrong@127.0.0.1:{nats_server.port}")
        bus.start()
        wait_until(lambda: bool(lines), "the log line", timeout_seconds=10)
        wait_until(
            lambda: bus.health().detail == "NATS refuses the password of this process",
            "the reason in the health of the bus",
            timeout_seconds=10,
        )
        wait_until(lambda: REFUSED.labels("password")._value.get() > before, "the count", timeout_seconds=10)
        assert not bus.connected and bus.healthy
        bus.close()
    assert "Authorization Violation" in str(lines)
    assert "wrong" not in str(lines)


# -- an installation gets its users


class WithoutAccounts(NatsServer):
    """Everything is in the server's one account, as before there were accounts."""

    def _prepare(self) -> None:
        super()._prepare()
        written = self.folder / "nats.json"
        config: dict[str, Any] = json.loads(written.read_text())
        users = [user for account in config.pop("accounts").values() for user in account["users"]]
        config["authorization"] = {"users": [each | {"permissions": {"publish": ">"}} for each in users]}
        written.write_text(json.dumps(config))


# -- what they need works


def test_with_its_rights_a_consumer_waits_for_the_stream_and_settles_what_comes(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    server.start()
    owner = owners(server.url_of("invoices"))
    others = [Bus(server.url_of(user), name=user) for user in DURABLES]
    try:
        for bus in others:
            bus.start()
            assert bus.wait_ready(10)
            pull = bus.open_pull(DURABLES[bus._client_name])
            with pytest.raises(BusUnavailable, match="is not there"):
                pull.take(16)
            bus.close_pull(pull)
        owner.start()
        assert owner.wait_ready(10) and owner.stream_seen is not None
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
    pull, put_off, settled = bus.open_pull(durable), set(), set()
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
    received: set[str] = set()
    changed = f"{page.HINT}.0198"
    invoices_bus, catalog = (Bus(nats_server.url_of(user), name=user) for user in ("invoices", "catalog"))
    invoices_bus.on_hint(CATALOG_CHANGED, lambda subject, _: received.add(subject))
    for bus in (invoices_bus, catalog):
        bus.start()
        assert bus.wait_ready(10)

    async def gateway() -> None:
        async with (
            Hints(nats_server.url_of("gateway"), name="gateway") as hints,
            hints.listening(changed, lambda subject, _: received.add(subject)),
            asyncio.timeout(10),
        ):
            while received != {changed, CATALOG_CHANGED}:
                invoices_bus.hint(changed)
                catalog.hint(CATALOG_CHANGED)
                await asyncio.sleep(0.05)

    asyncio.run(gateway())
    for bus in (invoices_bus, catalog):
        bus.close()


def test_the_passwords_are_in_a_file_for_us_alone(nats_server: NatsServer) -> None:
    (config,) = nats_server.folder.glob("nats.json")
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    for user in USERS:
        assert f"{user}-password" in config.read_text()
