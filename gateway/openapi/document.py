"""The OpenAPI document of /api/v1: openapi.yaml with what differs from one installation to another."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from gateway.json.problems import PROBLEMS, Json

TEST_PATHS: Final = "/api/v1/test/"
TEST_TAG: Final = "Test mode"
FILE: Final = Path(__file__).parent / "openapi.yaml"


@cache
def document(
    public_url: str = "http://127.0.0.1:8080", *, http_callbacks: bool = False, is_test: bool = True
) -> Json:
    """Returns the document of an installation.

    http_callbacks  whether it allows http callback URLs; a development setting (WEBHOOK_ALLOW_PRIVATE)
    is_test         whether it is in test mode: the others have neither the mark nor the endpoints of test mode
    """
    described: Json = yaml.load(FILE.read_text(), Loader=yaml.CSafeLoader)
    shared = described.pop("x-shared")
    described["servers"] = [{"url": public_url}]
    if http_callbacks:
        body = described["components"]["schemas"]["CreateInvoice"]["properties"]
        body["callback_url"]["pattern"] = shared["url"]["pattern"]
    if not is_test:
        _remove_test_mode(described)
    return described


def _remove_test_mode(described: Json) -> None:
    components = described["components"]
    described["tags"] = [each for each in described["tags"] if each["name"] != TEST_TAG]
    for path in [each for each in described["paths"] if each.startswith(TEST_PATHS)]:
        del described["paths"][path]
    del components["schemas"]["Simulate"], components["examples"]["ADJUSTMENT_INVALID"]
    for schema in components["schemas"].values():
        schema.get("properties", {}).pop("test", None)


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
    return {
        (int(status), code)
        for status, response in operation["responses"].items()
        if int(status) >= 400
        for code in errors_of(described, resolved(described, response))
    }


def errors_of(described: Json, response: Json) -> Mapping[str, Json]:
    """Returns the example of each error of a response, by its code."""
    examples = response["content"]["application/json"]["examples"].values()
    values = [resolved(described, each)["value"] for each in examples]
    return {code_of(each): each for each in values}


def code_of(answer: Json) -> str:
    """Returns the code of an error in either shape."""
    error = answer["error"]
    return str(error if isinstance(error, str) else error["code"])


@dataclass(frozen=True)
class Code:
    """An error that merchants can get.

    members    examples of those that it adds, such as `details.currency`
    endpoints  the operation ids of those that answer with it; none: see `answers`
    """

    code: str
    statuses: Sequence[int]
    text: str
    members: Mapping[str, Any]
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
    of_merchants = {
        each["operationId"] for path, _, each in operations(described) if path.startswith("/api/")
    }
    examples = defaultdict(list)
    for each in described["components"]["examples"].values():
        examples[code_of(each["value"])].append(each)
    found = []
    for code in sorted(examples):
        endpoints = [name for name, answers in refused.items() if code in {each for _, each in answers}]
        found.append(
            Code(
                code=code,
                statuses=sorted({status for each in refused.values() for status, one in each if one == code})
                or [PROBLEMS[code].status],
                text=" ".join(map(_text, examples[code])),
                members={
                    name: one for each in examples[code] for name, one in _members(each["value"]).items()
                },
                endpoints=endpoints,
                of_any_request=of_merchants <= set(endpoints),
            )
        )
    return found


def _text(example: Json) -> str:
    value = example["value"]
    message = (value if isinstance(value["error"], str) else value["error"])["message"]
    return f"{message}. {example.get('description', '')}".rstrip()


def _members(answer: Json) -> Mapping[str, Any]:
    error = answer["error"]
    if isinstance(error, str) or isinstance(error["details"], list):
        return {}
    return {f"details.{name}": each for name, each in error["details"].items()} | {
        name: each for name, each in error.items() if name not in ("code", "message", "details")
    }


def example_of(described: Json, schema: Json) -> Any:
    """Returns an example of a value of this schema, from the examples of its members."""
    schema = resolved(described, schema)
    if "examples" in schema:
        return schema["examples"][0]
    if "oneOf" in schema:
        return example_of(described, schema["oneOf"][0])
    if schema["type"] == "array":
        return [example_of(described, schema["items"])]
    return {name: example_of(described, each) for name, each in schema["properties"].items()}
