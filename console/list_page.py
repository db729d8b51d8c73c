"""The base of every list: filters, order and page are its address, and a file has all that the filters leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import quote

import falcon.asgi

from console.exchange import Request
from console.file_page import FilePage, Lines
from console.page import NO_NAMES, App
from console.ui.filters import ORDER, ORDERS, SINCE, UNTIL, Choice, Filter, Merchant, Tabs
from console.ui.pages import exports
from console.ui.values import queried
from kit.rpc.errors import Refused, database_unavailable

ROWS_PER_PAGE: Final = 50
ROWS_PER_PAGE_MAX: Final = 200
ROWS_PER_CALL: Final = 1000
"""Rows of one call for a file: the most that services give."""
TEXT_MAX_CHARACTERS: Final = 254
CURSOR_MAX_CHARACTERS: Final = 300

Row = TypeVar("Row")


@dataclass(frozen=True)
class Found:
    """One page of a list.

    after   the place where the next page begins; empty: this is the last one
    away    services that did not answer: their rows are missing
    values  further values of the template and of `cells`
    """

    rows: Sequence[Any] = ()
    after: str = ""
    away: Sequence[str] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """The checked values of an address.

    given   the value of each filter
    after   the place after which the page begins; empty: at the beginning
    limit   number of rows to request: one more than the page has, which shows whether another page follows
    params  the fields of the path
    """

    given: Mapping[str, str]
    after: str = ""
    limit: int = ROWS_PER_CALL
    params: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        return self.given[name]

    def set_days(self, request: Any) -> None:
        """Sets `since` and `until` of a request, which are Timestamps, from the filters `DAYS`."""
        if begin := SINCE.begin(self.given["since"]):
            request.since.FromDatetime(begin)
        if end := UNTIL.end(self.given["until"]):
            request.until.FromDatetime(end)

    def found(
        self, rows: Sequence[Row], *, after: Callable[[Row], str], away: Sequence[str] = (), **values: Any
    ) -> Found:
        """Returns the page of these rows.

        after  returns the place of a row, at which the next page begins
        """
        page = rows[: self.limit - 1]
        return Found(page, after(page[-1]) if len(rows) > len(page) and page else "", away, values)


class ListPage(FilePage):
    """A list with filters, and the same as CSV.

    template  extends `list.html`
    filters   the fields of the address
    per_call  rows of one call for the file: the most that the service gives
    """

    template: ClassVar[str]
    filters: ClassVar[Sequence[Filter]] = ()
    per_page: ClassVar[int] = ROWS_PER_PAGE
    per_call: ClassVar[int] = ROWS_PER_CALL

    async def rows(self, req: Request, asked: Asked) -> Found:
        """Returns one page. Raises VALIDATION_ERROR for a filter that does not fit."""
        raise NotImplementedError

    def cells(self, row: Any, found: Found) -> Sequence[str]:
        """Returns one line of the CSV."""
        raise NotImplementedError

    async def choices(self, req: Request) -> Mapping[str, Mapping[str, str]]:
        """Returns the words of choices that are not fixed, by the filter's name."""
        return {}

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        """Returns further values for the screen only."""
        return {}

    def add_to(self, app: App, path: str) -> None:
        self._path = path
        super().add_to(app, path)

    # -- the screen

    async def on_get(self, req: Request, resp: falcon.asgi.Response, **params: str) -> None:
        await self.answer(req, resp, params=params)

    on_head = on_get

    async def answer(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        *,
        refused: Refused | None = None,
        values: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> None:
        """Shows the list; with the sentence of a refused form, and further values for the template. Also in answer to a
        form whose address has the query of the list: its links lead to the list.
        """
        given = self._given(req)
        choices, (found, more, fault) = await asyncio.gather(
            self.choices(req), self._screen(req, given, params or {})
        )
        shown = self._shown(req, given, found, choices, params or {})
        shown |= {"faults": self._faults(fault) if fault else {}, "params": params or {}}
        shown["choices"] = {
            each.name: _words(each, choices.get(each.name, {}), given[each.name])
            for each in self.filters
            if isinstance(each, Choice)
        }
        self.show(
            req,
            resp,
            self.template,
            refused=fault or refused,
            **shown | dict(found.values) | dict(more) | dict(values or {}),
        )

    async def _screen(
        self, req: Request, given: Mapping[str, str], params: Mapping[str, str]
    ) -> tuple[Found, Mapping[str, Any], Refused | None]:
        """Returns the page with its further values; or an empty one, with the refusal of a filter."""
        found, fault = Found(), None
        try:
            checked = await self._checked(req, given)
            found = await self.rows(req, Asked(checked, self._after(req), self._limit(req) + 1, params))
        except Refused as refused:
            if refused.reason != "VALIDATION_ERROR":
                raise
            fault = refused
        return found, await self.more(req, found), fault

    def _shown(
        self,
        req: Request,
        given: Mapping[str, str],
        found: Found,
        choices: Mapping[str, Mapping[str, str]],
        params: Mapping[str, str],
    ) -> dict[str, Any]:
        address = self._path.format(**{name: quote(value, safe="") for name, value in params.items()})
        has_merchants = self.deps.surface.has_merchants
        kept = {
            each.name: given[each.name]
            for each in self.filters
            if given[each.name] != each.default or each.is_always_named
        }
        words = dict(choices) | {
            each.name: each.words for each in self.filters if isinstance(each, Choice) and each.words
        }
        words |= {
            each.name: found.values.get("names", {}) for each in self.filters if isinstance(each, Merchant)
        }
        chips = [
            {
                "label": each.label,
                "value": each.shown(given[each.name], words.get(each.name, {})),
                "without": queried(address, kept | {each.name: ""} | self._limit_given(req)),
            }
            for each in self.filters
            if each.name in kept and not isinstance(each, Tabs)
        ]
        limit = self._limit_given(req)
        tabs = [each for each in self.filters if isinstance(each, Tabs)]
        of_tabs = {each.name: kept[each.name] for each in tabs if each.name in kept}
        beside = {name: value for name, value in kept.items() if name != ORDER.name} | limit
        shown = [each for each in self.filters if each not in tabs]
        return {
            "address": address,
            "query": queried("", kept | limit | {"after": self._after(req)}),
            "fields": [each for each in shown if not (has_merchants and isinstance(each, Merchant))],
            "hidden": of_tabs | limit,
            "given": given,
            "chips": chips,
            "is_filtered": bool(chips or self._after(req) or found.after),
            "tabs": [self._tabs(address, each, given[each.name], beside) for each in tabs],
            "cleared": queried(address, of_tabs | limit),
            "rows": found.rows,
            "found": found,
            "away": found.away,
            "first": queried(address, kept | limit) if self._after(req) else None,
            "next": queried(address, kept | limit | {"after": found.after}) if found.after else None,
            "sort": found.values.get("sort", ""),
            "ordered": {each: queried(address, kept | limit | {ORDER.name: each}) for each in ORDERS},
            "csv": queried(f"{address}.csv", kept) if self.csv_name and exports(req) else None,
        }

    def _tabs(self, address: str, tabs: Tabs, value: str, kept: dict[str, str]) -> Mapping[str, Any]:
        links = [
            {
                "path": queried(
                    address, kept | {tabs.name: each if each != tabs.default or tabs.is_always_named else ""}
                ),
                "words": words,
                "is_current": each == value,
                "count": tabs.counts.get(each, ""),
            }
            for each, words in tabs.words.items()
        ]
        return {"label": tabs.label, "links": links}

    def _faults(self, fault: Refused) -> dict[str, str]:
        """Returns the sentence by the filter whose value was refused."""
        named = fault.metadata.get("field", "")
        message = fault.message.removeprefix(f"{named}: ").rstrip(".")
        return {
            each.name: f"{message[:1].upper()}{message[1:]}."
            for each in self.filters
            if named and named in (each.name, each.of)
        }

    # -- the file

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        """Yields all that the filters leave."""
        checked, after = await self._checked(req, self._given(req)), ""
        while True:
            page = await self.rows(req, Asked(checked, after, self.per_call, params))
            if page.away or page.values.get("names") is NO_NAMES:
                raise database_unavailable()
            yield [self.cells(row, page) for row in page.rows]
            if not page.after:
                return
            if page.after == after:
                raise RuntimeError("the list does not move on: a service ignores the place of its page")
            after = page.after

    # -- the address

    @property
    def _hidden(self) -> list[str]:
        return [each.name for each in self.filters if isinstance(each, Merchant)]

    def _given(self, req: Request) -> dict[str, str]:
        """Returns the text of each filter, as it was typed. A member's merchant is the session's."""
        given = {
            each.name: (req.get_param(each.name) or "").strip()[:TEXT_MAX_CHARACTERS] or each.default
            for each in self.filters
        }
        return given | (dict.fromkeys(self._hidden, "") if self.deps.surface.has_merchants else {})

    def _after(self, req: Request) -> str:
        return (req.get_param("after") or "")[:CURSOR_MAX_CHARACTERS]

    def _limit(self, req: Request) -> int:
        text = req.get_param("limit") or ""
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else self.per_page
        return max(10, min(number, ROWS_PER_PAGE_MAX, self.per_call - 1))

    def _limit_given(self, req: Request) -> dict[str, str]:
        limit = self._limit(req)
        return {} if limit == self.per_page else {"limit": str(limit)}

    async def _checked(self, req: Request, given: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the value of each filter, of a merchant its id. Raises VALIDATION_ERROR."""
        checked = {each.name: each.checked(given[each.name]) for each in self.filters}
        for each in self.filters:
            if isinstance(each, Merchant):
                own = req.exchange.signed_in.merchant_id
                checked[each.name] = own or await self.merchant_named(checked[each.name], field=each.name)
        return checked


def _words(choice: Choice, given: Mapping[str, str], value: str) -> Mapping[str, str]:
    """Returns the words of a choice for the form, with one that leaves it open, and with the present value."""
    words = choice.words or given
    if not choice.default:
        words = {"": words.get("", "Any"), **words}
    return words if value in words else {**words, value: value}
