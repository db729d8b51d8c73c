"""The table from a reason to its HTTP status and message (docs/api.md#error-codes), and the three shapes of an error.

`PROBLEMS` has every value of fiatgate.errors.v1.ErrorReason but those of people who sign in, as
tests/gateway/test_problems.py checks. The reason itself is the public code. No other module of the gateway
has an HTTP status of an error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]
Convert = Callable[[str], object]

RETRY_SECONDS: Final = 5  # docs/api.md#error-codes promises 5 to 30 seconds


@dataclass(frozen=True)
class Problem:
    """The form of one reason over HTTP.

    status   the HTTP status
    message  for people, when the refusing service gave none
    details  the reason's metadata that become `error.details`, with their conversion
    members  the metadata that become further members of `error`
    own_message  False where the service's message must not leave the gateway
    retry_after_seconds  the Retry-After header, unless the metadata has a better value
    """

    status: int
    message: str
    details: Mapping[str, Convert] = field(default_factory=dict)
    members: Mapping[str, Convert] = field(default_factory=dict)
    own_message: bool = True
    retry_after_seconds: int | None = None


def _names(text: str) -> list[str]:
    return text.split(",")


def _later(message: str) -> Problem:
    """Returns the row of a temporary 503."""
    return Problem(503, message, retry_after_seconds=RETRY_SECONDS)


_WAITING: Final[Mapping[str, Convert]] = {"invoice_id": str, "payment_link": str}
_EXISTING: Final[Mapping[str, Convert]] = {
    "invoice_id": str,
    "status": str,
    "payment_link": str,
    "amount": str,
    "currency": str,
}
_STATE: Final[Mapping[str, Convert]] = {"status": str, "sub_status": str, "substatus": str}

_INTERNAL = Problem(500, "Unexpected server error", members={"error_id": str}, own_message=False)

PROBLEMS: Final[Mapping[str, Problem]] = {
    "ERROR_REASON_UNSPECIFIED": _INTERNAL,
    # -- authentication
    "API_KEY_MISSING": Problem(401, "The X-Api-Key header is missing or empty"),
    "API_KEY_INVALID": Problem(403, "The API key is invalid or deactivated"),
    "API_KEY_WRONG_MODE": Problem(403, "The API key is one of the other mode: live or test"),
    "API_KEY_SCOPE_MISSING": Problem(403, "The API key lacks the scope", {"scope": str}),
    "OWNER_BLOCKED": Problem(403, "The owner of the merchant account is blocked"),
    "MERCHANT_BLOCKED": Problem(403, "The merchant account is banned"),
    "MERCHANT_NOT_ACTIVE": Problem(403, "The merchant account is not yet activated"),
    # -- create-invoice
    "DUPLICATE_EXTERNAL_ID": Problem(409, "An invoice with this external_id exists", _EXISTING),
    "PENDING_INVOICE_EXISTS": Problem(409, "The customer already has a pending invoice", _WAITING),
    "CUSTOMER_RATE_LIMIT": Problem(
        403,
        "Too many unpaid invoices for this customer",
        {"window_minutes": int, "limit": int, "next_allowed_at": str, "customer_id": str},
    ),
    "CURRENCY_INVALID": Problem(422, "The currency is unknown or disabled", {"currency": str}),
    "PAYMENT_METHOD_NOT_FOUND": Problem(
        422, "No active payment method fits the currency and amount", {"currency": str, "method_code": str}
    ),
    "AMOUNT_BELOW_MIN": Problem(
        422, "The amount is below the currency's minimum", {"minimum": str, "currency": str}
    ),
    "AMOUNT_ABOVE_MAX": Problem(
        422, "The amount is above the currency's maximum", {"maximum": str, "currency": str}
    ),
    "MISSING_REQUIRED_URLS": Problem(
        422, "URLs are missing in the request and in the merchant's defaults", {"fields": _names}
    ),
    "DEALS_SYSTEM_DISABLED": _later("Invoice creation is temporarily unavailable"),
    "NO_AVAILABLE_REQUISITES": _later("No payment requisites are available"),
    # -- invoices and webhooks
    "INVOICE_NOT_FOUND": Problem(404, "Invoice not found"),
    "INVOICES_NOT_FOUND": Problem(404, "No invoices match the filters"),
    "INVOICE_FINISHED": Problem(409, "The invoice is finished", {"status": str}),
    "DEAL_STATE_CONFLICT": Problem(
        409, "The deal's state does not allow this", {"status": str, "sub_status": str}
    ),
    "WEBHOOK_NOT_FOUND": Problem(404, "The invoice has no webhook events yet"),
    "WEBHOOK_RESEND_COOLDOWN": Problem(
        429, "This event was resent a moment ago", {"retry_after_seconds": int}, retry_after_seconds=60
    ),
    "WEBHOOK_RESEND_CONFLICT": Problem(409, "Another attempt is processing the event"),
    # -- currencies and payment methods
    "RATES_UNAVAILABLE": _later("Rates are temporarily unavailable"),
    "RATES_INVALID": _later("The stored rates are invalid"),
    "RATE_INVALID": Problem(422, "A currency's rate is invalid", {"currency": str}),
    "RATE_NOT_FOUND": Problem(404, "No valid rates found"),
    "CURRENCY_NOT_FOUND": Problem(404, "The currency is unknown", members={"currency": str}),
    "MERCHANT_CATEGORY_MISSING": Problem(400, "The merchant has no category"),
    "MERCHANT_CATEGORY_NOT_FOUND": Problem(400, "The merchant's category does not exist"),
    "MERCHANT_CATEGORY_RATE_INVALID": Problem(400, "The category's commission is not within 0..1"),
    # -- withdrawals
    "WITHDRAWALS_NOT_FOUND": Problem(404, "No withdrawals match"),
    "WITHDRAWAL_NOT_FOUND": Problem(404, "Withdrawal not found"),
    # -- refunds
    "REFUND_INVALID": Problem(
        422, "The payment can't be refunded, or not by so much", {"refundable": str, "currency": str}
    ),
    "REFUND_EXISTS": Problem(409, "Another refund has this external_id", {"refund_id": str}),
    "INSUFFICIENT_BALANCE": Problem(
        409,
        "The balance is too low",
        {"available": str, "requested": str, "refundable": str, "currency": str},
    ),
    # -- the feed of bank lines
    "FEED_ACCOUNT_NOT_ALLOWED": Problem(
        403, "The connector's key is not for this account", {"account": str, "currency": str}
    ),
    # -- any call
    "VALIDATION_ERROR": Problem(400, "Invalid payload"),
    "INTERNAL_ERROR": _INTERNAL,
    "RATE_LIMITED": Problem(
        429,
        "Too many requests with this key, of this merchant, from this network or for this payment",
        {"limit": int, "window_seconds": int, "retry_after_seconds": int},
        retry_after_seconds=60,
    ),
    "DB_UNAVAILABLE": Problem(
        503, "The service is temporarily unavailable", own_message=False, retry_after_seconds=RETRY_SECONDS
    ),
    # -- the HTTP surface itself
    "NOT_FOUND": Problem(404, "No such address"),
    "METHOD_NOT_ALLOWED": Problem(405, "This address does not take this method"),
    "PAYLOAD_TOO_LARGE": Problem(413, "The request is too large"),
    # -- operators and the customer's page; not raised on /api/v1 today
    "DEAL_NOT_FOUND": Problem(404, "Deal not found"),
    "ADJUSTMENT_INVALID": Problem(
        422,
        "The adjusted amount is not between zero and the original",
        {"amount": str, "original_amount": str},
    ),
    "REQUISITE_NOT_FOUND": Problem(404, "Requisite not found"),
    "MERCHANT_NOT_FOUND": Problem(404, "Merchant not found"),
    "OWNER_NOT_FOUND": Problem(404, "Owner not found"),
    "API_KEY_NOT_FOUND": Problem(404, "API key not found"),
    "MERCHANT_STATE_CONFLICT": Problem(409, "The merchant's state does not allow this", _STATE),
    "CATEGORY_NOT_FOUND": Problem(404, "Category not found"),
    "RATE_NOT_HELD": Problem(409, "No rate waits for acceptance", {"currency": str}),
    "WITHDRAWAL_METHOD_NOT_FOUND": Problem(404, "Withdrawal method not found"),
    "WITHDRAWAL_ADDRESS_INVALID": Problem(422, "The address is not one of the network", {"network": str}),
    "WITHDRAWAL_AMOUNT_INVALID": Problem(
        422, "The amount is out of the method's bounds", {"minimum": str, "maximum": str}
    ),
    "REFUND_NOT_FOUND": Problem(404, "Refund not found"),
    "REFUND_STATE_CONFLICT": Problem(409, "The refund's state does not allow this", _STATE),
    "WITHDRAWAL_STATE_CONFLICT": Problem(409, "The withdrawal's state does not allow this", _STATE),
    "SIGNING_SECRET_NOT_FOUND": Problem(409, "No active key of the merchant can sign"),
    "WEBHOOK_EVENT_NOT_FOUND": Problem(404, "Webhook event not found"),
    "LINK_NOT_FOUND": Problem(404, "Payment link not found"),
    "LINK_ENDED": Problem(409, "The payment link has ended", _STATE),
    "LINK_BUSY": Problem(429, "Too many invoices of the payment link wait for payment", {"most": int}),
    "CASE_NOT_FOUND": Problem(404, "Case not found"),
    "CASE_STATE_CONFLICT": Problem(409, "The case is closed already"),
    "PROOF_NOT_FOUND": Problem(404, "No picture was sent"),
    "RATE_JUMPS": Problem(
        409,
        "The rate is too far from the last one",
        {"currency": str, "rate_before": str, "most": str},
    ),
    "EDIT_CONFLICT": Problem(409, "Another change came first", {"field": str, "now": str}),
}


def problem_of(reason: str) -> Problem:
    """Returns the row of the reason; a newer service's reason that this gateway does not know is an internal error."""
    return PROBLEMS.get(reason, _INTERNAL)


