"""The schema, step by step (kit.db.migrate)."""

from collections.abc import Mapping

from kit.audit import approvals
from kit.audit.rights import ACT_RIGHTS

NEEDS = "0001"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "currencies": "SELECT, INSERT, UPDATE (name, symbol, decimals, min_amount, max_amount, markup, enabled)",
    "payment_methods": "SELECT, INSERT, UPDATE (currency_code, name, min_sum, max_sum, payment_minutes, commission,"
    " logo_url, active, logo, takes_reference, account_kind)",
    "logos": "SELECT, INSERT",
    "rates": "SELECT, INSERT",
    "held_rates": "SELECT, INSERT, UPDATE (source_rate, taken_at, document), DELETE",
    "poll_turns": "SELECT, INSERT, UPDATE (started_at)",
    "approvals": approvals.RIGHTS,
    **ACT_RIGHTS,
}
"""The rights of the service's role on each table (kit.db.rights). Rows that never change: no DELETE, and UPDATE
of named columns only.
"""
