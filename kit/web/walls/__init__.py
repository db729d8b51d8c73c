"""Bounds on what one client or network may take from the others.

`clients` finds the network that a request comes from, behind proxies too. `uploads` bounds the bytes of bodies under
way, `buckets` the requests of a minute, `places` the calls at a time, `strangers`
the questions about names that do not exist. Each refusal is counted (`turned_away`).
"""
