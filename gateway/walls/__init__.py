"""Bounds on the resources that one stranger may take from all others.

`uploads` bounds the bytes of bodies under way, `strangers` names the keys and payments that they may guess,
`calls` the calls of each kind. `kit.web.walls` has the walls of every process with an HTTP server. Each refusal is
counted (`turned_away`), and docs/operations/alerts.md has the operator's response.
"""
