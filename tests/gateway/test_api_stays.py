"""/api/v1 keeps every part that a merchant's program may use: docs/api.md#versions promises it.

`api_v1.txt` lists these parts, one per line: endpoints, parameters, fields with their types and values, errors. Lines
of new parts are added. A line that is changed or removed breaks programs of merchants.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gateway.openapi.answers import COMPONENTS
from gateway.openapi.schemas import named
from tools.api_tables import described, is_nullable, type_of

KEPT: Final = (Path(__file__).parent / "api_v1.txt").read_text().splitlines()


def things(document: dict[str, Any]) -> Iterator[str]:
    """Yields a line for each endpoint, parameter, field, value of a field, and error of an endpoint."""
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            endpoint = f"{method.upper()} {path}"
            yield endpoint
            for each in operation.get("parameters", ()):
                yield f"{endpoint} takes {each['name']} in {each['in']}"
            for status, response in operation["responses"].items():
                content = response["content"]["application/json"]
                if int(status) < 300:
                    yield from fields(f"{endpoint} {status}", content["schema"])
                for name in content.get("examples", ()):
                    yield f"{endpoint} {status} {name}"
            if "requestBody" in operation:
                body = named(operation["requestBody"]["content"]["application/json"]["schema"]["$ref"])
                yield from fields(f"{path.removeprefix('/api/v1/')} takes", schemas[body])
    for name in COMPONENTS:
        yield from fields("webhook" if name == "WebhookPayload" else name, schemas[name])


def fields(owner: str, schema: dict[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield f"{owner} is {named(schema['$ref'])}"
    for name, each in schema.get("properties", {}).items():
        kind = re.sub(r"\[(\w+)\]\(#[\w-]+\)", r"\1", type_of(each))  # a link of docs/api.md
        yield f"{owner} {name}: {kind}{' or null' if is_nullable(each) else ''}"
        yield from fields(
            f"{owner} {name}", {key: each[key] for key in ("properties", "required") if key in each}
        )
        yield from (f"{owner} {name} = {value}" for value in each.get("enum", ()) if value is not None)


def required(document: dict[str, Any]) -> set[str]:
    return set(document["components"]["schemas"]["CreateInvoice"]["required"])


def test_every_part_of_version_1_is_kept() -> None:
    assert not set(KEPT) - set(things(described())), "programs of merchants use it"


def test_every_part_of_version_1_is_listed() -> None:
    assert not set(things(described())) - set(KEPT), (
        "add these lines: later versions keep only what is listed"
    )


def test_create_invoice_requires_nothing_more() -> None:
    assert required(described()) == {"amount", "currency_code", "customer_id", "external_id"}


def test_a_part_that_disappears_is_noticed() -> None:
    without = copy.deepcopy(described())
    del without["components"]["schemas"]["Invoice"]["properties"]["purpose"]
    del without["paths"]["/api/v1/withdrawals"]
    gone = set(KEPT) - set(things(without))
    assert {"Invoice purpose: string or null", "GET /api/v1/withdrawals"} <= gone
