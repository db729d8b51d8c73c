"""The schema, step by step (kit.migrate)."""

from collections.abc import Mapping

NEEDS = "0002"
"""What this version can't do without; what comes after is the next version's (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "currencies": "SELECT, INSERT, UPDATE",
    "payment_methods": "SELECT, INSERT, UPDATE",
    "logos": "SELECT, INSERT, UPDATE, DELETE",
    "rates": "SELECT, INSERT",
    "held_rates": "SELECT, INSERT, UPDATE, DELETE",
    "poll_turns": "SELECT, INSERT, UPDATE",
}
"""What the service's role may do with each table (kit.rights). Without DELETE and with named columns where rows stay
what they are."""
