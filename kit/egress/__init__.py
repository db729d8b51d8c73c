"""Calls to addresses that others chose: merchants' callbacks, rate sources
(docs/security.md#a-merchants-server-and-what-it-names).

`check_url` decides early, without using the network, whether a URL can ever be called. `kit.egress.client.Egress` makes
the calls and checks the address again when it connects: a name may resolve to another address by then. No other code of
Fiatgate opens connections to addresses that come from outside.
"""
