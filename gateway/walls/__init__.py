"""Bounds on what one stranger may take from all others.

`clients` names the network that a request comes from, behind proxies too. `uploads` bounds the bytes of bodies that
are on their way, `strangers` the questions about keys and payments that do not exist, `calls` the calls of each kind,
`connections` the open connections. Each refusal is counted (`turned_away`), and docs/operations.md says what an
operator does about it.
"""
