"""The schema, step by step (kit.db.migrate)."""

from collections.abc import Mapping

from kit.audit.rights import ACT_RIGHTS

NEEDS = "0001"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "events": "SELECT, INSERT, UPDATE (status, auto_attempts, manual_attempts, next_retry_at, last_manual_at,"
    " locked_at, locked_by, lease_token, lease_until, updated_at, seal, payload_event_id, merchant_id, key_id,"
    " event_type, callback_url, destination, payload)",
    "attempts": "SELECT, INSERT, DELETE",
    "inbox": "SELECT, INSERT, DELETE",
    "parked": "SELECT, INSERT, UPDATE, DELETE",
    **ACT_RIGHTS,
}
"""The rights of the service's role on each table (kit.db.rights). Rows that never change: no DELETE, and UPDATE
of named columns only. The terms of an event change only together with its seal.
"""
