"""nats-py's client, except that an address `tls://…` is a promise: without TLS nothing is said to the server.

nats-py goes over to TLS when the server asks for it, whatever the address says, and sends its password in plain text to
one that does not ask.
"""

import ssl
from typing import Any

import nats.aio.client
import nats.errors


class Client(nats.aio.client.Client):
    """`ca` is a file with the CA of the server's certificate; empty: the system's."""

    def __init__(self, *, ca: str = "") -> None:
        super().__init__()
        self._ca = ca

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """Made anew for each connection: the file may have been replaced."""
        return ssl.create_default_context(cafile=self._ca or None)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Of each server that is connected to, before anything is sent; tests/kit/test_bus.py notices a new name."""
        asked_for = self._current_server is not None and self._current_server.uri.scheme == "tls"
        if initial_connection and asked_for and not info.get("tls_required"):
            raise nats.errors.Error("the server at tls:// does without TLS")
        await super()._process_info(info, initial_connection)
