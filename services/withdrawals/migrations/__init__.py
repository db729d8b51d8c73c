"""The schema, step by step (kit.migrate)."""

from collections.abc import Mapping

NEEDS = "0001"
"""What this version can't do without; what comes after is the next version's (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "accounts": "SELECT, INSERT",
    "transfers": "SELECT, INSERT",
    "withdrawal_methods": "SELECT, INSERT, UPDATE",
    "withdrawals": "SELECT, INSERT, UPDATE (status, substatus, external_tx_id, updated_at, processed_at)",
    "records": "SELECT",
    "inbox": "SELECT, INSERT, DELETE",
    "parked": "SELECT, INSERT, UPDATE, DELETE",
}
"""What the service's role may do with each table (kit.rights). Without DELETE and with named columns where rows stay
what they are."""
