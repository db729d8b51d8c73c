"""Attacks on merchants by someone who has the address of identity's database."""

from typing import Final

from tests.security.attacks.attack import found, not_promised, refused

ATTACKS: Final = (
    found(
        "identity",
        "where webhooks go",
        "UPDATE merchants SET callback_url = 'https://evil.example/' WHERE id = %(merchant)s",
        "%(merchant)s",
        "callback_url is https://evil.example/",
    ),
    found(
        "identity",
        "who pays the commission",
        "UPDATE merchants SET client_share = 1 WHERE id = %(merchant)s",
        "%(merchant)s",
        "client_share is 1",
    ),
    found(
        "identity",
        "a ban taken back",
        "UPDATE merchants SET banned_at = NULL WHERE id = %(banned)s",
        "%(banned)s",
        "banned_at is nothing",
    ),
    found(
        "identity",
        "a key as one that is being replaced",
        "UPDATE api_keys SET replaced_by = %(dead_key)s WHERE merchant_id = %(merchant)s AND id <> %(dead_key)s",
        "replaced_by is %(dead_key)s",
    ),
    found(
        "identity",
        "a block taken back",
        "UPDATE owners SET blocked_at = NULL WHERE email = %(blocked_owner)s",
        "%(blocked_owner)s",
        "blocked_at is nothing",
    ),
    found(
        "identity",
        "a category's commission",
        "UPDATE categories SET commission = 0.000001 WHERE code = 'standard'",
        "category standard",
        "commission is 0.000001",
    ),
    found(
        "identity",
        "who keeps the commission of a refund",
        "UPDATE categories SET refunds_return_commission = true WHERE code = 'standard'",
        "category standard",
        "refunds_return_commission is yes",
    ),
    found(
        "identity",
        "what is done with late money",
        "UPDATE merchants SET late_money = 'credit' WHERE id = %(merchant)s",
        "%(merchant)s",
        "late_money is credit",
    ),
    found(
        "identity",
        "a deactivated key active again",
        "UPDATE api_keys SET deactivated_at = NULL WHERE id = %(dead_key)s",
        "%(dead_key)s",
        "deactivated_at is nothing",
    ),
    found(
        "identity",
        "a key",
        "INSERT INTO api_keys (id, merchant_id, name, hint, key_hash, sealed_secret, created_at)"
        " SELECT %(forged_api_key)s, %(merchant)s, '', 'fg_eve', sha256('eve'), sealed_secret, now() FROM api_keys"
        " LIMIT 1",
        "%(forged_api_key)s",
        "act is none",
    ),
    found(
        "identity",
        "the lookup key of API keys destroyed",
        "UPDATE lookup_key SET sealed = 'x'",
        "lookup key 1",
        "not readable",
    ),
    found(
        "identity",
        "the signing secret of a key destroyed",
        "UPDATE api_keys SET sealed_secret = 'x' WHERE id = %(dead_key)s",
        "%(dead_key)s",
        "secret is not readable",
    ),
    refused(
        "identity",
        "a page of one's own as a logo",
        "INSERT INTO logos (digest, content_type, content, created_at)"
        " VALUES (encode(sha256('<h1>'), 'hex'), 'text/html', '<h1>', now())",
        "ck_logos_content_type",
    ),
    refused(
        "identity",
        "a key given to another merchant",
        "UPDATE api_keys SET merchant_id = %(banned)s",
        "permission denied for table api_keys",
    ),
    refused(
        "identity",
        "another hash of a key",
        "UPDATE api_keys SET key_hash = sha256('mine')",
        "permission denied for table api_keys",
    ),
    refused(
        "identity",
        "a merchant deleted",
        "DELETE FROM merchants WHERE id = %(merchant)s",
        "permission denied for table merchants",
    ),
    refused(
        "identity",
        "a share that is no number",
        "UPDATE merchants SET client_share = 'NaN'",
        "ck_merchants_bounds",
    ),
    not_promised(
        "identity",
        "the time of a key's last use",
        "UPDATE api_keys SET last_used_at = now() WHERE id = %(dead_key)s",
    ),
    not_promised(
        "identity", "a merchant's colour", "UPDATE merchants SET colour = '#000000' WHERE id = %(banned)s"
    ),
)
