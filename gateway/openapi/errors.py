"""Every error an endpoint can answer with, made from the table that answers (`gateway.json.problems`)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway.json.problems import (
    BODY_STATUS,
    FIELDS_STATUS,
    PROBLEMS,
    BodyFault,
    FieldFault,
    Json,
    body_envelope,
    envelope,
    fields_envelope,
)
from gateway.openapi.answers import INVOICE_ID
from gateway.openapi.schemas import ref
from kit.rpc.values import PAGE_MOST_ROWS

REQUEST_ID: Final = "ad2754b9293125c8c034769a"

# The errors of any request with a key; the size of a request is checked before everything else.
ALWAYS: Final = (
    "API_KEY_MISSING",
    "API_KEY_INVALID",
    "OWNER_BLOCKED",
    "MERCHANT_BLOCKED",
    "MERCHANT_NOT_ACTIVE",
    "RATE_LIMITED",
    "PAYLOAD_TOO_LARGE",
    "INTERNAL_ERROR",
    "DB_UNAVAILABLE",
)
# A request line or a header that is too long is answered before the endpoint is known.
MORE_STATUSES: Final[Mapping[str, tuple[int, ...]]] = {"PAYLOAD_TOO_LARGE": (414, 431)}
# Answers to addresses that are no endpoint.
ELSEWHERE: Final = ("NOT_FOUND", "METHOD_NOT_ALLOWED")

INVALID_BODY: Final = "InvalidBody"
INVALID_FIELDS: Final = "InvalidFields"

ADVICE: Final[Mapping[str, str]] = {
    "API_KEY_MISSING": "Send the header `X-Api-Key`.",
    "API_KEY_INVALID": "Check the key, or use another of your keys.",
    "OWNER_BLOCKED": "Ask your operator.",
    "MERCHANT_BLOCKED": "Ask your operator.",
    "MERCHANT_NOT_ACTIVE": "Ask your operator to activate the account.",
    "RATE_LIMITED": "Wait for the seconds in `Retry-After`; `message` names the limit. That of the key has "
    "`details.limit`; others bound requests of one merchant at a time, and unknown keys from one network.",
    "PAYLOAD_TOO_LARGE": "A body may have 64 KiB, the request line and each header about 8 KiB.",
    "INTERNAL_ERROR": "Tell your operator the `request_id`. Get the invoice by its `external_id` before you "
    "create it again.",
    "DB_UNAVAILABLE": "Try again after the seconds in `Retry-After`, 5 to 30.",
    "NOT_FOUND": "No such address.",
    "METHOD_NOT_ALLOWED": "The header `Allow` lists the methods.",
    "VALIDATION_ERROR": "Correct what `details` names; the same request will fail again.",
    "DUPLICATE_EXTERNAL_ID": "`details` names the invoice that exists. If the answer to your first request was lost, "
    "that is yours: go on with it.",
    "PENDING_INVOICE_EXISTS": "Send the customer to the `payment_link` in `details`, or wait until it has ended.",
    "CUSTOMER_RATE_LIMIT": "Wait until `next_allowed_at`.",
    "CURRENCY_INVALID": "List the currencies first: it is unknown, disabled, or not yours.",
    "PAYMENT_METHOD_NOT_FOUND": "List the payment methods: the amount is in no method's range.",
    "AMOUNT_BELOW_MIN": "`details` has the minimum.",
    "AMOUNT_ABOVE_MAX": "`details` has the maximum.",
    "MISSING_REQUIRED_URLS": "Send the URLs that `details` names, or set defaults at the dashboard, in Settings.",
    "DEALS_SYSTEM_DISABLED": "Try again after the seconds in `Retry-After`, 5 to 30.",
    "NO_AVAILABLE_REQUISITES": "Try again after the seconds in `Retry-After`, 5 to 30.",
    "INVOICE_NOT_FOUND": "It doesn't exist, or is another merchant's.",
    "INVOICES_NOT_FOUND": "Nothing matches. A page past the last is 200 with empty `data`.",
    "WEBHOOK_NOT_FOUND": "There is one once the invoice has ended.",
    "WEBHOOK_RESEND_COOLDOWN": "Wait for the seconds in `Retry-After`.",
    "WEBHOOK_RESEND_CONFLICT": "A delivery is under way; read the history in a moment.",
    "RATES_UNAVAILABLE": "Try again after the seconds in `Retry-After`, 5 to 30.",
    "RATES_INVALID": "Try again later, and tell your operator.",
    "RATE_INVALID": "Tell your operator; `details` has the currency.",
    "RATE_NOT_FOUND": "Tell your operator: no currency of yours has a rate.",
    "CURRENCY_NOT_FOUND": "List the currencies first.",
    "MERCHANT_CATEGORY_MISSING": "Ask your operator to give the account a category.",
    "MERCHANT_CATEGORY_NOT_FOUND": "Ask your operator to correct the account's category.",
    "MERCHANT_CATEGORY_RATE_INVALID": "Ask your operator to correct the category's commission.",
    "WITHDRAWALS_NOT_FOUND": "Nothing matches. A page past the last is 200 with empty `data`.",
    "WITHDRAWAL_NOT_FOUND": "It doesn't exist, or is another merchant's.",
}

# Metadata of reasons, for examples.
_METADATA: Final[Mapping[str, str]] = {
    "invoice_id": INVOICE_ID,
    "status": "pending",
    "payment_link": f"https://pay.example.com/pay/{INVOICE_ID}",
    "window_minutes": "60",
    "limit": "5",
    "next_allowed_at": "2026-01-15T12:41:07.250000+00:00",
    "customer_id": "alice",
    "currency": "EUR",
    "minimum": "10.00",
    "maximum": "5000.00",
    "fields": "callback_url,fail_url",
    "retry_after_seconds": "42",
    "error_id": "3f9a1c2b",
}
_METADATA_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "RATE_LIMITED": {"limit": "6000", "window_seconds": "60"},
    # A method's code is known only on the customer's page.
    "PAYMENT_METHOD_NOT_FOUND": {"method_code": ""},
}

_JSON_TYPES: Final[Mapping[Any, Json]] = {str: {"type": "string"}, int: {"type": "integer"}}


def status_of(code: str) -> int:
    return PROBLEMS[code].status


def component(code: str) -> str:
    """Returns DuplicateExternalId for DUPLICATE_EXTERNAL_ID."""
    return "".join(word.capitalize() for word in code.split("_"))


def example(code: str) -> Json:
    """Returns the error's answer, made by the function that makes every answer."""
    metadata = {**_METADATA, **_METADATA_OF.get(code, {})}
    return envelope(code, request_id=REQUEST_ID, metadata=metadata)


