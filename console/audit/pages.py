"""The list of acts with its filters in the address, and the same as CSV."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from urllib.parse import urlencode

import falcon.asgi

from console.audit.merging import merged
from console.exchange import Request
from console.page import Page
from console.ui.csv import csv_line
from console.ui.pages import iso
from fiatgate.accounts.v1 import accounts_pb2
from fiatgate.audit.v1 import audit_pb2 as pb
from kit.base.clock import monotonic_seconds
from kit.base.ids import parse_id
from kit.rpc.actors import carry_token
from kit.rpc.errors import Refused, database_unavailable, invalid
from kit.web.exchange import REQUEST_SECONDS, allow

ACTS_PER_PAGE: Final = 50
ACTS_PER_CALL: Final = 500
CALLS_MAX: Final = 2000
TOKEN_SECONDS: Final = 30.0
"""Age at which a stream of CSV takes a new token; services take none older than a minute."""
FILTERS: Final = ("author", "act", "object", "merchant", "since", "until")
FILTER_MAX_CHARACTERS: Final = 254
ONE_DAY: Final = timedelta(days=1)
LAST_DAY: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""No time has a day after it."""
COLUMNS: Final = (
    "id",
    "at",
    "service",
    "author_kind",
    "author",
    "on_behalf_of",
    "surface",
    "act",
    "object",
    "merchant_id",
    "changes",
    "note",
    "refused",
    "session_id",
    "request_id",
)


class AuditPage(Page):
    """/audit and /audit.csv: author, act, object, merchant, since, until, after."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        self.only_for(req, self.deps.pages.opened_by("/audit"))
        filters = self._filters(req)
        after = req.get_param("after") or ""
        refused = None
        found = None
        try:
            request = self._request(req, filters, after=after, limit=ACTS_PER_PAGE)
            found = await merged(self.deps.audit, request)
        except Refused as problem:
            if problem.reason != "VALIDATION_ERROR":
                raise
            refused = problem
        query = {name: value for name, value in filters.items() if value}
        older = {**query, "after": found.acts[-1].act_id} if found and found.has_more else None
        self.show(
            req,
            resp,
            "audit",
            refused=refused,
            filters=filters,
            acts=found.acts if found else (),
            away=found.away if found else (),
            newest=f"/audit?{urlencode(query)}" if after else None,
            older=f"/audit?{urlencode(older)}" if older else None,
            csv=f"/audit.csv?{urlencode(query)}",
        )

    on_head = on_get

    async def on_get_csv(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Streams all that the filters leave. A service that is away breaks the download off: a file without its acts
        would look complete.
        """
        self.only_for(req, self.deps.pages.opened_by("/audit"))
        request = self._request(req, self._filters(req), after="", limit=ACTS_PER_CALL)
        first = await self._page(request)
        resp.content_type = "text/csv; charset=utf-8"
        resp.set_headers(
            {
                "Content-Disposition": 'attachment; filename="acts.csv"',
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
            }
        )
        resp.stream = self._lines(req, request, first)

    async def _lines(
        self, req: Request, request: pb.ListActsRequest, page: tuple[Sequence[pb.Act], bool]
    ) -> AsyncIterator[bytes]:
        yield csv_line(COLUMNS)
        token_seconds = monotonic_seconds()
        for _ in range(CALLS_MAX):
            acts, has_more = page
            yield b"".join(csv_line(_row(act)) for act in acts)
            if not has_more:
                return
            allow(REQUEST_SECONDS)
            if monotonic_seconds() - token_seconds > TOKEN_SECONDS:
                await self._renew(req)
                token_seconds = monotonic_seconds()
            request.after_act_id = acts[-1].act_id
            page = await self._page(request)
        raise RuntimeError("more acts than one download may have")

    async def _page(self, request: pb.ListActsRequest) -> tuple[Sequence[pb.Act], bool]:
        found = await merged(self.deps.audit, request)
        if found.away:
            raise database_unavailable()
        return found.acts, found.has_more

    async def _renew(self, req: Request) -> None:
        """Takes a new token. Raises SESSION_INVALID when the session has ended meanwhile."""
        request = accounts_pb2.AuthorizeRequest(
            session_token=req.exchange.session_token, surface=self.deps.surface.kind, client=req.client
        )
        carry_token((await self.deps.signin.Authorize(request)).actor_token)

    def _filters(self, req: Request) -> dict[str, str]:
        given = {name: (req.get_param(name) or "").strip()[:FILTER_MAX_CHARACTERS] for name in FILTERS}
        if self.deps.surface.has_merchants:
            given["merchant"] = ""
        return given

    def _request(
        self, req: Request, filters: dict[str, str], *, after: str, limit: int
    ) -> pb.ListActsRequest:
        merchant_id = req.exchange.signed_in.merchant_id or filters["merchant"]
        if merchant_id and parse_id(merchant_id) is None:
            raise invalid("VALIDATION_ERROR", "a merchant is named by its id", field="merchant")
        if after and parse_id(after) is None:
            raise invalid("VALIDATION_ERROR", "this page does not exist", field="after")
        request = pb.ListActsRequest(
            author=filters["author"],
            act=filters["act"],
            object=filters["object"],
            merchant_id=merchant_id,
            after_act_id=after,
            limit=limit,
        )
        if since := _day("since", filters["since"]):
            request.since.FromDatetime(since)
        if until := _day("until", filters["until"]):
            request.until.FromDatetime(min(until, LAST_DAY - ONE_DAY) + ONE_DAY)
        return request


def _day(field: str, text: str) -> datetime | None:
    """Returns the start of that day in UTC; None for an empty text."""
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise invalid("VALIDATION_ERROR", f"{field} is a day, as 2026-03-31", field=field) from None


def _row(act: pb.Act) -> tuple[str, ...]:
    changes = "; ".join(f"{each.field}: {each.before} -> {each.after}" for each in act.changes)
    return (
        act.act_id,
        iso(act.at),
        act.service,
        act.actor.kind,
        act.actor.name,
        act.actor.on_behalf_of,
        act.actor.surface,
        act.act,
        act.object,
        act.merchant_id,
        changes,
        act.note,
        act.refused,
        act.actor.session_id,
        act.request_id,
    )
