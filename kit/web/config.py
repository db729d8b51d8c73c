"""Settings of every process with an HTTP server (docs/settings.md)."""

from ipaddress import ip_address, ip_network
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from kit.base.config.processes import Settings
from kit.base.config.values import CommaSeparated, HostAndPort
from kit.web.walls.clients import Clients, Network

LEAST_BITS: Final = {4: 8, 6: 7}
"""Fewest bits of a network of proxies. A wider one has clients in it, and each could give any address as its own."""

FOR_EXAMPLES: Final = tuple(
    map(ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"))
)
"""No proxy has an address in them (RFC 5737, RFC 3849). Left in a configuration, they make all clients one network."""


def _proxies(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        network = ip_network(value, strict=False)
    except ValueError:
        raise ValueError(f"{value} is not a network, as 10.0.0.0/8") from None
    if network.prefixlen < LEAST_BITS[network.version]:
        least = LEAST_BITS[network.version]
        raise ValueError(
            f"{value} is too wide, at least /{least} is expected: clients in it could name any address as their own"
        )
    if any(network.network_address in example for example in FOR_EXAMPLES):
        raise ValueError(f"{value} is a network for examples, name the one that your proxies connect from")
    if ip_address(value.partition("/")[0]) != network.network_address:
        raise ValueError(f"{value} has host bits set, did you mean {network}?")
    return network


Proxies = Annotated[Network, BeforeValidator(_proxies)]


class WebSettings(Settings):
    """A subclass gives the name of the process: with `service = "gateway"`, `workers` is FIATGATE_GATEWAY_WORKERS."""

    own_only: ClassVar[frozenset[str]] = frozenset({"bind", "workers", "start_seconds", "keepalive_seconds"})

    bind: HostAndPort = Field(description="host:port to listen on")
    workers: int = Field(default=2, ge=1, le=64, description="processes that serve, about one per core")
    start_seconds: int = Field(
        default=10,
        ge=0,
        le=600,
        description="longest time that each process waits for the services at start before it takes "
        "connections, seconds",
    )
    keepalive_seconds: int = Field(
        default=75,
        ge=1,
        le=3600,
        description="time that an idle connection of a client stays open, seconds; longer than the idle "
        "timeout of the proxy in front",
    )
    trusted_proxies: Annotated[tuple[Proxies, ...], CommaSeparated] = Field(
        default=(),
        description="networks of the proxies in front, comma-separated, as 10.0.0.0/8, which name the "
        "client; empty: the client is the peer of the connection",
    )
    trusted_proxies_header: Literal["x-forwarded-for", "forwarded"] = Field(
        default="x-forwarded-for",
        description="the header that those proxies write; the other one may be the client's own and is not "
        "read",
    )
    client_ipv4_bits: int = Field(
        default=32,
        ge=8,
        le=32,
        description="bits of an IPv4 address that make the network under which a client is counted",
    )
    client_ipv6_bits: int = Field(
        default=64,
        ge=16,
        le=128,
        description="bits of an IPv6 address that make the network under which a client is counted; one "
        "subscriber has at least the last 64 bits",
    )


def clients_of(settings: WebSettings) -> Clients:
    return Clients(
        settings.trusted_proxies,
        header=settings.trusted_proxies_header,
        prefix_4=settings.client_ipv4_bits,
        prefix_6=settings.client_ipv6_bits,
    )
