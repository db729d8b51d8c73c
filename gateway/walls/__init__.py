"""Bounds on the resources that one stranger may take from all others.

`uploads` bounds the bytes of bodies under way, `strangers` the questions about keys and payments that do not exist,
`calls` the calls of each kind. `kit.web.walls` has the walls of every process with an HTTP server. Each refusal is
counted (`turned_away`), and docs/operations.md has the operator's response.
"""
