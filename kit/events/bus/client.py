"""nats-py's client for the setting NATS_URL: several servers, one password, TLS where the address requires it.

nats-py uses TLS only when the server requires it, whatever the address is, and sends its password in plain text to a
server that does not. It reads the password from the URL of each server; the servers that a cluster reports come without
one and would refuse the client.
"""

import ssl
from typing import Any
from urllib.parse import urlsplit

import nats.aio.client
import nats.errors

from kit.base.config.values import nats_servers


class Client(nats.aio.client.Client):
    """nats-py's client with TLS. `ca` is a file with the CA of the server's certificate; empty: the system's."""

    def __init__(self, *, ca: str = "") -> None:
        super().__init__()
        self._ca = ca

    async def connect_to(self, url: str, **options: Any) -> None:
        """Connects to one of the servers in `url`, in random order, and later to any other of their cluster.

        All get the user and password of the first server. `options` are those of `connect`.
        """
        servers = nats_servers(url)
        first = urlsplit(servers[0])
        await self.connect(servers, user=first.username, password=first.password, **options)

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """Made anew for each connection, because the file may have been replaced."""
        return ssl.create_default_context(cafile=self._ca or None)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Runs for each server, before anything is sent; tests/kit/test_bus.py fails if nats-py renames it."""
        asked_for = self._current_server is not None and self._current_server.uri.scheme == "tls"
        if initial_connection and asked_for and not info.get("tls_required"):
            raise nats.errors.Error("the server at tls:// does without TLS")
        await super()._process_info(info, initial_connection)
