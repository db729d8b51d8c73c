"""The schema, step by step (kit.migrate)."""

from collections.abc import Mapping

NEEDS = "0003"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "owners": "SELECT, INSERT, UPDATE",
    "merchants": "SELECT, INSERT, UPDATE",
    "logos": "SELECT, INSERT, UPDATE, DELETE",
    "categories": "SELECT, INSERT, UPDATE",
    "api_keys": "SELECT, INSERT, UPDATE",
    "lookup_key": "SELECT, INSERT, UPDATE",
}
"""The rights of the service's role on each table (kit.rights). Rows that never change: no DELETE, and UPDATE of named
columns only."""