def components(codes: Iterable[str]) -> dict[str, Json]:
    """Returns a schema for each code, and for the two shapes of a validation error."""
    found = {component(code): _schema(code) for code in codes}
    found[INVALID_BODY] = _invalid_body()
    found[INVALID_FIELDS] = _invalid_fields()
    return found


def examples(codes: Iterable[str]) -> dict[str, Json]:
    """Returns an answer for each code, and for the two shapes of a validation error."""
    return {component(code): example(code) for code in codes} | {
        INVALID_BODY: body_envelope(
            [BodyFault(("body", "currency_code"), "missing", "Field required")], request_id=REQUEST_ID
        ),
        INVALID_FIELDS: fields_envelope(
            [FieldFault("per_page", f"must be at most {PAGE_MOST_ROWS}")], request_id=REQUEST_ID
        ),
    }


def responses(codes: Iterable[str], *, invalid_fields: bool) -> dict[str, Json]:
    """Returns the OpenAPI responses by status; each lists its codes, with a schema and an example for each."""
    told: dict[int, dict[str, str]] = {BODY_STATUS: {INVALID_BODY: "VALIDATION_ERROR"}}
    if invalid_fields:
        told[FIELDS_STATUS] = {INVALID_FIELDS: "VALIDATION_ERROR"}
    for code in codes:
        for status in (status_of(code), *MORE_STATUSES.get(code, ())):
            told.setdefault(status, {})[component(code)] = code
    return {str(status): _response(status, told[status]) for status in sorted(told)}


