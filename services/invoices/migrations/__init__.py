"""The schema, step by step (kit.db.migrate)."""

from collections.abc import Mapping

from kit.audit import approvals
from kit.audit.rights import ACT_RIGHTS

NEEDS = "0001"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "invoices": "SELECT, INSERT, UPDATE (status, finished_at, deal_id, event_id)",
    "links": "SELECT, INSERT, UPDATE (canceled_at)",
    "deals": "SELECT, INSERT, UPDATE (status, sub_status, mark_paid_at, confirm_before, adjusted_amount, amount_fiat,"
    " merchant_usdt, finished_at, sender_name, sender_words)",
    "deal_transitions": "SELECT, INSERT",
    "requisites": "SELECT, INSERT, UPDATE (max_deals, open_deals, enabled, last_used_at)",
    "cases": "SELECT, INSERT, UPDATE (merchant_answer, merchant_text, answered_by, answered_at, resolved_at, outcome,"
    " actor, ended_as)",
    "proofs": "SELECT, INSERT",
    "line_payments": "SELECT, INSERT",
    "line_rules": "SELECT, INSERT, UPDATE",
    "switches": "SELECT, INSERT, UPDATE",
    "page_openings": "SELECT, INSERT",
    "outbox": "SELECT, INSERT, UPDATE, DELETE",
    "facts": "SELECT, INSERT",
    "bus_state": "SELECT, INSERT, UPDATE",
    "approvals": approvals.RIGHTS,
    "daily_sums": "SELECT, INSERT, UPDATE",
    "daily_times": "SELECT, INSERT, UPDATE",
    "daily_place": "SELECT, INSERT, UPDATE",
    **ACT_RIGHTS,
}
"""The rights of the service's role on each table (kit.db.rights). Rows that never change: no DELETE, and UPDATE
of named columns only.
"""
