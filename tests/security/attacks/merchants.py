"""Attacks by someone who has the address of merchants' database."""

from typing import Final

from tests.security.attacks.attack import found, not_promised, refused

ATTACKS: Final = (
    found(
        "merchants",
        "where webhooks go",
        "UPDATE merchants SET callback_url = 'https://evil.example/' WHERE id = %(merchant)s",
        "%(merchant)s",
        "callback_url is https://evil.example/",
    ),
    found(
        "merchants",
        "who pays the commission",
        "UPDATE merchants SET client_share = 1 WHERE id = %(merchant)s",
        "%(merchant)s",
        "client_share is 1",
    ),
    found(
        "merchants",
        "a ban taken back",
        "UPDATE merchants SET banned_at = NULL WHERE id = %(banned)s",
        "%(banned)s",
        "banned_at is nothing",
    ),
    found(
        "merchants",
        "a block taken back",
        "UPDATE owners SET blocked_at = NULL WHERE email = %(blocked_owner)s",
        "%(blocked_owner)s",
        "blocked_at is nothing",
    ),
    found(
        "merchants",
        "a category's commission",
        "UPDATE categories SET commission = 0.000001 WHERE code = 'standard'",
        "category standard",
        "commission is 0.000001",
    ),
    found(
        "merchants",
        "a deactivated key active again",
        "UPDATE api_keys SET deactivated_at = NULL WHERE id = %(dead_key)s",
        "%(dead_key)s",
        "deactivated_at is nothing",
    ),
    found(
        "merchants",
        "a key",
        "INSERT INTO api_keys (id, merchant_id, name, hint, key_hash, sealed_secret, created_at)"
        " SELECT %(forged_api_key)s, %(merchant)s, '', 'fg_eve', sha256('eve'), sealed_secret, now() FROM api_keys"
        " LIMIT 1",
        "%(forged_api_key)s",
        "act is none",
    ),
    found(
        "merchants",
        "the lookup key of API keys destroyed",
        "UPDATE lookup_key SET sealed = 'x'",
        "lookup key 1",
        "not readable",
    ),
    found(
        "merchants",
        "the signing secret of a key destroyed",
        "UPDATE api_keys SET sealed_secret = 'x' WHERE id = %(dead_key)s",
        "%(dead_key)s",
        "secret is not readable",
    ),
    refused(
        "merchants",
        "a page of one's own as a logo",
        "INSERT INTO logos (digest, content_type, content, created_at)"
        " VALUES (encode(sha256('<h1>'), 'hex'), 'text/html', '<h1>', now())",
    ),
    refused("merchants", "a key given to another merchant", "UPDATE api_keys SET merchant_id = %(banned)s"),
    refused("merchants", "another hash of a key", "UPDATE api_keys SET key_hash = sha256('mine')"),
    refused("merchants", "a merchant deleted", "DELETE FROM merchants WHERE id = %(merchant)s"),
    refused("merchants", "a share that is no number", "UPDATE merchants SET client_share = 'NaN'"),
    not_promised(
        "merchants",
        "the time of a key's last use",
        "UPDATE api_keys SET last_used_at = now() WHERE id = %(dead_key)s",
    ),
    not_promised(
        "merchants", "a merchant's colour", "UPDATE merchants SET colour = '#000000' WHERE id = %(banned)s"
    ),
)
