"""The one search box: anything by what a person has in front of them, over all services that the person may search."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.file_page import FilePage, Lines
from console.page import NO_NAMES, leave_for
from console.ui.pages import SEARCH
from console.ui.values import iso
from fiatgate.find.v1 import find_pb2 as pb
from kit.base.proto import most_of
from kit.rpc.errors import database_unavailable, invalid

FIND_SECONDS: Final = 4.0
ROWS_MOST: Final = 20
"""The most things of each kind and field; more are found by the lists and their filters."""
ROWS_MOST_IN_FILE: Final = 100
"""The most that services give."""
TEXT_MOST_CHARACTERS: Final = most_of(pb.FindRequest, "text")

PATHS: Final[Mapping[str, str]] = {
    "invoice": "/invoices/{id}",
    "deal": "/deals/{id}",
    "case": "/cases/{id}",
    "merchant": "/merchants/{id}",
    "key": "/merchants/{merchant_id}",
    "withdrawal": "/withdrawals/{id}",
    "refund": "/refunds/{id}",
    "requisite": "/requisites/{id}",
    "webhook": "/webhooks/{id}",
    "person": "/people/{id}",
    "approval": "/approvals/{service}/{id}",
}
"""The page of each kind of thing at the desk."""


@dataclass(frozen=True)
class Hit:
    """A thing that was found, and the address of its page; empty: the person has none for it."""

    found: pb.Found
    path: str


@dataclass(frozen=True)
class Hits:
    """The things that were found.

    cut   the kinds and fields of which there are more, as "deal amount"
    away  the services that did not answer
    """

    things: Sequence[Hit] = ()
    cut: Sequence[str] = ()
    away: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)


class FindPage(FilePage):
    """/find: everything that matches the text. If it is one thing only, its page is opened instead.

    services  the services that are searched
    entries   for a service that only some roles may search: the entry of the navigation that they may open
    paths     the page of each kind of thing
    """

    services: ClassVar[Sequence[str]] = ("invoices", "identity", "withdrawals", "webhooks", "catalog")
    entries: ClassVar[Mapping[str, str]] = {}
    paths: ClassVar[Mapping[str, str]] = PATHS
    template: ClassVar[str] = "finding"
    link = SEARCH
    csv_name = "found"
    columns: ClassVar[Sequence[str]] = (
        *("kind", "id", "field", "value", "status", "amount", "currency"),
        *("merchant_id", "merchant", "order", "created_at"),
    )

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        text = _text(req)
        hits = await self._hits_of(req, text, most=ROWS_MOST) if text else Hits()
        if one := _only(hits):
            leave_for(resp, one.path)
            return
        further = [(each, self.list_of(each, text)) for each in hits.cut]
        csv = self.file(req, q=text)
        self.show(req, resp, self.template, text=text, found=hits, csv=csv, further=further)

    on_head = on_get

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        """Yields all hits. Raises VALIDATION_ERROR when there are too many of a kind."""
        text = _text(req)
        hits = await self._hits_of(req, text, most=ROWS_MOST_IN_FILE) if text else Hits()
        if hits.away or hits.names is NO_NAMES:
            raise database_unavailable()
        if hits.cut:
            message = f"not all by {', '.join(hits.cut)} fit in here: take the file of the list"
            raise invalid("VALIDATION_ERROR", message, field="q")
        yield [self.cells(each.found, hits.names) for each in hits.things]

    def list_of(self, cut: str, text: str) -> str:
        """Returns the address of a list with all that `cut` names; empty: none has."""
        return ""

    def cells(self, found: pb.Found, names: Mapping[str, str]) -> Sequence[str]:
        """Returns a line of the file."""
        facts = found.facts
        merchant_id = facts.get("merchant_id", "")
        return (
            *(found.kind, found.id, found.field, found.value, found.status),
            *(facts.get("amount", ""), facts.get("currency_code", "")),
            *(merchant_id, names.get(merchant_id, "")),
            *(facts.get("external_id", ""), iso(found.created_at)),
        )

    async def _hits_of(self, req: Request, text: str, *, most: int) -> Hits:
        """Searches all services that the person may read. `most` of each kind and field are found."""
        merchant_id = req.exchange.signed_in.merchant_id
        request = pb.FindRequest(text=text, limit=most, merchant_id=merchant_id)
        services = [
            each
            for each in self.services
            if each not in self.entries or self.deps.pages.may_open(req, self.entries[each])
        ]
        calls = (self.deps.find[each].Find(request) for each in services)
        found = await asyncio.gather(*(or_none(each, seconds=FIND_SECONDS) for each in calls))
        answers = dict(zip(services, found, strict=True))
        things = self._hits(req, answers)
        cut = [each for answer in found if answer for each in answer.cut]
        away = [service for service, answer in answers.items() if answer is None]
        of = () if merchant_id else (each.found.facts.get("merchant_id", "") for each in things)
        names = await self.names(*of)
        return Hits(things, cut, away, names)

    def _hits(self, req: Request, answers: Mapping[str, Any]) -> Sequence[Hit]:
        """Returns each thing once, with the first of its fields that has the text."""
        hits: dict[tuple[str, str], Hit] = {}
        for service, answer in answers.items():
            for found in answer.found if answer else ():
                path = self._path(req, found, service)
                hits.setdefault((found.kind, found.id), Hit(found, path))
        return list(hits.values())

    def _path(self, req: Request, found: pb.Found, service: str) -> str:
        """Returns the page of a thing; empty when the person may not open it."""
        path = path_of(found, service, self.paths)
        return path if path and self.deps.pages.may_open(req, f"/{path.split('/')[1]}") else ""


def path_of(found: pb.Found, service: str, paths: Mapping[str, str] = PATHS) -> str:
    """Returns the page of a thing; empty for a kind without one, and when a fact of its address is missing."""
    try:
        return paths[found.kind].format_map({"id": found.id, "service": service} | dict(found.facts))
    except KeyError:
        return ""


def _text(req: Request) -> str:
    return (req.get_param("q") or "").strip()[:TEXT_MOST_CHARACTERS]


def _only(found: Hits) -> Hit | None:
    """Returns the single thing that was found, or the invoice if all are this invoice and its deals. None when there
    may be another: of a service that is away, or beyond what was read.
    """
    hits = found.things
    invoices = {each.found.facts.get("invoice_id", each.found.id) for each in hits}
    of_invoice = all(each.found.kind in ("invoice", "deal") for each in hits) and len(invoices) == 1
    ones = [each for each in hits if each.found.kind == "invoice"] if of_invoice and len(hits) > 1 else hits
    is_all = not found.away and not found.cut
    return ones[0] if len(ones) == 1 and ones[0].path and is_all else None
