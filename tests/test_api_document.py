"""docs/api.md says what the gateway's own description of the API says: nothing less and nothing more.

The tables are read from the document as a reader sees them, and not rendered a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.json.problems import PROBLEMS, Json
from gateway.openapi.document import document
from gateway.openapi.errors import ELSEWHERE, INVALID_BODY, INVALID_FIELDS
from services.invoices.domain import states as invoices
from services.webhooks.domain import RETRY_DELAYS_SECONDS
from services.withdrawals import domain as withdrawals
from tests.gateway.conformance import settings

ROOT: Final = Path(__file__).resolve().parents[1]
TEXT: Final = (ROOT / "docs" / "api.md").read_text()
FORMATS: Final = {"UUID": "uuid", "time": "date-time", "URL": "iri"}

Facts = set[tuple[Any, ...]]


# -- the document as it is read


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sections(text: str) -> dict[str, str]:
    """The text under each anchor that stands on a line of its own; anchors that follow each other share it."""
    parts = re.split(r'^((?:<a id="[^"]+"></a>\n)+)', text, flags=re.MULTILINE)
    return {
        anchor: content
        for anchors, content in zip(parts[1::2], parts[2::2], strict=True)
        for anchor in re.findall('id="([^"]+)"', anchors)
    }


def tables(text: str) -> Iterator[Table]:
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        head, _, *rows = (_cells(line) for line in block.strip().splitlines())
        yield Table(head, tuple(rows))


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])


def table(text: str, first_column: str) -> Table:
    """The one table whose first column is so called; one without rows when there is none."""
    found = [each for each in tables(text) if each.head[0] == first_column]
    assert len(found) < 2, f"two tables of {first_column}"
    return found[0] if found else Table((first_column,), ())


def plain(cell: str) -> str:
    """Without anchors, links and code marks."""
    cell = re.sub(r"<a id=[^>]*></a>", "", cell)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell).replace("`", "")


def kind(cell: str) -> tuple[str, str]:
    """`string (UUID)` -> ("string", "uuid"), `array of [Invoice](...)` -> ("array of Invoice", "")."""
    match = re.fullmatch(r"([^(]+?)(?: \((.+)\))?", plain(cell))
    assert match is not None, cell
    return match[1], FORMATS.get(match[2] or "", match[2] or "")


def bounds(cell: str) -> frozenset[str]:
    """The values in a cell of bounds: `1 to 500, default 20` -> 1, 500, 20."""
    quoted = re.findall("`([^`]+)`", cell)
    return frozenset([*quoted, *re.findall(r"\b\d+\b", re.sub("`[^`]+`", "", cell))])


def statuses_of(found: Table) -> Facts:
    return {(plain(code), int(status)) for status, code in found.rows}


# -- the gateway's description in the same words


@cache
def described() -> Json:
    return document(settings(webhook_allow_private=False))


def wanted_kind(schema: Json) -> tuple[str, str]:
    for each in (schema, *schema.get("anyOf", ())):
        if "$ref" in each:
            return each["$ref"].rpartition("/")[2], ""
    if "anyOf" in schema:
        return wanted_kind(schema["anyOf"][0])
    if schema["type"] == "array":
        return f"array of {wanted_kind(schema['items'])[0]}", ""
    name = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    decimals = re.search(r"\\\.\[0-9\]\{(\d)\}\$$", schema.get("pattern", ""))
    return name, f"{decimals[1]} decimals" if decimals else schema.get("format", "")


def nullable(schema: Json) -> bool:
    return "null" in schema.get("type", ()) or {"type": "null"} in schema.get("anyOf", ())


def wanted_bounds(schema: Json) -> frozenset[str]:
    chosen = schema["anyOf"][0] if "anyOf" in schema else schema
    names = ("minimum", "maximum", "maxLength", "default")
    found = {str(chosen[name]) for name in names if chosen.get(name) is not None}
    found |= set(chosen.get("enum", ()))
    if "maxLength" in chosen:
        found.add(str(chosen.get("minLength", 0)))
    elif "pattern" in chosen:
        found.add(chosen["pattern"])
    return frozenset(found)


def members(schema: Json, prefix: str = "") -> Iterator[tuple[str, Json]]:
    for name, each in schema["properties"].items():
        yield f"{prefix}{name}", each
        if "properties" in each:
            yield from members(each, f"{prefix}{name}.")


def wanted_members(schema: Json) -> Facts:
    enums = {name: each.get("enum", ()) for name, each in members(schema)}
    return {
        (name, wanted_kind(each), nullable(each), frozenset(set(enums[name]) - {None}))
        for name, each in members(schema)
    }


def members_in(text: str) -> Facts:
    """Name, type, null and closed set of each row; a meaning ends with `One of ...` where the set is closed."""
    return {
        (plain(name), kind(of), {"yes": True, "": False}[null], frozenset(re.findall("`([^`]+)`", chosen)))
        for name, of, null, meaning in table(text, "field").rows
        for chosen in [meaning.rpartition("One of ")[2] if "One of " in meaning else ""]
    }


def wanted_statuses(operation: Json) -> Facts:
    found: Facts = set()
    for status, response in operation["responses"].items():
        if int(status) < 400:
            continue
        schema = response["content"]["application/json"]["schema"]
        for each in schema.get("oneOf", [schema]):
            found.add((code_of(each["$ref"].rpartition("/")[2]), int(status)))
    return found


def code_of(component: str) -> str:
    if component in (INVALID_BODY, INVALID_FIELDS):
        return "VALIDATION_ERROR"
    error: Json = described()["components"]["schemas"][component]["properties"]["error"]
    return str(error["properties"]["code"]["const"])


def operations() -> Iterator[tuple[str, str, Json]]:
    """Anchor, `GET /path`, operation."""
    for path, methods in described()["paths"].items():
        for method, operation in methods.items():
            anchor = re.sub("([A-Z])", lambda each: f"-{each[0].lower()}", operation["operationId"])
            yield anchor, f"{method.upper()} {path}", operation


# -- the comparison

Comparison = Mapping[str, tuple[Facts, Facts]]


def endpoints(text: str) -> Comparison:
    parts = sections(text)
    found: Facts = {
        (anchor, line)
        for anchor, content in parts.items()
        for line in re.findall(r"^`((?:GET|POST|PUT|PATCH|DELETE) /\S+)`$", content, re.MULTILINE)
    }
    wanted: Facts = {(anchor, line) for anchor, line, _ in operations()}
    pairs = {"endpoints": (found, wanted)}
    any_request = statuses_of(table(parts["errors-of-every-request"], "status"))
    for anchor, _, operation in operations():
        content = parts.get(anchor, "")
        errors = statuses_of(table(content, "status"))
        pairs[f"{anchor}: errors"] = errors | any_request, wanted_statuses(operation)
        pairs[f"{anchor}: errors told twice"] = errors & any_request, set()
        pairs[f"{anchor}: parameters"] = (
            {
                (plain(name), place, kind(of), bounds(bounded))
                for name, place, of, bounded, _ in table(content, "parameter").rows
            },
            {
                (each["name"], each["in"], wanted_kind(each["schema"]), wanted_bounds(each["schema"]))
                for each in operation.get("parameters", ())
            },
        )
        pairs |= _answer(anchor, content, operation)
    return pairs


def _answer(anchor: str, content: str, operation: Json) -> Comparison:
    (status,) = (each for each in operation["responses"] if int(each) < 400)
    schema = operation["responses"][status]["content"]["application/json"]["schema"]
    told = set(re.findall(r"^\*\*Answer\*\*, status (\d+)$", content, re.MULTILINE))
    pairs: dict[str, tuple[Facts, Facts]] = {f"{anchor}: status": ({(each,) for each in told}, {(status,)})}
    if "requestBody" in operation:
        body = described()["components"]["schemas"]["CreateInvoice"]
        required = set(body["required"])
        pairs[f"{anchor}: body"] = (
            {
                (plain(name), kind(of), {"yes": True, "": False}[needed], bounds(bounded))
                for name, of, needed, bounded, _ in table(content, "field").rows
            },
            {
                (name, wanted_kind(each), name in required, wanted_bounds(each))
                for name, each in members(body)
            },
        )
        links: Facts = {(each,) for each in re.findall(r"^The object \[(\w+)\]", content, re.MULTILINE)}
        pairs[f"{anchor}: answer"] = links, {(wanted_kind(schema)[0],)}
    else:
        pairs[f"{anchor}: answer"] = members_in(content), wanted_members(schema)
    return pairs


def objects(text: str) -> Comparison:
    parts = sections(text)
    components = described()["components"]["schemas"]
    wanted = {
        name
        for name, each in components.items()
        if name not in ("CreateInvoice", INVALID_BODY, INVALID_FIELDS) and "error" not in each["properties"]
    }
    found = {each.removeprefix("object-") for each in parts if each.startswith("object-")}
    pairs = {"objects": ({(each,) for each in found}, {(each,) for each in wanted})}
    for name in wanted & found:
        pairs[name] = members_in(parts[f"object-{name}"]), wanted_members(components[name])
    return pairs


def codes(text: str) -> Comparison:
    rows = table(sections(text)["error-codes"], "code").rows
    wanted = {pair for _, _, operation in operations() for pair in wanted_statuses(operation)}
    wanted |= {(code, PROBLEMS[code].status) for code in ELSEWHERE}
    more: Facts = {
        (code, member)
        for code in {code for code, _ in wanted}
        for member in [*(f"details.{each}" for each in PROBLEMS[code].details), *PROBLEMS[code].members]
    }
    return {
        "codes": ({(plain(row[0]), int(each)) for row in rows for each in row[1].split(", ")}, wanted),
        "members of errors": (
            {(plain(row[0]), each) for row in rows for each in re.findall("`([^`]+)`", row[4])},
            more,
        ),
        "anchors of codes": (
            {(each,) for row in rows for each in re.findall('<a id="error-([A-Z_]+)">', row[0])},
            {(code,) for code, _ in wanted},
        ),
    }


def events(text: str) -> Comparison:
    parts = sections(text)
    (webhook,) = (each["post"] for each in described()["webhooks"].values())
    types: Facts = {(name, status.value) for status, name in invoices.EVENT_TYPES.items()}
    types.add((invoices.ADJUSTED_EVENT_TYPE, "success"))
    return {
        "event types": ({(plain(row[0]), plain(row[1])) for row in table(parts["events"], "`event_type`").rows}, types),
        "headers": (
            {(plain(row[0]),) for row in table(parts["webhook-headers"], "header").rows},
            {(each["name"],) for each in webhook["parameters"]},
        ),
        "retries": (
            {tuple(map(int, row)) for row in table(parts["retries"], "retry").rows},
            set(enumerate(RETRY_DELAYS_SECONDS, 1)),
        ),
    }  # fmt: skip


def states(text: str) -> Comparison:
    parts = sections(text)
    deals: Facts = {
        (source, plain(target), plain(invoice))
        for sources, _, target, invoice in table(parts["deal-status"], "from").rows
        for source in plain(sources).split(", ")
    }
    wanted_deals: Facts = {
        (
            f"{source.status} / {source.sub_status}",
            f"{step.target.status} / {step.target.sub_status}",
            str(step.invoice or ""),
        )
        for (source, _), step in invoices.TRANSITIONS.items()
    }
    rows = table(parts["withdrawal-status"], "`status`").rows
    reached: Facts = {(plain(row[0]), plain(row[1]), frozenset(plain(row[2]).split(", "))) for row in rows}
    wanted_reached: Facts = {
        (
            str(state.status),
            state.substatus or "null",
            frozenset(map(_state, sources)) or frozenset({"its creation"}),
        )
        for state, sources in withdrawals.REACHED_FROM.items()
    }
    ends: Facts = {(plain(row[2]),) for row in table(parts["invoice-status"], "from").rows}
    return {
        "steps of deals": (deals, wanted_deals),
        "withdrawals": (reached, wanted_reached),
        "invoice status": (ends, {(each.value,) for each in invoices.InvoiceStatus}),
    }


def _state(state: withdrawals.State) -> str:
    return f"{state.status} / {state.substatus}" if state.substatus else str(state.status)


def differences(text: str) -> list[str]:
    """Every table of the document that says less or more than the code."""
    return [
        f"{what}: missing {sorted(map(str, wanted - found))}, too much {sorted(map(str, found - wanted))}"
        for compare in (endpoints, objects, codes, events, states)
        for what, (found, wanted) in compare(text).items()
        if found != wanted
    ]


def test_the_document_says_what_the_gateway_does() -> None:
    assert differences(TEXT) == []


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("`GET /api/v1/currencies`\n", ""),
        ("`GET /api/v1/currencies`\n", "`GET /api/v1/currencies`\n\n`GET /api/v1/coins`\n"),
        ("**Answer**, status 201", "**Answer**, status 200"),
        ("| `per_page` | query | integer | 1 to 500,", "| `per_page` | query | integer | 1 to 600,"),
        ("default `20`", "default `25`"),
        ("| `page` | query |", "| `pages` | query |"),
        ("`success`, `failed`, `cancelled` | Only withdrawals", "`success`, `failed` | Only withdrawals"),
        ("| `customer_id` | string | yes | 1 to 128", "| `customer_id` | string |  | 1 to 128"),
        ("| `purpose` | string |  | 1 to 512", "| `purpose` | string |  | 1 to 500"),
        ("| `resend.http_status` | integer | yes |", "| `resend.http_status` | integer |  |"),
        ("| `merchant_usdt` | string (6 decimals) |", "| `merchant_usdt` | string (2 decimals) |"),
        ("| `deal` | [Deal](#object-Deal) |", "| `deal` | object |"),
        ("| `total_pages` | integer |", "| `total_pages` | integer |  | Pages. |\n| `pages` | integer |"),
        ("| 404 | [`INVOICE_NOT_FOUND`](#error-INVOICE_NOT_FOUND) |\n", ""),
        ("| 409 | [`DUPLICATE_EXTERNAL_ID`]", "| 422 | [`DUPLICATE_EXTERNAL_ID`]"),
        ("| 401 | [`API_KEY_MISSING`](#error-API_KEY_MISSING) |\n", ""),
        ("`RATE_INVALID` | 422 |", "`RATE_INVALID` | 503 |"),
        ("`details.next_allowed_at`, ", ""),
        ("| `invoice.adjusted` | `success` |", "| `invoice.lowered` | `success` |"),
        ("| `X-Idempotency-Key` |", "| `Idempotency-Key` |"),
        ("| `is_adjusted` | boolean |", "| `adjusted` | boolean |"),
        ("| 7 | 1800 |\n", ""),
        ("`expired` / `payment_window_expired` | `expired` |", "`expired` / `payment_window_expired` |  |"),
        ("| `cancelled` | `cancelled_by_user` |", "| `cancelled` | `cancelled_by_customer` |"),
    ],
)
def test_a_document_that_says_less_or_more_is_noticed(there: str, instead: str) -> None:
    assert there in TEXT
    assert differences(TEXT.replace(there, instead, 1)) != []


# -- the prose


def test_the_prose_names_only_codes_that_exist() -> None:
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", TEXT))
    assert len(named) > 30
    assert not {each for each in named if each not in PROBLEMS and not each.startswith("FIATGATE_")}


def test_anchors_are_unique() -> None:
    anchors = re.findall('<a id="([^"]+)"', TEXT)
    assert sorted(set(anchors)) == sorted(anchors)


@pytest.mark.parametrize("path", ["docs/api.md", "docs/glossary.md"])
def test_links_to_anchors_lead_somewhere(path: str) -> None:
    """Only anchors written out: those that a renderer makes from headings change with the heading."""
    text = (ROOT / path).read_text()
    for file, anchor in re.findall(r"\]\(([\w./]*\.md)?#([^)]+)\)", text):
        there = (ROOT / "docs" / file).read_text() if file else text
        assert f'<a id="{anchor}"></a>' in there, f"{path} links to {file}#{anchor}"
