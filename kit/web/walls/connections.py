"""Bounds on the open connections of a worker, in all and per client's network.

When there is no room for a new one, the connection that has waited for its client for longest is dropped: one without a
request, with a part of a head, or with an answer that the client does not read. If all have work, the new one is
refused. Named proxies (`TRUSTED_PROXIES`) bring the connections of many clients: only the bound in all holds for them.
"""

from __future__ import annotations

import resource
from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final, Protocol

from kit.base.clock import monotonic_seconds
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.web.walls import turned_away
from kit.web.walls.clients import Clients

# Files of a worker besides clients' connections: logs, channels to the services, metrics.
SPARE_FILES: Final = 128
LOG_EVERY_SECONDS: Final = 10.0

OPEN: Final = metrics.gauge("http_connections", "Connections of clients that are open")

_log = get_logger()


class Droppable(Protocol):
    """A client's connection, as far as this module uses it."""

    def drop(self) -> None:
        """Ends it at once."""

    def close_if_idle(self, for_seconds: float) -> None:
        """Ends it when it has had no request for that long."""


Line = OrderedDict[Droppable, None]  # connections that wait for their client, the longest first


class Connections:
    """The open connections of one worker."""

    def __init__(self, clients: Clients, *, most: int, most_per_client: int) -> None:
        self._clients = clients
        self._most = most
        self._most_per_client = most_per_client
        self._networks: dict[Droppable, str] = {}
        self._counts: Counter[str] = Counter()
        self._idle: Line = OrderedDict()
        self._idle_of: dict[str, Line] = {}
        self._dropped: Counter[str] = Counter()  # since the last line in the log
        self._logged_seconds = -LOG_EVERY_SECONDS

    def all(self) -> Sequence[Droppable]:
        return list(self._networks)

    def opened(self, connection: Droppable, peer: str) -> None:
        """Adds a connection that is not idle yet; without room, drops an idle one, or this one."""
        network = "" if self._clients.is_trusted(peer) else self._clients.network(peer)
        self._networks[connection] = network
        self._counts[network] += 1
        OPEN.set(len(self._networks))
        if network and self._counts[network] > self._most_per_client:
            self._drop(self._idle_of.get(network), connection, of="of one client")
        elif len(self._networks) > self._most:
            self._drop(self._idle, connection, of="in all")

    def closed(self, connection: Droppable) -> None:
        self.works(connection)
        network = self._networks.pop(connection, None)
        if network is not None:
            self._counts[network] -= 1
            if not self._counts[network]:
                del self._counts[network]
        OPEN.set(len(self._networks))

    def waits(self, connection: Droppable) -> None:
        """Records that it waits for its client, from now on."""
        if connection in self._networks:
            self._idle[connection] = None
            self._idle_of.setdefault(self._networks[connection], OrderedDict())[connection] = None

    def works(self, connection: Droppable) -> None:
        """Records that it has work now."""
        if connection in self._idle:
            del self._idle[connection]
            network = self._networks[connection]
            del self._idle_of[network][connection]
            if not self._idle_of[network]:
                del self._idle_of[network]

    def _drop(self, idle: Line | None, newest: Droppable, *, of: str) -> None:
        """Ends the connection that was idle for longest, or the newest when none is idle."""
        dropped = next(iter(idle)) if idle else newest
        self.ended(dropped, f"{'idle' if idle else 'new'}, {of}")
        dropped.drop()

    def ended(self, connection: Droppable, kind: str) -> None:
        """Counts a connection that this process ends, and logs their number now and then."""
        turned_away.count("connections", kind)
        self._dropped[kind] += 1
        self.closed(connection)
        if monotonic_seconds() - self._logged_seconds >= LOG_EVERY_SECONDS:
            self._logged_seconds = monotonic_seconds()
            _log.warning("connections_dropped", open=len(self._networks), dropped=dict(self._dropped))
            self._dropped.clear()


def room_for(most: int) -> int:
    """Raises this process's soft limit of open files as far as needed; returns the connections that it has room for.

    Else a system that starts processes with 1,024 files would refuse connections long before the bound, without a log
    line.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = most if soft == resource.RLIM_INFINITY else min(most, soft - SPARE_FILES)
    if room < most:
        _log.warning("open_files_limited", connections=room, wanted=most, hard_limit=hard)
    return max(room, 1)
