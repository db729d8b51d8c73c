"""Free loopback ports for the stack's inner addresses."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Collection, Mapping, Sequence

from deploy.local.errors import CannotStart

# Below Linux's range for outgoing connections (32768 and up). Any client may take a port of that range while its server
# restarts. Worse, a client that connects to its dead server can then be connected to itself and keep the port for good.
ALL = range(15_000, 32_000)
_TRIES = 200
_LAST = 65_535
_chosen_from = ALL


def choose_from(ports: range) -> None:
    """Restricts the ports that are chosen from now on. A chosen port is free until its server starts: programs that
    choose at the same time need ranges of their own.
    """
    global _chosen_from  # noqa: PLW0603  one range for the whole process
    _chosen_from = ports


def is_free(port: int, *, host: str = "127.0.0.1") -> bool:
    """Returns whether a server could listen on `host:port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def named_in(settings: Mapping[str, str]) -> set[int]:
    """Returns the ports of the addresses and URLs in these settings. Their servers may not listen yet."""
    return {int(port) for value in settings.values() for port in re.findall(r":(\d{1,5})\b", value)}


def next_free(ports: Sequence[int], *, apart_from: Collection[int] = ()) -> list[int]:
    """Returns these ports; in place of one that is taken, or no port at all, another free one."""
    usable = [port for port in ports if port <= _LAST and port not in apart_from and is_free(port)]
    others = iter(free_ports(len(ports) - len(usable), apart_from=[*apart_from, *usable]))
    return [port if port in usable else next(others) for port in ports]


def free_range(count: int, *, apart_from: Collection[int] = ()) -> range:
    """Returns `count` ports in a row on which nothing listens; CannotStart when there is no such row."""
    for first in random.sample(_chosen_from[:-count], _TRIES):
        row = range(first, first + count)
        if all(port not in apart_from and is_free(port) for port in row):
            return row
    raise CannotStart(f"no {count} free ports in a row in {_chosen_from}")


def free_ports(count: int, *, apart_from: Collection[int] = ()) -> list[int]:
    """Returns `count` different ports on which nothing listens; CannotStart when hardly any are left."""
    found: list[int] = []
    for port in random.sample(_chosen_from, _TRIES):
        if len(found) == count:
            return found
        if port not in apart_from and is_free(port):
            found.append(port)
    raise CannotStart(f"fewer than {count} free ports in {_chosen_from}")
