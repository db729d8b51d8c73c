"""The OpenAPI document of /api/v1: openapi.yaml with what differs from one installation to another."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from gateway.json.problems import PROBLEMS, Json

FILE: Final = Path(__file__).parent / "openapi.yaml"


@cache
def document(public_url: str = "http://127.0.0.1:8080", *, http_callbacks: bool = False) -> Json:
    """Returns the document of an installation.

    http_callbacks  whether it allows http callback URLs; a development setting (WEBHOOK_ALLOW_PRIVATE)
    """
    described: Json = yaml.load(FILE.read_text(), Loader=yaml.CSafeLoader)
    shared = described.pop("x-shared")
    described["servers"] = [{"url": public_url}]
    if http_callbacks:
        body = described["components"]["schemas"]["CreateInvoice"]["properties"]
        body["callback_url"]["pattern"] = shared["url"]["pattern"]
    return described


def operations(described: Json) -> Iterator[tuple[str, str, Json]]:
    """Yields the path, method and description of each endpoint."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def resolved(described: Json, node: Json) -> Json:
    """Returns what a `$ref` points to; anything else as it is."""
    if "$ref" not in node:
        return node
    found: Any = described
    for name in node["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return dict(found)


def success(described: Json, operation: Json) -> tuple[str, Json]:
    """Returns the status and the response of an endpoint that succeeds."""
    return next(
        (status, resolved(described, each))
        for status, each in operation["responses"].items()
        if int(status) < 400
    )


def refusals(described: Json, operation: Json) -> set[tuple[int, str]]:
    """Returns the status and the code of each error that an endpoint answers with."""
    found = set()
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            schema = resolved(described, response)["content"]["application/json"]["schema"]
            found |= {
                (int(status), code_of(resolved(described, each))) for each in schema.get("oneOf", [schema])
            }
    return found


def code_of(schema: Json) -> str:
    """Returns the code of an error's schema; empty for the schema of anything else."""
    error = schema.get("properties", {}).get("error", {})
    return str(error.get("const") or error.get("properties", {}).get("code", {}).get("const", ""))


@dataclass(frozen=True)
class Code:
    """An error that merchants can get.

    members    the schemas of those that it adds, such as `details.currency`
    endpoints  the operation ids of those that answer with it; none: see `answers`
    """

    code: str
    statuses: Sequence[int]
    text: str
    members: Mapping[str, Json]
    endpoints: Sequence[str]
    of_any_request: bool

    @property
    def answers(self) -> str:
        """Returns the requests that it answers, in words."""
        if self.of_any_request:
            return "any request"
        return ", ".join(self.endpoints) or "addresses that are no endpoint"


def codes_of(described: Json) -> list[Code]:
    """Returns all codes of the document, by name."""
    refused = {each["operationId"]: refusals(described, each) for _, _, each in operations(described)}
    schemas = defaultdict(list)
    for each in described["components"]["schemas"].values():
        schemas[code_of(each)].append(each)
    found = []
    for code in sorted(filter(None, schemas)):
        endpoints = [name for name, answers in refused.items() if code in {each for _, each in answers}]
        found.append(
            Code(
                code=code,
                statuses=sorted({status for each in refused.values() for status, one in each if one == code})
                or [PROBLEMS[code].status],
                text=" ".join(each["description"] for each in schemas[code]),
                members={name: one for each in schemas[code] for name, one in _members(each).items()},
                endpoints=endpoints,
                of_any_request=len(endpoints) == len(refused),
            )
        )
    return found


def _members(schema: Json) -> Mapping[str, Json]:
    error = schema["properties"]["error"].get("properties", {})
    details = error.get("details", {}).get("properties", {})
    return {f"details.{name}": each for name, each in details.items()} | {
        name: each for name, each in error.items() if name not in ("code", "message", "details")
    }


def example_of(described: Json, schema: Json) -> Any:
    """Returns an example of a value of this schema, from the examples of its members."""
    schema = resolved(described, schema)
    if "examples" in schema:
        return schema["examples"][0]
    if "anyOf" in schema:
        return example_of(described, schema["anyOf"][0])
    if schema["type"] == "array":
        return [example_of(described, schema["items"])]
    return {name: example_of(described, each) for name, each in schema["properties"].items()}
