"""The schema, step by step (kit.migrate)."""

from collections.abc import Mapping

NEEDS = "0002"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "currencies": "SELECT, INSERT, UPDATE",
    "payment_methods": "SELECT, INSERT, UPDATE",
    "logos": "SELECT, INSERT, UPDATE, DELETE",
    "rates": "SELECT, INSERT",
    "held_rates": "SELECT, INSERT, UPDATE, DELETE",
    "poll_turns": "SELECT, INSERT, UPDATE",
}
"""The rights of the service's role on each table (kit.rights). Rows that never change: no DELETE, and UPDATE of named
columns only."""
