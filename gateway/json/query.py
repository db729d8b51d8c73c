"""Query values. All are checked before the answer, which names every fault (docs/api.md#validation-errors)."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final, TypeVar
from urllib.parse import unquote_plus

from gateway.json.problems import FieldFault, InvalidFields
from kit.base.ids import parse_id

_INTEGER: Final = re.compile(r"-?[0-9]{1,1000}").fullmatch  # int() accepts at most 4300 digits
UNKNOWN_MOST: Final = 10
"""Unknown names that are told at once: comparing each of thousands with the known ones would take seconds."""
NAME_MOST_CHARACTERS: Final = 64
NO_TIME: Final = "must be a time with its UTC offset, as 2026-11-29T12:00:00Z"
_TIME: Final = re.compile(
    r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})"
).fullmatch
_MONTH: Final = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])").fullmatch
_CURRENCY: Final = re.compile(r"[A-Za-z]{3}").fullmatch

T = TypeVar("T")


def no_query(query_string: str) -> None:
    """Checks the query string of an endpoint without parameters. Raises InvalidFields."""
    Query(query_string).check()


class Query:
    """The query string's values by name. A name given twice has no single value and is refused.

    Each method returns the checked value, or the default when the name is absent. When the value is wrong it records
    the fault and returns the default, so `check` must be called before any value is used. The names that these
    methods were asked for are the known ones.
    """

    def __init__(self, query_string: str) -> None:
        self._values: dict[str, list[str]] = {}
        self._known: list[str] = []
        self._faults: list[FieldFault] = []
        for pair in filter(None, query_string.split("&")):
            name, _, value = pair.partition("=")
            self._values.setdefault(unquote_plus(name), []).append(value)

    def integer(self, name: str, *, default: int, least: int, most: int | None = None) -> int:
        """Returns a number of ASCII digits. A page of 10^30 is past the last page, not an error."""
        text = self._one(name)
        if text is None:
            return default
        if not _INTEGER(text):
            return self._wrong(name, "must be an integer", default)
        value = int(text)
        if value < least:
            return self._wrong(name, f"must be at least {least}", default)
        if most is not None and value > most:
            return self._wrong(name, f"must be at most {most}", default)
        return value

    def choice(self, name: str, choices: Mapping[str, T], default: T) -> T:
        """Returns the value of the name that matches exactly."""
        text = self._one(name)
        if text is None:
            return default
        if text not in choices:
            return self._wrong(name, f"must be one of {', '.join(choices)}", default)
        return choices[text]

    def currency(self, name: str) -> str | None:
        """Returns a currency code in upper case, given in either case."""
        text = self._one(name)
        if text is None:
            return None
        if not _CURRENCY(text):
            return self._wrong(name, "must be a currency code of three letters", None)
        return text.upper()

    def id(self, name: str) -> str:
        """Returns an id in lower case; empty when absent."""
        text = self._one(name)
        known_form = None if text is None else parse_id(text)
        if text is not None and known_form is None:
            return self._wrong(name, "must be an id", "")
        return str(known_form or "")

    def month(self, name: str, *, default: datetime) -> datetime:
        """Returns the first moment of a month in UTC."""
        text = self._one(name)
        if text is None:
            return datetime(default.year, default.month, 1, tzinfo=UTC)
        if not _MONTH(text):
            return self._wrong(name, "must be a month, as 2026-11", default)
        return datetime(int(text[:4]), int(text[5:]), 1, tzinfo=UTC)

    def time(self, name: str) -> datetime | None:
        """Returns a time. The space before its offset is a plus that was not encoded."""
        text = (self._one(name) or "").replace(" ", "+")
        if not text:
            return None
        try:
            return datetime.fromisoformat(text) if _TIME(text) else self._wrong(name, NO_TIME, None)
        except ValueError:
            return self._wrong(name, NO_TIME, None)

    def text(self, name: str, *, most: int | None = None) -> str | None:
        """Returns a text that is not empty; with a bound of at most so many characters, none of them NUL."""
        text = self._one(name)
        if text is not None and most is not None and (len(text) > most or "\0" in text):
            return self._wrong(name, f"must have at most {most} characters, and no NUL", None)
        return text

    def check(self) -> None:
        """Raises InvalidFields when any value was wrong or any name is unknown."""
        unknown = [name for name in self._values if name not in self._known]
        for name in unknown[:UNKNOWN_MOST]:
            shown = name[:NAME_MOST_CHARACTERS]
            near = get_close_matches(shown, self._known, n=1)
            self._faults.append(
                FieldFault(shown, "unknown parameter" + "".join(f", did you mean {each}?" for each in near))
            )
        if self._faults:
            raise InvalidFields(*self._faults)

    def _one(self, name: str) -> str | None:
        self._known.append(name)
        values = self._values.get(name)
        if values is None:
            return None
        if len(values) > 1:
            return self._wrong(name, "must be given once", None)
        try:
            text = unquote_plus(values[0], errors="strict")
        except UnicodeDecodeError:
            return self._wrong(name, "must be UTF-8", None)
        return text or self._wrong(name, "must not be empty", None)

    def _wrong(self, name: str, message: str, default: T) -> T:
        self._faults.append(FieldFault(name, message))
        return default
