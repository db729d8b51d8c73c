"""The schema, step by step (kit.db.migrate)."""

from collections.abc import Mapping

from kit.audit import approvals
from kit.audit.rights import ACT_RIGHTS

NEEDS = "0001"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "accounts": "SELECT, INSERT",
    "transfers": "SELECT, INSERT",
    "withdrawal_methods": "SELECT, INSERT, UPDATE",
    "withdrawals": "SELECT, INSERT, UPDATE (status, substatus, external_tx_id, updated_at, processed_at)",
    "corrections": "SELECT, INSERT",
    "refunds": "SELECT, INSERT, UPDATE (status, account_kind, account, holder, bank, account_by_customer,"
    " bank_reference, failure, updated_at, finished_at)",
    "daily_balances": "SELECT, INSERT",
    "credits_of_other_days": "SELECT, INSERT",
    "withdrawal_addresses": "SELECT, INSERT, UPDATE (removed_at)",
    "address_notices": "SELECT, INSERT, UPDATE (due_at), DELETE",
    "inbox": "SELECT, INSERT, DELETE",
    "parked": "SELECT, INSERT, UPDATE, DELETE",
    "approvals": approvals.RIGHTS,
    **ACT_RIGHTS,
}
"""The rights of the service's role on each table (kit.db.rights). Rows that never change: no DELETE, and UPDATE
of named columns only.
"""
