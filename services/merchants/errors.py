"""Every reason that this service can refuse with, besides those of kit."""

from collections.abc import Callable
from typing import Final, TypeVar

from kit.rpc.errors import Refused, denied, invalid, not_found, precondition

V = TypeVar("V")
T = TypeVar("T")

# The message of each reason to refuse a key.
_ADMISSION: Final = {
    "API_KEY_INVALID": "API key is invalid or deactivated",
    "OWNER_BLOCKED": "Merchant account owner is blocked",
    "MERCHANT_BLOCKED": "Merchant account is banned",
    "MERCHANT_NOT_ACTIVE": "Merchant account is not yet activated",
}


def not_admitted(reason: str) -> Refused:
    """API_KEY_INVALID, OWNER_BLOCKED, MERCHANT_BLOCKED or MERCHANT_NOT_ACTIVE."""
    return denied(reason, _ADMISSION[reason])


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


def logo_not_found() -> Refused:
    return not_found("NOT_FOUND", "There is no such logo")


def logo_invalid(message: str) -> Refused:
    advice = "a WebP of 320 x 96 pixels will do, for customers see it in at most 160 x 48"
    return invalid("VALIDATION_ERROR", f"logo: {message}; {advice}", field="logo")


def out_of_bounds(field: str, most: int) -> Refused:
    return invalid("VALIDATION_ERROR", f"{field}: at most {most}", field=field)


def checked(field: str, parse: Callable[[V], T], value: V) -> T:
    """Returns `parse(value)`; turns its ValueError into a VALIDATION_ERROR that names the field."""
    try:
        return parse(value)
    except ValueError as error:
        raise invalid("VALIDATION_ERROR", f"{field}: {error}", field=field) from None
