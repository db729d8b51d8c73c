"""NATS as a cluster of three servers on loopback, with the users of every deployment, whose servers can be killed."""

import asyncio
from pathlib import Path
from typing import Any, Final, Self

import nats
import nats.errors

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from deploy.nats_rights import OPERATOR, PROCESSES
from kit.events.subjects import STREAM
from tests.support.servers import NatsServer

SERVERS: Final = 3
_SECONDS: Final = 30
_ASK_SECONDS: Final = 2


class NatsCluster:
    """Use as a context manager: all servers run when the block begins, none at its end.

    A stack uses it with `settings` in its environment. The stack's own NATS then has no client.
    """

    def __init__(self, folder: Path) -> None:
        ports = free_ports(SERVERS)
        self.servers = {
            f"nats-{number}": NatsServer(
                folder / f"nats-{number}",
                name=f"nats-{number}",
                routes=(ports[number], *(port for port in ports if port != ports[number])),
            )
            for number in range(SERVERS)
        }

    def __enter__(self) -> Self:
        try:
            for server in self.servers.values():
                server.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers.values():
            server.stop()

    @property
    def settings(self) -> dict[str, str]:
        """The settings by which the processes of a stack use this cluster, with three copies of the stream."""
        urls = {f"FIATGATE_{user.upper()}_NATS_URL": self.url_of(user) for user in PROCESSES}
        return urls | {"FIATGATE_NATS_REPLICAS": str(SERVERS)}

    def url_of(self, user: str) -> str:
        """The addresses of all servers, as one setting."""
        return ",".join(server.url_of(user) for server in self.servers.values())

    def stream(self) -> dict[str, Any]:
        """Returns what the cluster reports of the stream: `config`, `state`, `cluster` with `leader` and `replicas`.

        Raises `nats.errors.Error` while no server leads the stream, or there is none.
        """
        return asyncio.run(self._ask())

    def leader(self) -> str:
        """Returns the name of the server that leads the stream, as soon as one does."""
        led: list[str] = []

        def found() -> bool:
            try:
                leader = self.stream()["cluster"].get("leader")
            except (nats.errors.Error, OSError, KeyError):
                return False
            led[:] = [leader] if leader else []
            return bool(leader)

        wait_until(found, "a server to lead the stream", timeout_seconds=_SECONDS)
        return led[0]

    def wait_for_copies(self) -> None:
        """Returns when every server has all of the stream."""

        def current() -> bool:
            try:
                followers = self.stream()["cluster"].get("replicas", [])
            except (nats.errors.Error, OSError, KeyError):
                return False
            return len(followers) == SERVERS - 1 and all(
                each["current"] and not each.get("offline") for each in followers
            )

        wait_until(current, "every server to have all of the stream", timeout_seconds=_SECONDS)

    async def _ask(self) -> dict[str, Any]:
        client = await nats.connect(
            self.url_of(OPERATOR).split(","), connect_timeout=_ASK_SECONDS, allow_reconnect=False
        )
        try:
            answer = await client.jetstream()._api_request(
                f"$JS.API.STREAM.INFO.{STREAM}", timeout=_ASK_SECONDS
            )
        finally:
            await client.close()
        return dict(answer)