def _response(status: int, codes: Mapping[str, str]) -> Json:
    """Returns the OpenAPI response of a status. `codes` has its error codes by the names of their components."""
    schemas = [ref(name) for name in codes]
    headers = ["X-Request-Id"]
    if status in (429, 503):
        headers.append("Retry-After")
    return {
        "description": "\n".join(
            f"- `{code}`: {PROBLEMS[code].message}. {ADVICE[code]}" for code in codes.values()
        ),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {
            "application/json": {
                "schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas},
                "examples": {name: {"$ref": f"#/components/examples/{name}"} for name in codes},
            }
        },
    }


# -- schemas

_REQUEST_ID_SCHEMA: Final[Json] = {
    "type": "string",
    "description": "Unique per request, the same as the header `X-Request-Id`: quote it to your operator.",
}


def _envelope_schema(description: str, error: Json) -> Json:
    return {
        "type": "object",
        "description": description,
        "properties": {
            "successful": {"type": "boolean", "const": False},
            "request_id": _REQUEST_ID_SCHEMA,
            "error": error,
        },
        "required": ["successful", "request_id", "error"],
    }


def _error_schema(code: str, details: Json, members: Mapping[str, Json]) -> Json:
    return {
        "type": "object",
        "properties": {
            "code": {"type": "string", "const": code, "description": "Decide by this, not by the status."},
            "message": {"type": "string", "description": "For people; may change."},
            "details": details,
            **members,
        },
        "required": ["code", "message", "details"],
    }


def _schema(code: str) -> Json:
    problem = PROBLEMS[code]
    details = {
        "type": "object",
        "description": "Empty when there are no details.",
        "properties": {name: _json_type(convert) for name, convert in problem.details.items()},
    }
    members = {name: _json_type(convert) for name, convert in problem.members.items()}
    return _envelope_schema(f"{problem.message}. {ADVICE[code]}", _error_schema(code, details, members))


def _json_type(convert: object) -> Json:
    return dict(_JSON_TYPES.get(convert, {"type": "array", "items": {"type": "string"}}))


def _invalid_body() -> Json:
    fault = {
        "type": "object",
        "properties": {
            "loc": {
                "type": "array",
                "items": {"type": "string"},
                "description": 'Where: `body`, then the member. `["request"]` when it was not even HTTP.',
            },
            "code": {"type": "string", "description": "The kind of fault, such as `missing`."},
            "message": {"type": "string", "description": "For people; may change."},
        },
        "required": ["loc", "code", "message"],
    }
    details = {"type": "array", "items": fault, "description": "All that is wrong."}
    return _envelope_schema(
        "The body, or the request itself, is not of the documented form.",
        _error_schema("VALIDATION_ERROR", details, {}),
    )


def _invalid_fields() -> Json:
    fault = {
        "type": "object",
        "properties": {
            "field": {"type": "string", "description": "The query parameter, or `amount`."},
            "message": {"type": "string", "description": "For people; may change."},
        },
        "required": ["field", "message"],
    }
    properties: dict[str, Json] = {
        "error": {"type": "string", "const": "VALIDATION_ERROR"},
        "message": {"type": "string", "description": "For people; may change."},
        "code": {"type": "integer", "const": FIELDS_STATUS},
        "details": {"type": "array", "items": fault, "description": "All that is wrong."},
        "successful": {"type": "boolean", "const": False},
        "request_id": _REQUEST_ID_SCHEMA,
    }
    return {
        "type": "object",
        "description": "A query parameter is not of the documented form, or an amount has too many decimals. "
        "Another shape than other errors have: `error` is the code itself.",
        "properties": properties,
        "required": list(properties),
    }
