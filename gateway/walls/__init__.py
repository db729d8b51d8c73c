"""Bounds on the resources that one stranger may take from all others.

`clients` finds the network that a request comes from, behind proxies too. `uploads` bounds the bytes of bodies under
way, `strangers` the questions about keys and payments that do not exist, `calls` the calls of each kind, `connections`
the open connections. Each refusal is counted (`turned_away`), and docs/operations.md has the operator's response.
"""
