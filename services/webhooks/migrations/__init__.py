"""The schema, step by step (kit.migrate)."""

from collections.abc import Mapping

NEEDS = "0002"
"""What this version can't do without; what comes after is the next version's (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "events": "SELECT, INSERT, UPDATE (status, auto_attempts, manual_attempts, next_retry_at, last_manual_at,"
    " locked_at, locked_by, lease_token, lease_until, updated_at, seal, payload_event_id, merchant_id, key_id,"
    " event_type, callback_url, destination, payload)",
    "attempts": "SELECT, INSERT, DELETE",
    "inbox": "SELECT, INSERT, DELETE",
    "parked": "SELECT, INSERT, UPDATE, DELETE",
}
"""What the service's role may do with each table (kit.rights). Without DELETE and with named columns where rows stay
what they are. The terms of an event change only together with its seal (0007)."""
