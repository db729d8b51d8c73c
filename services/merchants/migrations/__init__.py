"""The schema, step by step (kit.migrate)."""

from collections.abc import Mapping

NEEDS = "0003"
"""What this version can't do without; what comes after is the next version's (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "owners": "SELECT, INSERT, UPDATE",
    "merchants": "SELECT, INSERT, UPDATE",
    "logos": "SELECT, INSERT, UPDATE, DELETE",
    "categories": "SELECT, INSERT, UPDATE",
    "api_keys": "SELECT, INSERT, UPDATE",
    "lookup_key": "SELECT, INSERT, UPDATE",
}
"""What the service's role may do with each table (kit.rights). Without DELETE and with named columns where rows stay
what they are."""
