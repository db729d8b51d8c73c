"""The schema, step by step (kit.db.migrate)."""

from collections.abc import Mapping

from kit.audit.rights import ACT_RIGHTS

NEEDS = "0001"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "imports": "SELECT, INSERT, UPDATE (state, format, problem, lines, new_lines)",
    "statements": "SELECT, INSERT",
    "lines": "SELECT, INSERT, UPDATE (status, booked_on, valued_on, counterparty_name, counterparty_account, text,"
    " reference_texts, state, tier, deal_id, invoice_id, deal_amount, reason, refund_id, seal, tried_at, held,"
    " used_for)",
    "connectors": "SELECT, INSERT, UPDATE (heard_at, revoked_at)",
    "csv_profiles": "SELECT, INSERT, UPDATE (profile, actor, changed_at)",
    "line_matches": "SELECT, INSERT, DELETE",
    **ACT_RIGHTS,
}
"""The rights of the service's role on each table (kit.db.rights). Rows that never change: no DELETE, and UPDATE
of named columns only. The status of a line changes only together with its seal.
"""
