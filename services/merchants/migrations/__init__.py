"""The schema, step by step (kit.db.migrate)."""

from collections.abc import Mapping

from kit.audit.rights import ACT_RIGHTS

NEEDS = "0001"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "owners": "SELECT, INSERT, UPDATE (blocked_at)",
    "merchants": "SELECT, INSERT, UPDATE (name, activated_at, banned_at, category_code, client_share, callback_url,"
    " success_url, fail_url, allowed_currencies, allowed_methods, colour, logo, frame_origins)",
    "logos": "SELECT, INSERT",
    "categories": "SELECT, INSERT, UPDATE (commission, updated_at)",
    "api_keys": "SELECT, INSERT, UPDATE (sealed_secret, deactivated_at, last_used_at, replaced_by)",
    "lookup_key": "SELECT, INSERT, UPDATE (sealed)",
    **ACT_RIGHTS,
}
"""The rights of the service's role on each table (kit.db.rights). Rows that never change: no DELETE, and UPDATE
of named columns only.
"""
