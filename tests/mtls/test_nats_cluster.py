"""NATS as production has it: three servers from the values of the Helm chart, with TLS to clients and among themselves.

The chart itself does not run here. What it makes of the values is written down in `configuration`, as far as users, TLS
and the cluster are concerned.
"""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from structlog.testing import capture_logs

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from deploy.nats_rights import USERS, variable
from kit.base.ids import new_id
from kit.base.tls import Files
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Outgoing
from kit.events.bus.stream import OwnStream
from services.invoices.events import CONSUMERS, FINISHED
from services.webhooks.workers import CONSUMER
from tests.k8s.manifests import K8S
from tests.support.certificates import Authority

NAMESPACE: Final = K8S / "overlays" / "production" / "nats"
VALUES: Final[dict[str, Any]] = yaml.safe_load((NAMESPACE / "values.yaml").read_text())
NAMES: Final[list[str]] = [
    name
    for each in yaml.safe_load_all((NAMESPACE / "certificates.yaml").read_text())
    for name in each["spec"].get("dnsNames", ())
]
HOST: Final = "localhost"
SECONDS: Final = 30


def tls(block: dict[str, Any], files: Files) -> dict[str, Any]:
    """What the chart makes of a block `tls` and of `tlsCA`."""
    assert block["enabled"] and VALUES["tlsCA"]["enabled"]
    return {
        "cert_file": str(files.certificate),
        "key_file": str(files.key),
        "ca_file": str(files.ca),
        **block.get("merge", {}),
    }


def configuration(folder: Path, number: int, ports: list[int], files: Files) -> str:
    config, servers = VALUES["config"], VALUES["config"]["cluster"]["replicas"]
    clients, routes = ports[:servers], ports[servers:]
    text = json.dumps(
        {
            "server_name": f"nats-{number}",
            "host": "127.0.0.1",
            "port": clients[number],
            "tls": tls(config["nats"]["tls"], files),
            "jetstream": {"store_dir": str(folder / str(number)), **config["jetstream"]["merge"]},
            "cluster": {
                "name": "nats",
                "host": "127.0.0.1",
                "port": routes[number],
                "no_advertise": True,
                "routes": [f"tls://{HOST}:{port}" for port in routes],
                "tls": tls(config["cluster"]["tls"], files),
            },
            **config["merge"],
        }
    )
    return re.sub(r'"<< (\$\w+) >>"', r"\1", text)  # as the chart does with variables


