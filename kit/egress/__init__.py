"""Calls to addresses that others chose: merchants' callbacks, rate sources (docs/decisions/0013-checked-addresses.md).

`check_url` tells early, without touching the network, whether a URL can ever be called.
`kit.egress.client.Egress` makes the calls and decides again, at the moment of connecting, on the address
itself: a name may resolve to something else by then. Nobody else in Fiatgate opens connections to addresses
that come from outside.
"""

from kit.egress.address import NEVER_IN_A_URL, URL_MAX_CHARACTERS, check_url, is_public

__all__ = ["NEVER_IN_A_URL", "URL_MAX_CHARACTERS", "check_url", "is_public"]
