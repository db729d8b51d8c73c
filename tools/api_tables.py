"""Renders the tables of docs/api.md that come from the gateway: endpoints, objects, errors, limits.

The states of invoices, deals and withdrawals are in tools/api_states.py. tools/docs.py writes all of them into the
document. tests/test_api_document.py reads them back and compares them with the gateway's own description of the API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final

from gateway.api.paging import PER_PAGE_DEFAULT
from gateway.config import GatewaySettings
from gateway.json.problems import PROBLEMS, Json
from gateway.openapi import errors
from gateway.openapi.document import document
from gateway.openapi.operations import OPERATIONS, Operation
from gateway.openapi.schemas import named
from gateway.openapi.webhook import HEADERS
from gateway.walls import uploads
from kit.base.config.processes import Settings
from kit.base.money import FIAT_PLACES, USDT_PLACES
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from kit.rpc.values import PAGE_MOST_ROWS
from kit.web import bodies
from kit.web.exchange import REQUEST_SECONDS
from kit.web.http1 import HEAD_MAX_BYTES, REQUEST_LINE_MAX_BYTES
from services.invoices.config import InvoicesSettings
from services.webhooks.config import WebhooksSettings

FORMATS: Final = {"uuid": "UUID", "date-time": "time", "iri": "URL"}
PATTERNS: Final = {
    rf"^[0-9]+\.[0-9]{{{FIAT_PLACES}}}$": f"{FIAT_PLACES} decimals",
    rf"^[0-9]+\.[0-9]{{{USDT_PLACES}}}$": f"{USDT_PLACES} decimals",
}


@cache
def described() -> Json:
    """Returns the document of an installation with default settings. The addresses are never called."""
    addresses = {name: "127.0.0.1:1" for name in GatewaySettings.model_fields if name.endswith("_address")}
    return document(GatewaySettings(**addresses))  # type: ignore[arg-type]  # checked by pydantic


def anchor_of(schema: str) -> str:
    return f"object-{schema}"


# -- fields


def type_of(schema: Json) -> str:
    """Returns the JSON type in the words of docs/api.md, without null."""
    for each in (schema, *schema.get("anyOf", ())):
        if "$ref" in each:
            return f"[{named(each['$ref'])}](#{anchor_of(named(each['$ref']))})"
    if "anyOf" in schema:
        return next(type_of(each) for each in schema["anyOf"] if each.get("type") != "null")
    if schema["type"] == "array":
        return f"array of {type_of(schema['items'])}"
    first = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    form = FORMATS.get(schema.get("format", "")) or PATTERNS.get(schema.get("pattern", ""))
    return f"{first} ({form})" if form else str(first)


def is_nullable(schema: Json) -> bool:
    return "null" in schema.get("type", ()) or {"type": "null"} in schema.get("anyOf", ())


def fields_of(schema: Json, prefix: str = "") -> Iterator[tuple[str, Json, bool]]:
    """Yields the name, schema and presence of every member. Members of inner objects follow as `outer.inner`."""
    for name, each in schema["properties"].items():
        yield f"{prefix}{name}", each, name in schema.get("required", ())
        if "properties" in each:
            yield from fields_of(each, f"{prefix}{name}.")


def bounds_of(schema: Json) -> str:
    """Returns allowed values, lengths and the default, as one phrase."""
    chosen = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    words = []
    if "enum" in chosen:
        words.append("one of " + ", ".join(f"`{each}`" for each in chosen["enum"] if each is not None))
    if "maxLength" in chosen:
        words.append(f"{chosen.get('minLength', 0)} to {chosen['maxLength']} characters")
    elif "pattern" in chosen and chosen["pattern"] not in PATTERNS:
        words.append(f"`{chosen['pattern']}`")
    if "maximum" in chosen:
        words.append(f"{chosen['minimum']} to {chosen['maximum']}")
    elif "minimum" in chosen:
        words.append(f"at least {chosen['minimum']}")
    if schema.get("default") is not None:
        words.append(f"default `{schema['default']}`")
    return ", ".join(words).replace("|", "\\|")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [f"| {' | '.join(line)} |" for line in (names, *rows)]
    return "\n".join([lines[0], "|---" * len(names) + "|", *lines[1:]])


def _members(schema: Json) -> str:
    return table(
        ("field", "type", "nullable", "meaning"),
        (
            (f"`{name}`", type_of(each), "yes" if is_nullable(each) else "", _meaning(each))
            for name, each, _ in fields_of(schema)
        ),
    )


def _meaning(schema: Json) -> str:
    """Returns its description and the closed set of its values. Other bounds of answers are no use to a client."""
    text = _description(schema)
    return f"{text} O{bounds_of(schema)[1:]}." if "enum" in schema else text


def _description(schema: Json) -> str:
    for each in (schema, *schema.get("anyOf", ())):
        if each.get("description"):
            return str(each["description"])
        if "$ref" in each:
            return str(described()["components"]["schemas"][named(each["$ref"])]["description"])
    return ""


# -- endpoints


def endpoint(operation: Operation) -> str:
    """Renders one endpoint: parameters, body, answer, its own errors."""
    told = described()["paths"][operation.path][operation.method]
    parts = [f"`{operation.method.upper()} {operation.path}`"]
    if parameters := told.get("parameters"):
        parts += ["**Parameters**", _parameters(parameters)]
    if operation.has_body:
        parts += [
            "**Request body**, a JSON object",
            _body(described()["components"]["schemas"]["CreateInvoice"]),
        ]
    parts += [f"**Answer**, status {operation.status}", _answer(operation.answer)]
    parts += ["**Errors**, besides [those of every request](#errors-of-every-request)", _errors(operation)]
    return "\n\n".join(parts)


def _parameters(parameters: Iterable[Json]) -> str:
    return table(
        ("parameter", "in", "type", "bounds", "meaning"),
        (
            (
                f"`{each['name']}`",
                each["in"],
                type_of(each["schema"]),
                bounds_of(each["schema"]),
                each["description"],
            )
            for each in parameters
        ),
    )


def _body(schema: Json) -> str:
    return table(
        ("field", "type", "required", "bounds", "meaning"),
        (
            (
                f"`{name}`",
                type_of(each),
                "yes" if is_required else "",
                bounds_of(each),
                _description(each),
            )
            for name, each, is_required in fields_of(schema)
        ),
    )


def _answer(schema: Json) -> str:
    return f"The object {type_of(schema)}." if "$ref" in schema else _members(schema)


def _errors(operation: Operation) -> str:
    codes = [(str(errors.status_of(code)), code) for code in operation.reasons]
    if operation.invalid_fields:
        codes.append(("422", "VALIDATION_ERROR"))
    return (
        table(("status", "code"), ((status, _code(code)) for status, code in sorted(codes)))
        if codes
        else "None."
    )


def _code(code: str) -> str:
    return f"[`{code}`](#error-{code})"


def any_request() -> str:
    codes = [*((errors.status_of(code), code) for code in errors.ALWAYS), (400, "VALIDATION_ERROR")]
    more = [(status, code) for code, each in errors.MORE_STATUSES.items() for status in each]
    return table(("status", "code"), ((str(status), _code(code)) for status, code in sorted(codes + more)))


# -- objects and errors


def objects() -> str:
    """Renders every named object under its own anchor."""
    named_ones = described()["components"]["schemas"]
    parts = []
    for name in _named_objects():
        schema = named_ones[name]
        parts.append(
            f'<a id="{anchor_of(name)}"></a>\n\n### {name}\n\n{schema["description"]}\n\n{_members(schema)}'
        )
    return "\n\n".join(parts)


def _named_objects() -> list[str]:
    """Returns the objects that are no request body, no error, and no part of the webhook."""
    components = described()["components"]["schemas"]
    shown_elsewhere = {"CreateInvoice", "WebhookPayload", errors.INVALID_BODY, errors.INVALID_FIELDS}
    of_errors = {errors.component(code) for code in PROBLEMS}
    return [name for name in components if name not in shown_elsewhere | of_errors]


def codes() -> str:
    """Renders every code that a merchant can get, with an anchor each."""
    rows = []
    for code in sorted(errors.ADVICE):
        problem = PROBLEMS[code]
        statuses = [problem.status, *errors.MORE_STATUSES.get(code, ())]
        if code == "VALIDATION_ERROR":
            statuses += [422]
        rows.append(
            (
                f'<a id="error-{code}"></a>`{code}`',
                ", ".join(map(str, statuses)),
                f"{problem.message}.",
                errors.ADVICE[code],
                ", ".join(
                    [f"`details.{name}`" for name in problem.details]
                    + [f"`{name}`" for name in problem.members]
                ),
            )
        )
    return table(("code", "status", "meaning", "what to do", "further members"), rows)


# -- webhooks


def headers() -> str:
    return table(("header", "meaning"), ((f"`{each['name']}`", each["description"]) for each in HEADERS))


def payload() -> str:
    return _members(described()["components"]["schemas"]["WebhookPayload"])


# -- limits


# The name of each bound, the settings class, its fields, and the value in words.
OF_SETTINGS: Final[tuple[tuple[str, type[Settings], tuple[str, ...], str], ...]] = (
    ("requests of one key", GatewaySettings, ("rate_limit_per_minute",), "{} a minute and process"),
    (
        "unknown keys tried from one network",
        GatewaySettings,
        ("strangers_per_minute",),
        "{} a minute and process",
    ),
    ("time to choose a payment method", InvoicesSettings, ("invoice_ttl_seconds",), "{} seconds"),
    (
        "unpaid invoices of one customer",
        InvoicesSettings,
        ("customer_limit", "customer_window_minutes"),
        "{} within {} minutes",
    ),
    (
        "what one merchant may hold of a payment method",
        InvoicesSettings,
        ("method_share_percent",),
        "{} % of the places and accounts that no other merchant holds",
    ),
    (
        "time to confirm a deal before it is in appeal",
        InvoicesSettings,
        ("confirmation_minutes",),
        "{} minutes",
    ),
    ("one webhook attempt", WebhooksSettings, ("webhook_timeout_seconds",), "{} seconds"),
    (
        "time between two resends of an event",
        WebhooksSettings,
        ("webhook_resend_cooldown_seconds",),
        "{} seconds",
    ),
    ("attempts of ended events are kept", WebhooksSettings, ("webhook_retention_days",), "{} days at least"),
)


def limits() -> str:
    """Renders the bounds that belong to no single field: fixed ones first, then those of settings with their
    defaults.
    """
    fixed = {
        "request body": f"{uploads.BODY_MAX_BYTES // 1024} KiB",
        "time to send the body": f"{bodies.BODY_SECONDS:g} seconds",
        "request line": f"{REQUEST_LINE_MAX_BYTES} bytes",
        "request line and headers together": f"{HEAD_MAX_BYTES // 1024} KiB",
        "time until an answer": f"{REQUEST_SECONDS:g} seconds; {OUTWARD_CALL_SECONDS} for a resend",
        "`per_page`": f"1 to {PAGE_MOST_ROWS}, default {PER_PAGE_DEFAULT}",
    }
    rows = [(limit, value, "") for limit, value in fixed.items()]
    for limit, settings, names, value in OF_SETTINGS:
        defaults = [settings.model_fields[name].default for name in names]
        variables = ", ".join(f"`FIATGATE_{name.upper()}`" for name in names)
        rows.append((limit, value.format(*defaults), variables))
    return table(("limit", "value", "setting of the installation"), rows)


# -- all of them

PARTS: Final[dict[str, Callable[[], str]]] = {
    **{each.id: (lambda each=each: endpoint(each)) for each in OPERATIONS},  # type: ignore[misc]  # bound early
    "errors of every request": any_request,
    "objects": objects,
    "webhook headers": headers,
    "webhook payload": payload,
    "error codes": codes,
    "limits": limits,
}
"""The blocks of docs/api.md by the names between their marks."""
