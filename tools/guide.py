"""Makes the text of /docs/guide of docs/integrate.md: HTML, with an id for each heading and links to the gateway."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gateway.openapi import page

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = "docs/integrate.md"
MADE: Final = "gateway/openapi/templates/guide-text.html"

RECIPES: Final = "../gateway/openapi/recipes/"
LINKS: Final[Mapping[str, str]] = {
    "api.md": "/docs",
    "api.md#get-withdrawal": "/docs#getWithdrawal",
    "api.md#list-withdrawals": "/docs#listWithdrawals",
    "api.md#test-events": "/docs#invoiceFinished",
    "http://127.0.0.1:8080/docs": "/docs",
}
"""Links of the document, and where the same stands at the gateway."""
_LANGUAGES: Final = {file: language.lower() for language, file in page.RECIPES.items()}
NOT_SERVED: Final = frozenset(
    f"merchants.md#{each}" for each in ("api-keys", "balance", "settings", "withdrawals")
)
"""Links to documents that the gateway does not have: their text stays."""


def guide_html() -> str:
    """Returns the document as HTML. Raises KeyError for a link that is in no table here."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse((ROOT / SOURCE).read_text())
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slug(tokens[number + 1].content))
        if token.children:
            token.children = _linked(token.children)
    html: str = markdown.renderer.render(tokens, markdown.options, {})
    return html.replace("<pre>", '<pre tabindex="0">')


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
