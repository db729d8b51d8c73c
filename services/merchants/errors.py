"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from typing import Final

from kit.rpc import values
from kit.rpc.errors import Refused, denied, exhausted, invalid, not_found, precondition

# The message of each reason to refuse a key.
_MESSAGES: Final = {
    "API_KEY_INVALID": "API key is invalid or deactivated",
    "OWNER_BLOCKED": "Merchant account owner is blocked",
    "MERCHANT_BLOCKED": "Merchant account is banned",
    "MERCHANT_NOT_ACTIVE": "Merchant account is not yet activated",
}


def not_admitted(reason: str) -> Refused:
    """Returns API_KEY_INVALID, OWNER_BLOCKED, MERCHANT_BLOCKED or MERCHANT_NOT_ACTIVE."""
    return denied(reason, _MESSAGES[reason])


def merchant_not_found() -> Refused:
    return not_found("MERCHANT_NOT_FOUND", "There is no merchant with this id")


def merchant_state_conflict(status: str) -> Refused:
    return precondition("MERCHANT_STATE_CONFLICT", f"The merchant is {status}", status=status)


def category_not_found(code: str) -> Refused:
    return invalid("MERCHANT_CATEGORY_NOT_FOUND", f"There is no category {code!r}", field="category_code")


def owner_not_found() -> Refused:
    return not_found("OWNER_NOT_FOUND", "There is no owner with this e-mail address")


def api_key_not_found() -> Refused:
    return not_found("API_KEY_NOT_FOUND", "There is no API key with this id")


def api_keys_limited(most: int) -> Refused:
    message = f"The merchant has {most} active keys, the most: deactivate one first"
    return exhausted("API_KEYS_LIMITED", message, most=str(most))


def logo_not_found() -> Refused:
    return not_found("NOT_FOUND", "There is no such logo")


def logo_invalid(message: str) -> Refused:
    advice = "a WebP of 320 x 96 pixels will do, for customers see it in at most 160 x 48"
    return values.invalid("logo", f"logo: {message}; {advice}")
