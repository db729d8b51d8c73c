"""GET /api/v1/openapi.json, and /docs: the same document as one page of HTML, whole without scripts."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import falcon
import falcon.asgi
import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from gateway.exchange import Request
from gateway.json.problems import Json
from gateway.openapi.document import (
    codes_of,
    document,
    example_of,
    operations,
    refusals,
    resolved,
    success,
)
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

# Objects that stand where they are sent or received.
_SHOWN_ELSEWHERE: Final = (
    *("CreateInvoice", "CreatedInvoice", "PostLines", "WebhookPayload"),
    *("ErrorAnswer", "ErrorBody", "InvalidFields", "FieldFault", "Refusal"),
)
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
        self._body = json.dumps(_document(deps), ensure_ascii=False).encode()
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
        self._html = render(_document(deps), prefix=deps.links.prefix, is_test=deps.settings.is_test).encode()

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        answer_page(resp, self._html)

    on_head = on_get


def _document(deps: Deps) -> Json:
    settings = deps.settings
    return document(
        settings.public_url, http_callbacks=settings.webhook_allow_private, is_test=settings.is_test
    )


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


def render(described: Json, *, prefix: str, is_test: bool) -> str:
    """Returns the page of a document; `prefix` is the path that the gateway's addresses begin with."""
    schemas = described["components"]["schemas"]
    codes = codes_of(described)
    any_request = {each.code for each in codes if each.of_any_request}
    (webhook,) = (each["post"] for each in described["webhooks"].values())
    return (
        environment(prefix)
        .get_template("docs.html")
        .render(
            is_test=is_test,
            document=described,
            operations=list(operations(described)),
            webhook=webhook,
            recipes={name: (_HERE / "recipes" / file).read_text() for name, file in RECIPES.items()},
            objects={name: each for name, each in schemas.items() if name not in _SHOWN_ELSEWHERE},
            codes=codes,
            addressed=partial(_addressed, described),
            own_codes=lambda operation: sorted(
                (status, code) for status, code in refusals(described, operation) if code not in any_request
            ),
            words=WORDS,
            rows=partial(_rows, described),
            success=partial(success, described),
            example=partial(example_of, described),
            resolved=partial(resolved, described),
        )
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
    markdown = MarkdownIt("commonmark", {"html": False})
    made.filters.update(
        prose=lambda text: Markup(markdown.render(text)),  # noqa: S704  our own document
        inline=lambda text: Markup(markdown.renderInline(text)),  # noqa: S704  the same
        json=partial(json.dumps, ensure_ascii=False, indent=2),
        type=type_text,
    )
    made.globals.update(static=f"{prefix}/docs-static/{static_files().version}", prefix=prefix)
    return made


def _addressed(described: Json, path: str, operation: Json) -> str:
    """Returns the path with the examples of its parameters."""
    parameters = [resolved(described, each) for each in operation.get("parameters", ())]
    return path.format(**{each["name"]: each["example"] for each in parameters})


def _rows(described: Json, schema: Json, prefix: str = "") -> Iterator[tuple[str, Json, bool]]:
    """Yields name, schema and required flag of every member; members of inner objects follow as `outer.inner`."""
    schema = resolved(described, schema)
    for name, each in schema["properties"].items():
        named: Json = next((one for one in (each, *each.get("oneOf", ())) if "$ref" in one), {})
        text = resolved(described, named).get("description", "")
        yield f"{prefix}{name}", {"description": text, **each}, name in schema.get("required", ())
        if "properties" in each:
            yield from _rows(described, each, f"{prefix}{name}.")


def type_text(schema: Json) -> Markup:
    """Returns the type of a value in a few words; links to objects."""
    if "$ref" in schema:
        return Markup('<a href="#{0}">{0}</a>').format(schema["$ref"].rpartition("/")[2])
    if "oneOf" in schema:
        return Markup(" or ").join(type_text(each) for each in schema["oneOf"])
    if schema["type"] == "array":
        return Markup("array of {}").format(type_text(schema["items"]))
    first, *others = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return Markup(" or ").join([escape(first) + _bounds(schema), *(escape(each) for each in others)])


def _bounds(schema: Json) -> Markup:
    code = Markup("<code>{}</code>").format
    found: list[Any] = []
    if values := schema.get("enum") or schema.get("x-extensible-enum"):
        found.append(Markup(", ").join(map(code, values)))
    if "format" in schema:
        found.append(schema["format"])
    elif "pattern" in schema and "maxLength" not in schema:  # the patterns of long texts are for machines
        found.append(code(schema["pattern"]))
    if "maxLength" in schema:
        found.append(f"{schema.get('minLength', 0)} to {schema['maxLength']} characters")
    elif "maximum" in schema:
        found.append(f"{schema['minimum']} to {schema['maximum']}")
    elif "minimum" in schema:
        found.append(f"from {schema['minimum']}")
    if "default" in schema:
        found.append(Markup("default {}").format(code(schema["default"])))
    return Markup("").join(Markup(", {}").format(each) for each in found)
