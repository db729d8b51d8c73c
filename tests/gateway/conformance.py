"""Is an answer one that the OpenAPI document promises? Asked at every request of the gateway's tests (desk.Shop).

Stricter than the document: there, objects are open, so that clients bear new members; here, a member that is not
documented is a fault.
"""

import re
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import requests
from jsonschema_rs import Draft202012Validator

from gateway.openapi.document import code_of, document, errors_of, resolved


@cache
def documented() -> dict[str, Any]:
    """The document of an installation as the tests' stack is one: http callbacks are allowed."""
    return document(http_callbacks=True)


def assert_documented(response: requests.Response) -> None:
    """AssertionError when the answer is not one of those the document has for its endpoint."""
    method, target = response.request.method or "", urlsplit(response.request.url or "")
    path = template_of(target.path)
    if path is None or method.lower() not in documented()["paths"][path]:
        assert response.status_code in (404, 405), f"{method} {target.path} is not documented"
        return
    where = f"{method} {path} {response.status_code}"
    described = _response(path, method, response.status_code)
    assert described, f"{where} is not documented: {response.text[:500]}"
    _assert_headers(where, described, response)
    assert response.headers["Content-Type"] in described["content"], where
    body = response.json()
    faults = [error.message for error in _validator(path, method, response.status_code).iter_errors(body)]
    assert not faults, f"{where}: {faults[:3]} in {response.text[:500]}"
    assert body.get("successful", True) is (response.status_code < 400), where
    if response.status_code >= 400:
        example = errors_of(documented(), described).get(code_of(body))
        assert example, f"{where} {code_of(body)} is not documented"
        more = kinds(body) - kinds(example)
        assert not more, f"{where}: the example has not {more}"


def template_of(path: str) -> str | None:
    path = path.rstrip("/")
    templates = documented()["paths"]
    if path in templates:
        return path
    return next(
        (each for each in templates if re.fullmatch(re.sub(r"\\?\{[^}]*\}", "[^/]+", each), path)), None
    )


def _response(path: str, method: str, status: int) -> dict[str, Any]:
    responses = documented()["paths"][path][method.lower()]["responses"]
    return resolved(documented(), responses.get(str(status), {}))


def _assert_headers(where: str, described: Any, response: requests.Response) -> None:
    for name in described.get("headers", {}):
        header = documented()["components"]["headers"][name]
        assert name in response.headers, f"{where}: no {name}"
        value: Any = response.headers[name]
        if header["schema"]["type"] == "integer":
            value = int(value)
        assert Draft202012Validator(header["schema"]).is_valid(value), f"{where}: {name}: {value}"


@cache
def _validator(path: str, method: str, status: int) -> Draft202012Validator:
    schema = _response(path, method, status)["content"]["application/json"]["schema"]
    return validator(schema)


def validator(schema: Any) -> Draft202012Validator:
    """Of a schema of the document, with all objects closed."""
    components = {"schemas": documented()["components"]["schemas"]}
    return Draft202012Validator(closed({**schema, "components": components}), validate_formats=True)


def kinds(value: Any, at: str = "") -> set[str]:
    """The type of the value and of all within it."""
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = (kinds(each, f"{at}.{name if isinstance(name, str) else '[]'}") for name, each in within)
    return {f"{at} {type(value).__name__}"}.union(*inner)


def closed(schema: Any) -> Any:
    """The same with no room for members and values that are not named."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(each) for name, each in schema.items()}
    is_object = schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
    if is_object:
        inner["additionalProperties"] = False
    if values := inner.pop("x-extensible-enum", None):
        inner["enum"] = [*values, None]  # the type says whether null is one
    return inner
