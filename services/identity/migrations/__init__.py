"""The schema, step by step (kit.db.migrate)."""

from collections.abc import Mapping

from kit.audit import approvals
from kit.audit.rights import ACT_RIGHTS

NEEDS = "0001"
"""The migration that this version needs; later ones belong to the next version (docs/decisions/0025)."""

RIGHTS: Mapping[str, str] = {
    "people": "SELECT, INSERT, UPDATE (name, roles, disabled_at, last_seen_at, password_hash, password_set_at,"
    " password_seal)",
    "memberships": "SELECT, INSERT, UPDATE (roles), DELETE",
    "invitations": "SELECT, INSERT, UPDATE (used_at, withdrawn_at), DELETE",
    "passkeys": "SELECT, INSERT, UPDATE (sign_count, last_used_at, cloned_at), DELETE",
    "totps": "SELECT, INSERT, UPDATE (sealed_secret, last_step, confirmed_at, sealed_new_secret, started_at), DELETE",
    "recovery_codes": "SELECT, INSERT, UPDATE (used_at), DELETE",
    "challenges": "SELECT, INSERT, DELETE",
    "sessions": "SELECT, INSERT, UPDATE (token_hash, seal, last_seen_at, stepped_up_at, merchant_id, ended_at), DELETE",
    "guesses": "SELECT, INSERT, UPDATE, DELETE",
    "signing_keys": "SELECT, INSERT, UPDATE (sealed_private_key, replaced_at), DELETE",
    "mails": "SELECT, INSERT, UPDATE (sealed_link, attempts, due_at, last_error), DELETE",
    "notices": "SELECT, INSERT, UPDATE (attempts, due_at, last_error), DELETE",
    "owners": "SELECT, INSERT, UPDATE (blocked_at)",
    "merchants": "SELECT, INSERT, UPDATE (name, activated_at, banned_at, category_code, client_share, callback_url,"
    " success_url, fail_url, allowed_currencies, allowed_methods, colour, logo, frame_origins, late_money)",
    "logos": "SELECT, INSERT",
    "categories": "SELECT, INSERT, UPDATE (commission, refunds_return_commission, updated_at)",
    "api_keys": "SELECT, INSERT, UPDATE (sealed_secret, deactivated_at, last_used_at, replaced_by)",
    "lookup_key": "SELECT, INSERT, UPDATE (sealed)",
    "approvals": approvals.RIGHTS,
    **ACT_RIGHTS,
}
"""The rights of the service's role on each table (kit.db.rights). Rows that never change: no DELETE, and UPDATE
of named columns only.
"""
