"""Builds the OpenAPI document of /api/v1."""

from typing import Any, Final

from gateway.access.limits import POLICY, WINDOW_SECONDS
from gateway.config import GatewaySettings
from gateway.json.body import CreateInvoice
from gateway.json.problems import Json
from gateway.openapi import answers, errors
from gateway.openapi.operations import OPERATIONS, Operation
from gateway.openapi.schemas import example_of, ref
from gateway.openapi.webhook import webhooks

VERSION: Final = "1.0.0"

ABOUT: Final = (
    "Accept fiat money through a hosted page and be settled in USDT.\n\n"
    "Create an invoice, send your customer to its `payment_link`, and wait for the signed webhook that says how it "
    "ended.\n\n"
    "- Every request carries `X-Api-Key`. The key is the whole account: keep it on your servers.\n"
    "- Money and rates are decimal strings, never JSON numbers. Times are ISO 8601 with a UTC offset.\n"
    "- Every field is always present; a field without a value is null. New fields may come: ignore those that you "
    "don't know.\n"
    "- A trailing slash makes no difference."
)
ABOUT_ERRORS: Final = (
    "Decide by `error.code`: several errors share a status. Your operator finds the request by its `request_id`, which "
    "is also in the header `X-Request-Id`. 429 and 503 are temporary, and `Retry-After` has the seconds to wait; other "
    "errors repeat until the request or the account is corrected.\n\n"
    "An address that doesn't exist is 404 `NOT_FOUND`, one that doesn't take the method 405 `METHOD_NOT_ALLOWED`. "
    "A request that cannot be read as HTTP is 400 or 501 with `VALIDATION_ERROR`."
)

TAGS: Final = {
    "Invoices": "Create invoices, and read their state.",
    "Webhooks": "Webhooks of an invoice, and their delivery.",
    "Currencies and payment methods": "Ways to pay for your customers.",
    "Withdrawals": "Your USDT on its way to you.",
}


def document(settings: GatewaySettings) -> Json:
    """Returns the document of this installation: its address, and its limit of requests."""
    components = dict(answers.COMPONENTS)
    codes = dict.fromkeys(
        [*errors.ALWAYS, *(code for each in OPERATIONS for code in each.reasons), *errors.ELSEWHERE]
    )
    components |= errors.components(codes)
    components["CreateInvoice"] = _create_invoice(http_callbacks=settings.webhook_allow_private)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fiatgate",
            "version": VERSION,
            "summary": "Merchant payment API",
            "description": f"{ABOUT}\n\n{ABOUT_ERRORS}{_about_limit(settings.rate_limit_per_minute)}",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": settings.public_url}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "security": [{"ApiKey": []}],
        "paths": _paths(components, is_limited=settings.rate_limit_per_minute > 0),
        "webhooks": webhooks(components),
        "components": {
            "securitySchemes": {"ApiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}},
            "headers": HEADERS,
            "examples": {name: {"value": value} for name, value in errors.examples(codes).items()},
            "schemas": components,
        },
    }


def _about_limit(per_minute: int) -> str:
    if not per_minute:
        return ""
    return (
        f"\n\nA key may make {per_minute} requests in each minute of the clock. A request with more than 4 KiB of body "
        "counts once for each 4 KiB begun. Each process counts for itself, so a key whose connections reach several "
        "gets more. Every answer to a valid key has the headers `RateLimit-Policy` and `RateLimit` "
        "(draft-ietf-httpapi-ratelimit-headers). `RateLimit` is the number "
        'left at the process that answered: `"key";r=5990;t=17` is 5990 requests within the next 17 seconds. '
        "After the last one comes 429 `RATE_LIMITED` until the minute is over."
    )


HEADERS: Final[Json] = {
    "X-Request-Id": {
        "description": "Made by Fiatgate, unique per request.",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    },
    "Retry-After": {
        "description": "Seconds to wait before the next try.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "Location": {
        "description": "The path of the new invoice.",
        "required": True,
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": "The limit: `q` requests in `w` seconds.",
        "required": True,
        "schema": {"type": "string", "pattern": rf'^"{POLICY}";q=[0-9]+;w={WINDOW_SECONDS}$'},
        "example": f'"{POLICY}";q=6000;w={WINDOW_SECONDS}',
    },
    "RateLimit": {
        "description": "Requests left: `r` in the next `t` seconds.",
        "required": True,
        "schema": {"type": "string", "pattern": rf'^"{POLICY}";r=[0-9]+;t=[0-9]+$'},
        "example": f'"{POLICY}";r=5990;t=17',
    },
}


def _paths(components: dict[str, Json], *, is_limited: bool) -> Json:
    paths: Json = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(
            operation, components, is_limited=is_limited
        )
    return paths


def _operation(operation: Operation, components: dict[str, Json], *, is_limited: bool) -> Json:
    body = {"requestBody": _request_body(components)} if operation.has_body else {}
    parameters = {"parameters": list(operation.parameters)} if operation.parameters else {}
    return {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        **parameters,
        **body,
        "responses": {
            str(operation.status): _success(operation, components, is_limited=is_limited),
            **errors.responses((*operation.reasons, *errors.ALWAYS), invalid_fields=operation.invalid_fields),
        },
    }


def _request_body(components: dict[str, Json]) -> Json:
    schema = ref("CreateInvoice")
    return {
        "required": True,
        "content": {"application/json": {"schema": schema, "example": example_of(schema, components)}},
    }


def _success(operation: Operation, components: dict[str, Json], *, is_limited: bool) -> Json:
    names = ["X-Request-Id"]
    if operation.status == 201:
        names.append("Location")
    if is_limited:
        names += ["RateLimit-Policy", "RateLimit"]
    example = example_of(operation.answer, components)
    return {
        "description": operation.answered,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
        "content": {"application/json": {"schema": operation.answer, "example": example}},
    }


def _create_invoice(*, http_callbacks: bool) -> Json:
    """Returns the gateway's own model of the body; a setting decides whether http callbacks are allowed
    (`gateway.json.body`).
    """
    schema: Json = _without_titles(CreateInvoice.model_json_schema())
    schema["description"] = "Body of create-invoice. Unknown fields are ignored."
    if not http_callbacks:
        url, _ = schema["properties"]["callback_url"]["anyOf"]
        url["pattern"] = url["pattern"].replace("^https?:", "^https:")
    return schema


def _without_titles(schema: Any) -> Any:
    """Removes pydantic's titles, which only repeat the members' names."""
    if isinstance(schema, dict):
        return {
            name: _without_titles(each)
            for name, each in schema.items()
            if not (name == "title" and isinstance(each, str))
        }
    return [_without_titles(each) for each in schema] if isinstance(schema, list) else schema
