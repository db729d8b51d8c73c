"""GET /api/v1/openapi.json, and /docs: the same document as one page of HTML, whole without scripts."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import falcon
import falcon.asgi
import jinja2
from markupsafe import Markup, escape

from gateway.exchange import Request
from gateway.json.problems import PROBLEMS, Json
from gateway.openapi import errors
from gateway.openapi.answers import COMPONENTS
from gateway.openapi.document import ABOUT, ABOUT_ERRORS, document
from gateway.openapi.operations import OPERATIONS
from gateway.openapi.schemas import named
from gateway.openapi.webhook import SIGNATURE
from gateway.openapi.words import WORDS
from gateway.wiring import Deps
from kit.web.files import Files

_HERE: Final = Path(__file__).parent
TEMPLATES: Final = _HERE / "templates"

_PAGE_HEADERS: Final = (
    # Nothing from other hosts, and nothing inline.
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "public, max-age=300"),
)

# Objects that are not already shown at the place where they are sent or received.
OBJECTS: Final = [name for name in COMPONENTS if name not in ("CreatedInvoice", "WebhookPayload")]
RECIPES: Final[Mapping[str, str]] = {
    "Python": "signature.py",
    "Node": "signature.mjs",
    "PHP": "signature.php",
    "Go": "signature.go",
    "Java": "Signature.java",
}


class DocumentResource:
    """GET /api/v1/openapi.json: without a key, and readable by tools on other sites, because it is no secret."""

    def __init__(self, deps: Deps) -> None:
        self._body = json.dumps(document(deps.settings), ensure_ascii=False).encode()
        self._etag = hashlib.sha256(self._body).hexdigest()[:32]

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        resp.content_type = falcon.MEDIA_JSON
        resp.etag = self._etag
        resp.set_header("Cache-Control", "public, max-age=300")
        resp.set_header("Access-Control-Allow-Origin", "*")
        if req.if_none_match and any(self._etag in (each, "*") for each in req.if_none_match):
            resp.status = falcon.HTTP_304
        else:
            resp.data = self._body

    on_head = on_get


class DocsResource:
    """GET /docs."""

    def __init__(self, deps: Deps) -> None:
        self._html = render(document(deps.settings), prefix=deps.links.prefix).encode()

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        answer_page(resp, self._html)

    on_head = on_get


@cache
def static_files() -> Files:
    """Returns the stylesheet and the script of the pages."""
    return Files(_HERE / "static")


def answer_page(resp: falcon.asgi.Response, html: bytes) -> None:
    """Answers with a page of the documentation."""
    resp.content_type = falcon.MEDIA_HTML
    resp.data = html
    resp.set_headers(_PAGE_HEADERS)


# -- the page


def render(described: Json, *, prefix: str) -> str:
    """Returns the page of a document; `prefix` is the path that the gateway's addresses begin with."""
    schemas = described["components"]["schemas"]
    examples = described["components"]["examples"]
    template = environment(prefix).get_template("docs.html")
    (webhook,) = (each["post"] for each in described["webhooks"].values())
    return template.render(
        document=described,
        server=described["servers"][0]["url"],
        about=ABOUT,
        about_errors=ABOUT_ERRORS,
        about_limit=described["info"]["description"].removeprefix(f"{ABOUT}\n\n{ABOUT_ERRORS}").strip(),
        tags=[(tag, list(_endpoints(described, tag["name"]))) for tag in described["tags"]],
        webhook=webhook,
        payload=webhook["requestBody"]["content"]["application/json"],
        signature=SIGNATURE,
        recipes={name: (_HERE / "recipes" / file).read_text() for name, file in RECIPES.items()},
        objects={name: schemas[name] for name in OBJECTS},
        elsewhere=errors.ELSEWHERE,
        rows=lambda schema: list(_rows(schema, schemas)),
        codes=_codes(),
        words=WORDS,
        standard=examples["DuplicateExternalId"]["value"],
        invalid_body=examples[errors.INVALID_BODY]["value"],
        invalid_fields=examples[errors.INVALID_FIELDS]["value"],
    )


