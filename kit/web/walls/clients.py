"""The client that a request comes from, and the network that it is counted under.

The peer of the connection is the client unless it is one of `TRUSTED_PROXIES`. A trusted proxy appends the address of
its own peer to one header, so the header is read from its right end: the first address that is not a trusted proxy is
the client. The client itself sent everything left of it, which proves nothing. Where the header cannot be read, the
last readable address counts.

Only the header that the proxy writes is read. A proxy that writes one passes the other on unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

REMEMBERED: Final = 8192
# No chain of proxies is longer.
HOPS_MAX: Final = 16

_FOR: Final = re.compile(r"(?:^|;)\s*for\s*=\s*\"?([^\";]*)", re.IGNORECASE)
_WITH_PORT: Final = re.compile(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+").fullmatch

Network = IPv4Network | IPv6Network


class Clients:
    """Reads addresses with one set of settings; pure except for its caches.

    trusted  networks of the proxies in front
    header   the header that they write: x-forwarded-for or forwarded
    prefix_4, prefix_6  bits of an address that make its network
    """

    def __init__(self, trusted: Sequence[Network], *, header: str, prefix_4: int, prefix_6: int) -> None:
        self._trusted = tuple(trusted)
        self._header = header.encode()
        self._is_forwarded = header == "forwarded"
        self._prefix_4 = prefix_4
        self._prefix_6 = prefix_6
        # Addresses repeat from request to request, and parsing one costs as much as everything else here.
        self.is_trusted = lru_cache(REMEMBERED)(self._is_trusted)
        self.network = lru_cache(REMEMBERED)(self._network)

    def client(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Returns the client's address; the peer's unless a trusted proxy names another."""
        if not self._trusted or not self.is_trusted(peer):
            return peer
        values = [value for name, value in headers if name == self._header]
        hops = b",".join(values).decode("latin-1").rsplit(",", HOPS_MAX)[-HOPS_MAX:]
        client = peer
        for hop in reversed(hops):
            address = _address_of(hop, is_forwarded=self._is_forwarded)
            if address is None:
                break
            client = address
            if not self.is_trusted(address):
                break
        return client

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = _plain(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._trusted)

    def _network(self, address: str) -> str:
        """Returns the network that the address is counted under; a text that is no address (a Unix socket)
        counts as it is.
        """
        try:
            parsed = _plain(address)
        except ValueError:
            return address
        prefix = self._prefix_6 if parsed.version == 6 else self._prefix_4
        return str(ip_network((parsed, prefix), strict=False))


def _plain(address: str) -> IPv4Address | IPv6Address:
    """Returns the address; for an IPv4 address written as IPv6 (::ffff:192.0.2.1) the IPv4 one. Raises ValueError."""
    parsed = ip_address(address)
    if parsed.version == 6 and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed


def _address_of(hop: str, *, is_forwarded: bool) -> str | None:
    """Returns the address in one element of the header, without its port; None when there is none."""
    text = hop.strip()
    if is_forwarded:
        found = _FOR.search(text)
        text = found[1].strip() if found else ""
    with_port = _WITH_PORT(text)
    if with_port:
        text = with_port[1] or with_port[2] or ""
    try:
        return str(_plain(text))
    except ValueError:
        return None