def envelope(
    reason: str, *, request_id: str, message: str = "", metadata: Mapping[str, str] | None = None
) -> Json:
    """Returns docs/api.md#error-format: {successful, request_id, error: {code, message, details, ...}}."""
    problem = problem_of(reason)
    given = metadata or {}
    return {
        "successful": False,
        "request_id": request_id,
        "error": {
            "code": "INTERNAL_ERROR" if problem is _INTERNAL else reason,
            "message": (message if problem.own_message else "") or problem.message,
            "details": _taken(problem.details, given),
            **_taken(problem.members, given),
        },
    }


def _taken(wanted: Mapping[str, Convert], given: Mapping[str, str]) -> Json:
    return {key: convert(given[key]) for key, convert in wanted.items() if given.get(key)}


# -- validation errors: two shapes (docs/api.md#validation-errors)


@dataclass(frozen=True)
class BodyFault:
    """loc      the place, from "body" on
    code     the kind of fault, such as "missing"
    message  for people
    """

    loc: tuple[str, ...]
    code: str
    message: str


class InvalidBody(Exception):
    """The body does not fit its schema: 400, and each fault with its place."""

    def __init__(self, *faults: BodyFault) -> None:
        super().__init__(faults)
        self.faults: Sequence[BodyFault] = faults


@dataclass(frozen=True)
class FieldFault:
    field: str
    message: str


class InvalidFields(Exception):
    """Wrong query values, or an amount with too many decimals: 422, and each fault with its field."""

    def __init__(self, *faults: FieldFault) -> None:
        super().__init__(faults)
        self.faults: Sequence[FieldFault] = faults


BODY_STATUS: Final = PROBLEMS["VALIDATION_ERROR"].status
FIELDS_STATUS: Final = 422


def body_envelope(faults: Sequence[BodyFault], *, request_id: str) -> Json:
    """Returns the 400 shape: `details` is a list of {loc, code, message}."""
    answer = envelope("VALIDATION_ERROR", request_id=request_id)
    answer["error"]["details"] = [
        {"loc": list(fault.loc), "code": fault.code, "message": fault.message} for fault in faults
    ]
    return answer


def fields_envelope(faults: Sequence[FieldFault], *, request_id: str) -> Json:
    """Returns the 422 shape, with `successful` and `request_id` as in every answer."""
    return {
        "error": "VALIDATION_ERROR",
        "message": "Invalid request parameters",
        "code": FIELDS_STATUS,
        "details": [{"field": fault.field, "message": fault.message} for fault in faults],
        "successful": False,
        "request_id": request_id,
    }