class Cluster:
    """Three servers, their addresses and passwords."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = Authority().issue(folder / "certificate", *NAMES, HOST)
        self.passwords = {user: f"p{user}" for user in USERS}
        self.ports = free_ports(2 * VALUES["config"]["cluster"]["replicas"])
        self.servers: list[subprocess.Popen[bytes]] = []

    def url(self, user: str, number: int = 0) -> str:
        return f"tls://{user}:{self.passwords[user]}@{HOST}:{self.ports[number]}"

    def bus(self, user: str, *, number: int = 0, stream: OwnStream | None = None) -> Bus:
        return Bus(self.url(user, number), name=user, ca=str(self.files.ca), stream=stream)

    @contextmanager
    def running(self) -> Iterator[None]:
        environment = os.environ | {variable(user): password for user, password in self.passwords.items()}
        for number in range(VALUES["config"]["cluster"]["replicas"]):
            config = self.folder / f"nats-{number}.conf"
            config.write_text(configuration(self.folder, number, self.ports, self.files))
            command = [str(Path(sysconfig.get_path("scripts")) / "nats-server"), "--config", str(config)]
            log = (self.folder / f"nats-{number}.log").open("wb")
            with log:
                self.servers.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        try:
            yield
        finally:
            for server in self.servers:
                server.send_signal(signal.SIGTERM)
            for server in self.servers:
                server.wait(SECONDS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    with made.running():
        yield made


@contextmanager
def started(*buses: Bus) -> Iterator[None]:
    with ExitStack() as stack:
        for bus in buses:
            bus.start()
            stack.callback(bus.close)
            assert bus.wait_ready(SECONDS)
        yield


def test_facts_go_from_invoices_to_webhooks_by_a_stream_that_every_server_keeps(cluster: Cluster) -> None:
    replicas = VALUES["config"]["cluster"]["replicas"]
    invoices, webhooks = (
        cluster.bus("invoices", stream=OwnStream(replicas=replicas, consumers=CONSUMERS)),
        cluster.bus("webhooks", number=2),
    )
    with started(invoices, webhooks):
        facts = [Outgoing(new_id(), FINISHED, b"%d" % number) for number in range(20)]
        waiting = {fact.event_id for fact in facts}

        def published() -> bool:
            return {fact.event_id for fact in facts} == set(invoices.publish(facts))

        wait_until(published, "the facts to be stored", timeout_seconds=SECONDS)
        pull = webhooks.open_pull(CONSUMER)
        while waiting:
            taken = pull.take(16)
            assert taken, f"{len(waiting)} facts did not come"
            for event in taken:
                event.acknowledge()
                waiting.discard(event.event_id)
        webhooks.close_pull(pull)

        async def kept() -> int:
            info = await invoices._client.jsm().stream_info("FIATGATE")
            return 1 + len((info.cluster and info.cluster.replicas) or ())

        wait_until(
            lambda: invoices._loop.call(kept, timeout_seconds=SECONDS) == replicas,
            "every server to keep the stream",
            timeout_seconds=SECONDS,
        )


def test_answers_that_cross_servers_reach_no_account_but_the_one_that_asked(cluster: Cluster) -> None:
    """The consumer is on one server, the process that asks on each of them in turn."""
    replicas = VALUES["config"]["cluster"]["replicas"]
    ask = f"$JS.API.CONSUMER.MSG.NEXT.FIATGATE.{CONSUMER}"
    invoices = cluster.bus("invoices", stream=OwnStream(replicas=replicas, consumers=CONSUMERS))

    async def stored() -> int:
        return int((await invoices._client.jsm().stream_info("FIATGATE")).state.messages)

    async def attack(webhooks: Bus) -> None:
        nothing_more = b'{"batch": 1, "no_wait": true}'
        for reply in (FINISHED, "$JS.API.STREAM.PURGE.FIATGATE", "$JS.API.STREAM.DELETE.FIATGATE"):
            await webhooks._client.publish(ask, nothing_more, reply=reply)
        await webhooks._client.request(ask, nothing_more, timeout=SECONDS)

    fact = Outgoing(new_id(), FINISHED, b"kept")
    with started(invoices):
        wait_until(lambda: bool(invoices.publish([fact])), "the fact", timeout_seconds=SECONDS)
        before = invoices._loop.call(stored, timeout_seconds=SECONDS)
        for number in range(replicas):
            webhooks = cluster.bus("webhooks", number=number)
            with started(webhooks):
                webhooks._loop.call(attack, webhooks, timeout_seconds=SECONDS)
        assert invoices._loop.call(stored, timeout_seconds=SECONDS) == before


def test_a_process_forges_nothing_on_any_server(cluster: Cluster) -> None:
    for number in range(VALUES["config"]["cluster"]["replicas"]):
        catalog = cluster.bus("catalog", number=number)
        with capture_logs() as lines, started(catalog):
            catalog.hint(FINISHED, b"forged")
            wait_until(
                lambda: "permissions violation" in str(lines).lower(),
                "the refusal",
                timeout_seconds=SECONDS,
            )


def test_a_client_without_the_authority_believes_no_server(cluster: Cluster) -> None:
    with capture_logs() as lines:
        stranger = Bus(cluster.url("invoices"), name="invoices")
        stranger.start()
        wait_until(lambda: "CERTIFICATE_VERIFY_FAILED" in str(lines), "the refusal", timeout_seconds=SECONDS)
        assert not stranger.connected
        stranger.close()


def test_a_server_without_a_certificate_does_not_join(cluster: Cluster) -> None:
    """It could route messages to the others as any user."""
    route = cluster.ports[VALUES["config"]["cluster"]["replicas"]]
    context = ssl.create_default_context(cafile=str(cluster.files.ca))

    def greeting() -> bytes:
        with (
            socket.create_connection((HOST, route), timeout=SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=HOST) as wrapped,
        ):
            return wrapped.recv(1024)

    with pytest.raises(ssl.SSLError, match=r"certificate required|bad certificate"):
        greeting()
    context.load_cert_chain(cluster.files.certificate, cluster.files.key)
    assert greeting().startswith(b"INFO")
