"""The filters of lists: each is a field of the address, checked before the call.

A filter at its default is not in the address. A filter in the address is shown above the list, so none works unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar, Final

from kit.base.money import typed_decimal
from kit.rpc.errors import Refused, invalid

TEXT_MAX_CHARACTERS: Final = 254
ONE_DAY: Final = timedelta(days=1)
LAST_DAY: Final = date(9999, 12, 30)
"""The last day that has a day after it."""


@dataclass(frozen=True)
class Filter:
    """One field of the address.

    of  the field of the request that a service names when it refuses the value; empty: the filter's name
    """

    kind: ClassVar[str]
    name: str
    label: str
    hint: str = field(default="", kw_only=True)
    of: str = field(default="", kw_only=True)

    @property
    def default(self) -> str:
        """The value that the list has without the field."""
        return ""

    @property
    def is_always_named(self) -> bool:
        """Whether links name the value also where it is the default."""
        return False

    def checked(self, text: str) -> str:
        """Returns the value for the request. Raises VALIDATION_ERROR with the filter's name."""
        return text

    def shown(self, text: str, words: Mapping[str, str]) -> str:
        """Returns the value as people read it."""
        return words.get(text, text)

    def refusal(self, message: str) -> Refused:
        """Returns the refusal of a value, for its field."""
        return invalid("VALIDATION_ERROR", message, field=self.name)


@dataclass(frozen=True)
class Text(Filter):
    """A text as it was typed."""

    kind = "text"


@dataclass(frozen=True)
class Choice(Filter):
    """One of some values; the first one is the default.

    words  the values, and what people read. Without them `ListPage.choices` gives them, and any value is sent.
    """

    kind = "choice"
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def default(self) -> str:
        return next(iter(self.words), "")

    def checked(self, text: str) -> str:
        if self.words and text not in self.words:
            raise self.refusal("choose one of the list")
        return text


_OF_TIME: Final = {"": "As usual", "newest": "Newest first", "oldest": "Oldest first"}
_OF_AMOUNT: Final = {"largest": "Largest first", "smallest": "Smallest first"}
ORDER: Final = Choice("sort", "In the order", _OF_TIME)
"""The order of a list. `rows` returns it as `sort`, and the headings link to the others."""
ORDER_OF_OPEN: Final = Choice(ORDER.name, ORDER.label, _OF_TIME | _OF_AMOUNT, of="by_amount")
"""The order of a list whose open things have one of amounts too."""
ORDERS: Final = tuple(each for each in ORDER_OF_OPEN.words if each)


def set_order(request: Any, asked: str, *, usual: str) -> str:
    """Sets `oldest_first` and `by_amount` of a request by the value of `ORDER`, and returns the order."""
    order = asked or usual
    request.oldest_first, request.by_amount = (
        order in ("oldest", "smallest"),
        order in ("largest", "smallest"),
    )
    return order


@dataclass(frozen=True)
class Tabs(Choice):
    """A choice that stands above the list: the parts of a queue.

    counts   the queue whose number stands beside a part
    unnamed  the part of an address that names none, where the links name each; empty: the first, which they leave out
    """

    kind = "tabs"
    counts: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    unnamed: str = field(default="", kw_only=True)

    @property
    def default(self) -> str:
        return self.unnamed or super().default

    @property
    def is_always_named(self) -> bool:
        return bool(self.unnamed)


@dataclass(frozen=True)
class Amount(Filter):
    """A decimal number, as 49.90."""

    kind = "amount"

    def checked(self, text: str) -> str:
        if text:
            try:
                return f"{typed_decimal(text):f}"
            except ValueError:
                raise self.refusal("an amount is a number, as 49.90 or 1234,50") from None
        return text


@dataclass(frozen=True)
class Day(Filter):
    """A day in UTC, as 2026-03-31."""

    kind = "day"

    def checked(self, text: str) -> str:
        begin = self.begin(text)
        return begin.date().isoformat() if begin else ""

    def begin(self, text: str) -> datetime | None:
        """Returns the start of that day; None for an empty text."""
        if not text:
            return None
        try:
            return datetime.combine(date.fromisoformat(text), time(), UTC)
        except ValueError:
            raise self.refusal("a day is written as 2026-03-31") from None

    def end(self, text: str) -> datetime | None:
        """Returns the start of the day after; None for an empty text."""
        began = self.begin(text)
        return None if began is None else min(began, datetime.combine(LAST_DAY, time(), UTC)) + ONE_DAY


@dataclass(frozen=True)
class Merchant(Filter):
    """A merchant: its id, the beginning of it, or its name (`ListPage` finds the id)."""

    kind = "merchant"
    name: str = "merchant"
    label: str = "Merchant"
    hint: str = field(default="id or name", kw_only=True)
    of: str = field(default="merchant_id", kw_only=True)


SINCE: Final = Day("since", "From day")
UNTIL: Final = Day("until", "To day")
DAYS: Final = (SINCE, UNTIL)
"""The days of a list, both included."""
