"""Attacks by someone who has the address of webhooks' database."""

from typing import Final

from tests.security.attacks.attack import found, not_promised, refused

_EVENT: Final = (
    "INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url,"
    " destination, payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)"
    " SELECT gen_random_uuid(), {invoice}, merchant_id, key_id, event_type, 'pending', callback_url,"
    " destination, payload, 0, 0, now() + interval '1 day', now(), now() FROM events WHERE invoice_id = %(sold)s"
)

ATTACKS: Final = (
    found(
        "webhooks",
        "an event of an unpaid invoice",
        _EVENT.format(invoice="%(canceled_by_nobody)s"),
        "%(canceled_by_nobody)s",
        "unknown or not finished",
    ),
    found(
        "webhooks",
        "an event of an invoice before all others",
        _EVENT.format(invoice="'00000000-0000-0000-0000-000000000000'"),
        "event of invoice 00000000-0000-0000-0000-000000000000",
        "unknown or not finished",
    ),
    found(
        "webhooks",
        "another body with another seal",
        "UPDATE events SET payload = 'x', seal = 'AAAA' WHERE invoice_id = %(canceled)s",
        "%(canceled)s",
        "seal is wrong",
    ),
    refused("webhooks", "another body", "UPDATE events SET payload = 'x' WHERE invoice_id = %(sold)s"),
    refused("webhooks", "an event deleted", "DELETE FROM events"),
    refused(
        "webhooks",
        "a lease without an end",
        "UPDATE events SET lease_until = 'infinity' WHERE invoice_id = %(sold)s",
    ),
    not_promised(
        "webhooks",
        "the text of an attempt",
        "INSERT INTO attempts (event_id, try_number, trigger, status, duration_ms, created_at, error_message)"
        " SELECT id, 900, 'manual', 'failure', 1, now(), 'eve' FROM events WHERE invoice_id = %(sold)s",
    ),
    not_promised(
        "webhooks",
        "the time of the next attempt",
        "UPDATE events SET next_retry_at = now() + interval '6 days' WHERE status = 'pending'",
    ),
)
