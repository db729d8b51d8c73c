"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from kit.rpc.errors import Refused, conflict, exhausted, not_found


def webhook_not_found() -> Refused:
    return not_found("WEBHOOK_NOT_FOUND", "The invoice has no webhook event yet")


def event_not_found() -> Refused:
    return not_found("WEBHOOK_EVENT_NOT_FOUND", "No such webhook event")


def resend_conflict() -> Refused:
    return conflict("WEBHOOK_RESEND_CONFLICT", "Another delivery attempt of this event is under way")


def no_address() -> Refused:
    return not_found("WEBHOOK_NOT_FOUND", "The merchant has no default address for webhooks")


def no_key() -> Refused:
    return not_found("API_KEY_NOT_FOUND", "The merchant has no active API key to sign with")


def test_cooldown(retry_after_seconds: int) -> Refused:
    message = f"A test event was sent a moment ago, retry in {retry_after_seconds} s"
    return exhausted("WEBHOOK_RESEND_COOLDOWN", message, retry_after_seconds=str(retry_after_seconds))


def resend_cooldown(retry_after_seconds: int) -> Refused:
    message = f"This event was resent a moment ago, retry in {retry_after_seconds} s"
    return exhausted("WEBHOOK_RESEND_COOLDOWN", message, retry_after_seconds=str(retry_after_seconds))
