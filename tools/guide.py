"""Makes the text of /docs/guide of docs/integrate.md: HTML, with an id for each heading and links to the gateway."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight  # type: ignore[import-untyped]  # no stubs
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]  # the same
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # the same

from gateway.openapi import page

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = "docs/integrate.md"
MADE: Final = "gateway/openapi/templates/guide-text.html"

RECIPES: Final = "../gateway/openapi/recipes/"
LINKS: Final[Mapping[str, str]] = {
    "api.md": "/docs",
    "api.md#get-withdrawal": "/docs#getWithdrawal",
    "api.md#list-withdrawals": "/docs#listWithdrawals",
    "api.md#refund-a-payment": "/docs#createRefund",
    "api.md#test-events": "/docs#invoiceFinished",
    "api.md#test-mode": "/docs#simulateStep",
}
"""Links of the document, and where the same stands at the gateway."""
_MARK: Final = re.compile(r"^<!-- (local|installation|end) -->$", re.MULTILINE)
"""Marks what only `make run`, or only an installation for real money, shows."""
_FORMATTER: Final = HtmlFormatter(nowrap=True, classprefix="c-")
_PLAIN: Final = re.compile(r'<span class="c-[^cksm][^"]*">(.*?)</span>', re.DOTALL)
"""Words of code without a colour: names, operators, spaces."""
_LANGUAGES: Final = {file: language.lower() for language, file in page.RECIPES.items()}
NOT_SERVED: Final = frozenset(
    f"merchants.md#{each}" for each in ("api-keys", "balance", "settings", "withdrawals")
)
"""Links to documents that the gateway does not have: their text stays."""


def guide_html() -> str:
    """Returns the document as HTML. Raises KeyError for a link that is in no table here."""
    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _coloured}).enable("table")
    tokens = markdown.parse(_MARK.sub(r"\n\n@@\1@@\n\n", (ROOT / SOURCE).read_text()))
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slug(tokens[number + 1].content))
        if token.children:
            token.children = _linked(token.children)
    html: str = markdown.renderer.render(tokens, markdown.options, {})
    html = html.replace("<p>@@end@@</p>", "</div>")
    html = re.sub("<p>@@(local|installation)@@</p>", r'<div class="\1">', html)
    return html.replace("<pre>", '<pre tabindex="0">')


def _coloured(code: str, language: str, _attributes: str) -> str:
    coloured = highlight(code, get_lexer_by_name(language, startinline=True), _FORMATTER)
    return _PLAIN.sub(r"\1", coloured)


def slug(heading: str) -> str:
    """Returns the anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _linked(parts: list[Token]) -> list[Token]:
    """Returns a line's parts with links that lead to the gateway's pages."""
    kept, is_open = [], True
    for part in parts:
        if part.type == "link_open":
            target = _target(str(part.attrs["href"]))
            is_open = bool(target)
            part.attrSet("href", target)
        if is_open or part.type not in ("link_open", "link_close"):
            kept.append(part)
        if part.type == "link_close":
            is_open = True
    return kept


def _target(link: str) -> str:
    """Returns the address of a link at the gateway; empty: it has none."""
    if link in NOT_SERVED:
        return ""
    if link.startswith(RECIPES):
        return f"/docs#signature-{_LANGUAGES[link.removeprefix(RECIPES)]}"
    return link if link.startswith("https://") else LINKS[link]
