"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from typing import Final

from kit.rpc import values
from kit.rpc.errors import Refused, denied, exhausted, invalid, not_found, precondition, unauthenticated

# The message of each reason to refuse a key.
_MESSAGES: Final = {
    "API_KEY_INVALID": "API key is invalid or deactivated",
    "OWNER_BLOCKED": "Merchant account owner is blocked",
    "MERCHANT_BLOCKED": "Merchant account is banned",
    "MERCHANT_NOT_ACTIVE": "Merchant account is not yet activated",
}


def invitation_invalid() -> Refused:
    return not_found("INVITATION_INVALID", "The link is not valid any more; ask for a new one")


def invitation_not_found() -> Refused:
    return not_found("INVITATION_NOT_FOUND", "There is no open invitation with this id")


def mail_required() -> Refused:
    return precondition(
        "MAIL_REQUIRED",
        "Members are invited by e-mail, and this installation sends none; ask the operator to invite the person",
    )


def too_many_invitations(most: int, message: str) -> Refused:
    return precondition("INVITATIONS_LIMITED", message, most=str(most))


def sign_in_refused() -> Refused:
    return unauthenticated("SIGN_IN_REFUSED", "E-mail address, password, code or passkey is wrong")


def sign_in_delayed(retry_after_seconds: int) -> Refused:
    return exhausted(
        "SIGN_IN_DELAYED", "Too many wrong tries; wait a moment", retry_after_seconds=str(retry_after_seconds)
    )


def session_invalid() -> Refused:
    return unauthenticated("SESSION_INVALID", "The session has ended; sign in again")


def session_not_found() -> Refused:
    return not_found("SESSION_NOT_FOUND", "There is no live session with this id")


def merchant_not_found() -> Refused:
    return not_found("MERCHANT_NOT_FOUND", "There is no merchant with this id")


def step_up_required() -> Refused:
    return denied("STEP_UP_REQUIRED", "Confirm that it is you: a passkey or a code within the last 5 minutes")


def person_not_found() -> Refused:
    return not_found("PERSON_NOT_FOUND", "There is no such person")


def factor_not_found() -> Refused:
    return not_found("FACTOR_NOT_FOUND", "There is no such passkey or TOTP")


def last_factor() -> Refused:
    return precondition(
        "LAST_FACTOR", "It is needed to sign in; add a passkey, or a password with TOTP, before"
    )


def last_admin() -> Refused:
    return precondition("LAST_ADMIN", "It is the last active admin; make another one before")


def last_owner() -> Refused:
    return precondition("LAST_OWNER", "It is the merchant's last active owner; make another one before")


def passkey_invalid() -> Refused:
    return invalid("PASSKEY_INVALID", "The passkey can't be added")


def password_refused(message: str) -> Refused:
    return invalid("PASSWORD_REFUSED", message, field="password")


def code_invalid() -> Refused:
    return invalid("CODE_INVALID", "The code is wrong", field="code")


def not_permitted(needed: str) -> Refused:
    return denied("NOT_PERMITTED", "This is for a person who is signed in", needed=needed)


def not_admitted(reason: str) -> Refused:
    """Returns API_KEY_INVALID, OWNER_BLOCKED, MERCHANT_BLOCKED or MERCHANT_NOT_ACTIVE."""
    return denied(reason, _MESSAGES[reason])


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