@cache
def environment(prefix: str) -> jinja2.Environment:
    """Returns the templates of the documentation's pages, with the address of their files."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(prose=prose, inline=inline, json=_json_text, type=type_text)
    made.globals.update(static=f"{prefix}/docs-static/{static_files().version}", prefix=prefix)
    return made


@dataclass(frozen=True)
class Endpoint:
    """One operation as the page shows it; `codes` leaves out those that every request can get."""

    method: str
    path: str
    described: Json
    curl: str
    body: Json | None
    status: str
    answer: Json
    codes: list[tuple[int, str]]


def _endpoints(described: Json, tag: str) -> Iterator[Endpoint]:
    reasons = {(each.path, each.method): each for each in OPERATIONS}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if operation["tags"] != [tag]:
                continue
            known = reasons[path, method]
            codes = [(errors.status_of(code), code) for code in known.reasons]
            if known.invalid_fields:
                codes.append((422, "VALIDATION_ERROR"))
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            yield Endpoint(
                method=method.upper(),
                path=path,
                described=operation,
                curl=_curl(described["servers"][0]["url"], path, method, operation, body),
                body=body,
                status=str(known.status),
                answer=operation["responses"][str(known.status)]["content"]["application/json"],
                codes=codes,
            )


def _curl(server: str, path: str, method: str, operation: Json, body: Json | None) -> str:
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
    lines = [f"curl {'-X POST ' if method == 'post' and not body else ''}{server}{path}"]
    lines.append('-H "X-Api-Key: $KEY"')
    if body:
        lines += ["-H 'Content-Type: application/json'", f"-d '{_json_text(body['example'])}'"]
    return " \\\n  ".join(lines)


def _codes() -> list[tuple[str, int, str, str, list[str]]]:
    """Returns each code with its status, meaning, advice and endpoints. A code without endpoints may come from any."""
    own = {code: [each.id for each in OPERATIONS if code in each.reasons] for code in PROBLEMS}
    found = [
        (code, errors.status_of(code), PROBLEMS[code].message, advice, own[code])
        for code, advice in errors.ADVICE.items()
    ]
    return sorted(found, key=lambda row: row[:1])


def _rows(schema: Json, schemas: Mapping[str, Json], prefix: str = "") -> Iterator[tuple[str, Json, bool]]:
    """Yields name, schema and required flag of every member; members of inner objects follow as `outer.inner`."""
    if "$ref" in schema:
        schema = schemas[named(schema["$ref"])]
    for name, each in schema["properties"].items():
        told = {"description": _description(each, schemas), **each}
        yield f"{prefix}{name}", told, name in schema.get("required", ())
        if "properties" in each:
            yield from _rows(each, schemas, f"{prefix}{name}.")


def _description(schema: Json, schemas: Mapping[str, Json]) -> str:
    """Returns the schema's own description, or that of the object it refers to."""
    for each in (schema, *schema.get("anyOf", ())):
        if "$ref" in each:
            return str(schemas[named(each["$ref"])]["description"])
    return ""


# -- filters


def inline(text: str) -> Markup:
    """Turns backticks into <code>; leaves everything else as it is."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  escaped just here


def prose(text: str) -> Markup:
    """Returns the text as HTML. Knows the part of CommonMark that the descriptions use: paragraphs, lists, code."""
    parts = []
    for block in re.split(r"\n\n", text):
        lines = block.split("\n")
        if lines[0].startswith("- "):
            items = Markup("").join(
                Markup("<li>{}</li>").format(inline(line.removeprefix("- "))) for line in lines
            )
            parts.append(Markup("<ul>{}</ul>").format(items))
        else:
            parts.append(Markup("<p>{}</p>").format(inline(block)))
    return Markup("\n").join(parts)


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def type_text(schema: Json) -> Markup:
    """Returns the type of a value in a few words; links to objects."""
    if "$ref" in schema:
        name = named(schema["$ref"])
        return Markup('<a href="#{0}">{0}</a>').format(name)
    if "anyOf" in schema:
        return Markup(" or ").join(type_text(each) for each in schema["anyOf"])
    if schema["type"] == "array":
        return Markup("array of {}").format(type_text(schema["items"]))
    first, *others = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return Markup(" or ").join([escape(first) + _bounds(schema), *(escape(each) for each in others)])


def _bounds(schema: Json) -> Markup:
    found = []
    if "enum" in schema:
        names = [each for each in schema["enum"] if each is not None]
        found.append(Markup(", ").join(Markup("<code>{}</code>").format(each) for each in names))
    if "format" in schema:
        found.append(escape(schema["format"]))
    if "pattern" in schema and not {"format", "maxLength"} & set(schema):  # such patterns are for machines
        found.append(Markup("<code>{}</code>").format(schema["pattern"]))
    if "maximum" in schema or "maxLength" in schema:
        unit = " characters" if "maxLength" in schema else ""
        low, high = (
            schema.get("minimum", schema.get("minLength", 0)),
            schema.get("maximum", schema.get("maxLength")),
        )
        found.append(escape(f"{low} to {high}{unit}"))
    elif "minimum" in schema:
        found.append(escape(f"from {schema['minimum']}"))
    if schema.get("default") is not None:
        found.append(Markup("default <code>{}</code>").format(schema["default"]))
    return Markup("").join(Markup(", {}").format(each) for each in found)
