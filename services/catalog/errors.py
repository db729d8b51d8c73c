"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from decimal import Decimal

from kit.base.money import rate_text
from kit.rpc import values
from kit.rpc.errors import Refused, not_found, precondition, unavailable


def logo_invalid(message: str) -> Refused:
    advice = "a WebP of 96 x 96 pixels will do, for customers see it in 40 x 40"
    return values.invalid("logo", f"logo: {message}; {advice}")


def logo_not_found() -> Refused:
    return not_found("NOT_FOUND", "There is no such logo")


def currency_not_found(code: str) -> Refused:
    """Returns CURRENCY_NOT_FOUND; `code` is in upper case."""
    return not_found("CURRENCY_NOT_FOUND", "Currency is unknown or disabled", currency=code)


def payment_method_not_found(method_code: str) -> Refused:
    message = "Payment method is unknown, inactive or not available to the merchant"
    return not_found("PAYMENT_METHOD_NOT_FOUND", message, method_code=method_code)


def category_missing() -> Refused:
    return precondition("MERCHANT_CATEGORY_MISSING", "The merchant has no category")


def category_not_found() -> Refused:
    return precondition("MERCHANT_CATEGORY_NOT_FOUND", "The merchant's category does not exist")


def category_rate_invalid() -> Refused:
    return precondition("MERCHANT_CATEGORY_RATE_INVALID", "The category's commission is not usable")


def rates_unavailable() -> Refused:
    return unavailable("RATES_UNAVAILABLE", "There are no up-to-date rates now, retry in a few seconds")


def rates_invalid() -> Refused:
    return unavailable("RATES_INVALID", "The stored rates are malformed")


def rate_invalid(currency_code: str) -> Refused:
    return precondition("RATE_INVALID", f"The rate of {currency_code} is not usable", currency=currency_code)


def rate_not_found() -> Refused:
    return not_found("RATE_NOT_FOUND", "No rates found")


def rate_jumps(currency_code: str, rate_before: Decimal, most: Decimal) -> Refused:
    before = _rate_with_all_decimals(rate_before)
    message = f"The rate is more than {most:.0%} away from the last rate of {currency_code}, {before}"
    return precondition("RATE_JUMPS", message, currency=currency_code, rate_before=before, most=f"{most:f}")


def _rate_with_all_decimals(rate: Decimal) -> str:
    """Returns all decimals of the rate, at least two, such as "92.10" or "0.9215"."""
    two = rate_text(rate)
    return two if Decimal(two) == rate else f"{rate.normalize():f}"


def rate_not_held(currency_code: str) -> Refused:
    message = f"No rate of {currency_code} waits for acceptance"
    return precondition("RATE_NOT_HELD", message, currency=currency_code)
