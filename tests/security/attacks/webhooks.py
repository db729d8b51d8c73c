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
        "a body with half a character, which no answer holds",
        "UPDATE events SET payload = convert_to('{\"x\": \"\\ud800\"}', 'UTF8'), seal = 'mine'"
        " WHERE invoice_id = %(adjusted)s",
        "%(adjusted)s",
        "payload x is ",
    ),
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
    found(
        "webhooks",
        "a lease of years",
        "UPDATE events SET locked_at = now(), locked_by = 'x', lease_token = gen_random_uuid(),"
        " lease_until = now() + interval '9 years' WHERE invoice_id = %(sold)s",
        "%(sold)s: lease_until is ",
    ),
    found(
        "webhooks",
        "the end of all retries without an attempt",
        "UPDATE events SET status = 'dead', next_retry_at = NULL WHERE invoice_id = %(canceled_by_nobody)s",
        "%(canceled_by_nobody)s: status is dead",
    ),
    found(
        "webhooks",
        "a count of attempts",
        "UPDATE events SET auto_attempts = 2147483647 WHERE invoice_id = %(erased)s",
        "%(erased)s: attempts is 21474836",
    ),
    found(
        "webhooks",
        "a resend in the future",
        "UPDATE events SET last_manual_at = now() + interval '9 years' WHERE invoice_id = %(adjusted)s",
        "%(adjusted)s: last_manual_at is ",
    ),
    refused(
        "webhooks",
        "another body",
        "UPDATE events SET payload = 'x' WHERE invoice_id = %(sold)s",
        "destination, payload, created_at keep their value",
    ),
    refused("webhooks", "an event deleted", "DELETE FROM events", "permission denied for table events"),
    refused(
        "webhooks",
        "a lease without an end",
        "UPDATE events SET lease_until = 'infinity' WHERE invoice_id = %(sold)s",
        "ck_events_bounds",
    ),
    not_promised(
        "webhooks",
        "a failed attempt with its count",
        "WITH made AS (INSERT INTO attempts (event_id, try_number, trigger, status, duration_ms, created_at)"
        " SELECT id, auto_attempts + manual_attempts + 1, 'manual', 'failure', 1, now() FROM events"
        " WHERE invoice_id = %(sold)s RETURNING event_id)"
        " UPDATE events SET manual_attempts = manual_attempts + 1 FROM made WHERE id = event_id",
    ),
    not_promised(
        "webhooks",
        "the time of the next attempt",
        "UPDATE events SET next_retry_at = now() + interval '6 days' WHERE status = 'pending'",
    ),
)
