"""The one search box: anything by what a person has in front of them, over all services."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for
from console.ui.pages import SEARCH
from fiatgate.find.v1 import find_pb2 as pb
from kit.base.proto import most_of
from kit.rpc.errors import Refused

SERVICES: Final = ("invoices", "merchants", "withdrawals", "webhooks", "accounts")
ENTRIES: Final[Mapping[str, str]] = {"accounts": "/people"}
"""Services that only some roles may search: those that may open this entry of the navigation."""
ROWS_MOST: Final = 20
"""The most things of each kind and field; more are found by the lists and their filters."""
TEXT_MOST_CHARACTERS: Final = most_of(pb.FindRequest, "text")
AWAY: Final = frozenset({"DB_UNAVAILABLE", "INTERNAL_ERROR"})

_PATHS: Final[Mapping[str, str]] = {
    "invoice": "/invoices/{id}",
    "deal": "/deals/{id}",
    "case": "/cases/{id}",
    "merchant": "/merchants/{id}",
    "key": "/merchants/{merchant_id}",
    "withdrawal": "/withdrawals/{id}",
    "requisite": "/requisites/{id}",
    "webhook": "/webhooks/{id}",
    "person": "/people/{id}",
    "approval": "/approvals/{service}/{id}",
}
"""The page of each kind of thing."""


@dataclass(frozen=True)
class Hit:
    """A thing that was found, and the address of its page; empty: the person has none for it."""

    found: pb.Found
    path: str


class FindPage(Page):
    """/find: everything that has the text. A single thing is opened at once."""

    link = SEARCH

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        text = (req.get_param("q") or "").strip()[:TEXT_MOST_CHARACTERS]
        if not text:
            self.show(req, resp, "find", text="", hits=(), cut=(), away=(), names={})
            return
        request = pb.FindRequest(text=text, limit=ROWS_MOST)
        services = [
            each for each in SERVICES if each not in ENTRIES or self.deps.pages.may_open(req, ENTRIES[each])
        ]
        found = await asyncio.gather(*(self._found(service, request) for service in services))
        answers = dict(zip(services, found, strict=True))
        away = [service for service, answer in answers.items() if isinstance(answer, Refused)]
        hits = self._hits(req, answers)
        if one := _only(hits, away):
            leave_for(resp, one.path)
            return
        names = await self.names(*(each.found.facts.get("merchant_id", "") for each in hits))
        cut = [each for answer in answers.values() if not isinstance(answer, Refused) for each in answer.cut]
        self.show(req, resp, "find", text=text, hits=hits, cut=cut, away=away, names=names)

    on_head = on_get

    async def _found(self, service: str, request: pb.FindRequest) -> Any:
        """Returns the answer of a service, or its refusal when it is away."""
        try:
            return await self.deps.find[service].Find(request)
        except Refused as refused:
            if refused.reason not in AWAY:
                raise
            return refused

    def _hits(self, req: Request, answers: Mapping[str, Any]) -> Sequence[Hit]:
        """Returns each thing once, with the first of its fields that has the text."""
        hits: dict[tuple[str, str], Hit] = {}
        for service, answer in answers.items():
            for found in () if isinstance(answer, Refused) else answer.found:
                path = self._path(req, found, service)
                hits.setdefault((found.kind, found.id), Hit(found, path))
        return list(hits.values())

    def _path(self, req: Request, found: pb.Found, service: str) -> str:
        """Returns the page of a thing; empty when the person may not open it."""
        made = _PATHS.get(found.kind, "").format_map({"id": found.id, "service": service} | dict(found.facts))
        entry = f"/{made.split('/')[1]}" if made else ""
        return made if entry and self.deps.pages.may_open(req, entry) else ""


def _only(hits: Sequence[Hit], away: Sequence[str]) -> Hit | None:
    """Returns the single thing that was found, or the invoice if all are this invoice and its deals. None when a
    service is away, which may have another.
    """
    invoices = {each.found.facts.get("invoice_id", each.found.id) for each in hits}
    of_invoice = all(each.found.kind in ("invoice", "deal") for each in hits) and len(invoices) == 1
    ones = [each for each in hits if each.found.kind == "invoice"] if of_invoice and len(hits) > 1 else hits
    return ones[0] if len(ones) == 1 and ones[0].path and not away else None
