"""Replaces what differs from day to day, such as ids and times, with placeholders that keep equal values equal."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

_HEX4: Final = "[0-9a-f]{4}"
_UNNUMBERED: Final = (
    ("time", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?(?: UTC)?"),
    ("time", r"\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d(?::\d\d)? UTC"),
    ("time", r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"),
    ("time", r"(?:<day>,\s)?\b\d{1,2}:\d\d(?:\s(?:[AaPp][Mm]|ص|م))? UTC"),
    ("time", r"\b1[789]\d{8}\b"),
    ("day", r"\b\d{4}-\d\d-\d\d\b"),
    ("month", r"(?<=statement-)\d{4}-\d\d(?=\.csv)|\A\d{4}-\d\d\Z"),
    ("age", r"\b\d+ (?:ms|s|min|h)\b(?: ago)?"),
    ("id…", rf"\b[0-9a-f]{{8}}-{_HEX4}\b(?!-)"),
    ("hint", r"\bfg_test_[A-Za-z0-9]{4}\b"),
    ("number", r"(?<=demo-order-)[0-9a-f]{8}|(?<=demo-customer-)[0-9a-f]{8}|(?<=# key )[\w-]{8}"),
)
_NUMBERED: Final = (
    ("id", rf"[0-9a-f]{{8}}(?:-{_HEX4}){{3}}-[0-9a-f]{{12}}"),
    ("hash", r"\b[0-9a-f]{64}\b"),
    ("request", r"\b[0-9a-f]{24}\b"),
    ("key", r"\bfg_test_[A-Za-z0-9]{30,}\b"),
    ("secret", r"(?<![\w-])[\w-]{43}(?![\w-])"),
)
_NUMBERS: Final = frozenset({"acts", "duration_ms", "median_seconds", "p95_seconds", "unchained", "value"})
"""Members whose numbers depend on the speed of the machine."""


class Placeholders:
    """Placeholders of one recording. A value keeps the one that it got first: `<id:api7.2>` is the second id that was
    new in the seventh answer of the part `api`.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._fixed: dict[str, str] = {}
        self._place = ""
        self._counts: Counter[str] = Counter()

    def enter(self, place: str) -> None:
        """New values are named by this place from now on."""
        self._place = place
        self._counts.clear()

    def fix(self, value: str, name: str) -> None:
        """Gives a value, such as an address, a name of its own."""
        self._fixed[value] = f"<{name}>"

    def of(self, value: Any, key: str = "") -> Any:
        """Returns the JSON value with placeholders."""
        if isinstance(value, dict):
            if {"count", "hash"} <= value.keys():  # the end of a chain, which grows behind the acts
                value = value | {"count": "<number>"}
            return {self._text(name): self.of(value[name], name) for name in sorted(value)}
        if isinstance(value, list | tuple):
            if key == "heads":  # each service gives its own when it has the time
                return "<heads>"
            if key == "timeline":  # services write their moments beside each other
                value = sorted(value, key=lambda moment: str(moment["service"]))
            return [self.of(each, key) for each in value]
        if isinstance(value, str):
            if key == "reference" and value and value not in self._fixed:
                name = self._numbered("reference", value)[1:-1]
                self.fix(value, name)
                self.fix(f"{value[:4]} {value[4:]}", name)
            return self._text(value)
        return "<number>" if key in _NUMBERS and isinstance(value, int | float) else value

    def _text(self, text: str) -> str:
        for value in sorted(self._fixed, key=len, reverse=True):
            text = text.replace(value, self._fixed[value])
        for kind, pattern in _NUMBERED:
            text = re.sub(pattern, lambda found, kind=kind: self._numbered(kind, found[0]), text)  # type: ignore[misc]
        for kind, pattern in _UNNUMBERED:
            text = re.sub(pattern, f"<{kind}>", text)
        return text

    def _numbered(self, kind: str, value: str) -> str:
        if value not in self._known:
            self._counts[kind] += 1
            self._known[value] = f"<{kind}:{self._place}.{self._counts[kind]}>"
        return self._known[value]
