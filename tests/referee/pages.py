"""Reduces a page to what a person sees of it and can do on it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any, Final

import requests

_HEADERS: Final = (
    *("Allow", "Cache-Control", "Content-Disposition", "Content-Security-Policy", "Content-Type", "Location"),
    *("Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options", "WWW-Authenticate"),
)
_UNSEEN: Final = frozenset({"script", "style", "template", "svg"})
_VOID: Final = frozenset({"input", "br", "img", "meta", "link", "hr", "source", "wbr", "col"})
_INLINE: Final = frozenset(
    {"a", "b", "bdi", "code", "em", "span", "strong", "small", "time", "wbr", "abbr", "i"}
)


def headers_of(answer: requests.Response) -> dict[str, str]:
    """The headers that somebody relies on."""
    shown = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
    return shown | ({"Retry-After": "<number>"} if "Retry-After" in answer.headers else {})


def seen_on(answer: requests.Response, *, words: bool = False) -> dict[str, Any]:
    """Headers, and of a page what a person can read and do; all its `words`, or only those that name its parts."""
    seen: dict[str, Any] = {"headers": headers_of(answer)}
    content = answer.headers.get("Content-Type", "")
    if content.startswith("text/html"):
        page = Page(answer.text)
        seen |= {"title": page.title, "forms": page.forms}
        if words:
            return seen | {"words": page.words, "links": page.links}
        return seen | {"headings": page.headings, "columns": page.columns, "notices": page.notices}
    if content.startswith("text/csv"):
        return seen | {"columns": answer.text.splitlines()[0].split(",")}
    return seen


class Page(HTMLParser):
    """title, headings, columns, forms and words of an HTML document."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.title = ""
        self.headings: list[str] = []
        self.columns: list[str] = []
        self.forms: list[dict[str, Any]] = []
        self.links: list[str] = []
        self.notices: list[str] = []
        self._open: list[str] = []
        self._notice_depth = 0
        self._words: list[str] = []
        self._texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()

    @property
    def words(self) -> list[str]:
        """The visible text, a line for each block."""
        lines = (" ".join(line.split()) for line in "".join(self._words).split("\0"))
        return [line for line in lines if line]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in _INLINE:
            self._words.append("\0")
        if tag == "form":
            form = {
                "action": f"{given.get('method', 'get')} {given.get('action', '')}",
                "fields": [],
                "buttons": [],
            }
            self.forms.append(form)
        elif tag in ("input", "select", "textarea", "button") and given.get("name") and self.forms:
            fields = self.forms[-1]["fields"]
            fields += [given["name"]] * (given["name"] not in fields)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("title", "h1", "h2", "h3", "th", "button"):
            self._texts[tag] = []
        if given.get("role") in ("status", "alert") and not self._notice_depth:
            self._notice_depth = len(self._open) + 1
            self.notices.append("")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _INLINE:
            self._words.append("\0")
        if tag in self._open:
            while self._open.pop() != tag:
                pass
        if len(self._open) < self._notice_depth:
            self._notice_depth = 0
            self.notices[-1] = " ".join(self.notices[-1].split())
        text = " ".join("".join(self._texts.pop(tag, [])).split())
        if tag == "title":
            self.title = text
        elif tag in ("h1", "h2", "h3") and text:
            self.headings.append(f"{tag} {text}")
        elif tag == "th" and text:
            self.columns.append(text)
        elif tag == "button" and self.forms and text not in self.forms[-1]["buttons"]:
            self.forms[-1]["buttons"].append(text)

    def handle_data(self, data: str) -> None:
        for texts in self._texts.values():
            texts.append(data)
        if not _UNSEEN & {*self._open}:
            self._words.append(data)
            if self._notice_depth:
                self.notices[-1] += data
