"""Functions that make the JSON Schemas of answers (draft 2020-12). Every field has an example."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway.json.problems import Json

DECIMAL_2: Final = r"^[0-9]+\.[0-9]{2}$"
DECIMAL_6: Final = r"^[0-9]+\.[0-9]{6}$"


def text(description: str, example: str, **bounds: Any) -> Json:
    return {"type": "string", "description": description, "examples": [example], **bounds}


def uuid(description: str, example: str) -> Json:
    return text(description, example, format="uuid")


def moment(description: str, example: str) -> Json:
    """Returns the schema of a time: ISO 8601 with a UTC offset."""
    return text(description, example, format="date-time")


def url(description: str, example: str) -> Json:
    """Returns the schema of a URL, which may be in any script."""
    return text(description, example, format="iri")


def fiat(description: str, example: str) -> Json:
    return text(description, example, pattern=DECIMAL_2)


def usdt(description: str, example: str) -> Json:
    return text(description, example, pattern=DECIMAL_6)


def choice(description: str, names: Iterable[str], example: str) -> Json:
    return {"type": "string", "description": description, "enum": list(names), "examples": [example]}


def whole(description: str, example: int, **bounds: Any) -> Json:
    return {"type": "integer", "description": description, "examples": [example], **bounds}


def flag(description: str, example: bool) -> Json:
    return {"type": "boolean", "description": description, "examples": [example]}


def true() -> Json:
    """Returns the schema of `successful` in a wrapped answer."""
    return {"type": "boolean", "const": True, "description": "Always true here.", "examples": [True]}


def nullable(schema: Json, *, example: Any = ...) -> Json:
    """Returns the schema of a value that may be null; `example` (such as None) replaces the schema's own example."""
    shown = {} if example is ... else {"examples": [example]}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}], **shown}
    both = {**schema, "type": [schema["type"], "null"], **shown}
    if "enum" in schema:
        both["enum"] = [*schema["enum"], None]
    return both


def record(description: str, properties: Mapping[str, Json]) -> Json:
    """Returns the schema of an object in which all of these members are always present."""
    return {
        "type": "object",
        "description": description,
        "properties": dict(properties),
        "required": list(properties),
    }


def list_of(description: str, items: Json) -> Json:
    return {"type": "array", "description": description, "items": items}


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def named(reference: str) -> str:
    """Returns the component that a `$ref` names."""
    return reference.rpartition("/")[2]


def example_of(schema: Mapping[str, Any], components: Mapping[str, Json]) -> Any:
    """Returns an example of an answer of this schema, from the examples of its leaves."""
    if "$ref" in schema:
        return example_of(components[named(schema["$ref"])], components)
    if "examples" in schema:
        return schema["examples"][0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], components)
    if schema["type"] == "array":
        return [example_of(schema["items"], components)]
    return {name: example_of(each, components) for name, each in schema["properties"].items()}
