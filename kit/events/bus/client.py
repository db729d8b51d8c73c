"""nats-py's client, but an address `tls://…` requires TLS: without it nothing is sent to the server.

nats-py uses TLS only when the server requires it, whatever the address is, and sends its password in plain text to a
server that does not.
"""

import ssl
from typing import Any

import nats.aio.client
import nats.errors


class Client(nats.aio.client.Client):
    """nats-py's client with TLS. `ca` is a file with the CA of the server's certificate; empty: the system's."""

    def __init__(self, *, ca: str = "") -> None:
        super().__init__()
        self._ca = ca

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
