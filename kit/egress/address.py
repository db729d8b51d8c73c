"""Which URLs and addresses may be called: pure functions, no network."""

import ipaddress
import re
from typing import Final

from yarl import URL

URL_MAX_CHARACTERS: Final = 2048

# IANA's special-purpose registry, and addresses at which cloud providers serve the secrets of a host.
NOT_PUBLIC_V4: Final = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # "this network"; Linux connects 0.0.0.0 to itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared address space (CGNAT), Alibaba's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's wire server: a public address that reaches the hypervisor
        "169.254.0.0/16",  # link local, metadata of AWS, GCP, Azure
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",  # broadcast included
    )
]
# Everything outside 2000::/3 is special: ::, ::1, v4-mapped and -compatible, NAT64, fc00::/7, fe80::/10,
# fec0::/10, ff00::/8
GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
NOT_PUBLIC_V6: Final = [
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # Teredo (an IPv4 address inside), ORCHID, benchmarking, anycast
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address inside
        "2620:4f:8000::/48",
        "3ffe::/16",
        "3fff::/20",
    )
]

# Below 1024 only https is allowed. Above, these ports are known for other protocols: browsers' list of bad ports, and
# data stores, buses and control planes, which could take a request for a command or reveal that they are there.
_HTTPS_PORT: Final = 443
_FIRST_FREE_PORT: Final = 1024
# fmt: off
_OTHERS_PORTS: Final = frozenset([
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080,
    1433, 1521, 1883, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4222, 5432, 5672, 5900, 6379, 6443, 8472, 9042, 9092,
    9200, 9300, 10250, 10255, 11211, 27017, 50051,
])
# fmt: on

NEVER_IN_A_URL: Final = r"""\s\x00-\x20\x7f-\xa0<>"\\\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"""
"""The inside of a regular expression's brackets: characters that programs read differently, spaces and controls of any
script, and marks that change the direction of the text."""
_FORBIDDEN_CHARACTERS: Final = re.compile(rf"[{NEVER_IN_A_URL}\ud800-\udfff]")
_USERINFO: Final = re.compile(r"[^/?#]*//[^/?#]*@")  # also an empty one, which parsers drop silently
# The WHATWG rule for an IPv4 address in any notation: the last label is a number.
_ENDS_IN_A_NUMBER: Final = re.compile(r"(^|\.)(\d+|0[xX][0-9a-fA-F]*)\.?$")
_CANONICAL_V4: Final = re.compile(r"(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}")


def is_public(address: str) -> bool:
    """Returns whether an IP address, as text, is public; false for text that isn't an address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in NOT_PUBLIC_V4)
    # A scope ("%eth0") exists on links only. The embedded-IPv4 forms lie outside 2000::/3 or in the list.
    return ip.scope_id is None and ip in GLOBAL_V6 and not any(ip in network for network in NOT_PUBLIC_V6)


def is_for_https(port: int) -> bool:
    """Returns whether a URL without private addresses may name the port."""
    return port == _HTTPS_PORT or (port >= _FIRST_FREE_PORT and port not in _OTHERS_PORTS)


def check_url(url: str, *, allow_private: bool = False) -> URL:
    """Returns the parsed URL if it may be called. Raises ValueError with a reason for people.

    https only, at most 2048 characters, no user or password, no odd notation of an address, no port of
    another service, no address or name that can't be public. `allow_private` lifts the last two and admits
    http: for local stacks.
    """
    if len(url) > URL_MAX_CHARACTERS:
        raise ValueError(f"the URL is longer than {URL_MAX_CHARACTERS} characters")
    if _FORBIDDEN_CHARACTERS.search(url):
        raise ValueError("the URL holds a space, a quote, a bracket, a backslash or an invisible character")
    try:
        parsed = URL(url)
        port = parsed.port
    except (ValueError, UnicodeError):
        raise ValueError("the URL can't be parsed") from None
    if parsed.scheme not in (("https", "http") if allow_private else ("https",)):
        raise ValueError("the URL must begin with https://")
    if parsed.user is not None or parsed.password is not None or _USERINFO.match(url):
        raise ValueError("the URL must not hold a user name or password")
    if not port:
        raise ValueError("the URL has no usable port")
    if not allow_private and not is_for_https(port):
        raise ValueError("the URL's port is not one for https")
    _check_host(parsed.raw_host or "", allow_private=allow_private)
    return parsed


def _check_host(host: str, *, allow_private: bool) -> None:
    if not host or not host.isascii() or "%" in host:
        raise ValueError("the URL has no usable host")
    if ":" in host or _ENDS_IN_A_NUMBER.search(host):
        if ":" not in host and not _CANONICAL_V4.fullmatch(host):
            raise ValueError("the URL's address must be written as four decimal numbers")
        if not allow_private and not is_public(host):
            raise ValueError("the URL's address is not public")
        return
    name = host.removesuffix(".").lower()
    if len(name) > 253 or not all(0 < len(label) <= 63 for label in name.split(".")):
        raise ValueError("the URL has no usable host")
    # Single labels resolve through search domains: inside a cluster, to its own services.
    if not allow_private and ("." not in name or name.endswith((".localhost", ".local", ".internal"))):
        raise ValueError("the URL's host is not a public name")
