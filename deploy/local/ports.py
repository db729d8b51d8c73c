"""Free loopback ports for the stack's inner addresses."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

from deploy.local.errors import CannotStart

# Below Linux's range for outgoing connections (32768 and up). A port from that range may be taken by any
# client while its server restarts; worse, a client dialling its dead server can then be connected to itself
# and hold the port for good.
_LOWEST, _HIGHEST = 15_000, 32_000
_TRIES = 200


def is_free(port: int, *, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on `host:port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_range(count: int, *, apart_from: Collection[int] = ()) -> range:
    """`count` ports in a row that nothing listens on; CannotStart when there is no such row."""
    for first in random.sample(range(_LOWEST, _HIGHEST - count), _TRIES):
        row = range(first, first + count)
        if all(port not in apart_from and is_free(port) for port in row):
            return row
    raise CannotStart(f"no {count} free ports in a row between {_LOWEST} and {_HIGHEST}")


def free_ports(count: int, *, apart_from: Collection[int] = ()) -> list[int]:
    """`count` different ports that nothing listens on; CannotStart when the machine has hardly any left."""
    found: list[int] = []
    for port in random.sample(range(_LOWEST, _HIGHEST), _TRIES):
        if len(found) == count:
            return found
        if port not in apart_from and is_free(port):
            found.append(port)
    raise CannotStart(f"fewer than {count} free ports between {_LOWEST} and {_HIGHEST}")
