"""Parked events: those that a service failed at too often, or that are not proven."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import ClassVar, Final

import falcon.asgi

from console.calls import SEVERAL_SECONDS, or_none
from console.exchange import Request
from console.file_page import FilePage, Lines
from console.page import leave_for
from console.ui.values import iso
from fiatgate.parked.v1 import parked_pb2 as pb
from kit.base.clock import monotonic_seconds
from kit.rpc.errors import Refused, not_found
from kit.web.exchange import REQUEST_SECONDS, allow

SHOWN_MOST: Final = 200
ROWS_PER_CALL: Final = 1000


class ParkedPage(FilePage):
    """/parked: the parked events of all services, those parked longest ago first; retry, discard."""

    link: ClassVar[str] = "/parked"
    csv_name = "parked"
    columns = (
        *("service", "event_id", "claimed_event_id", "subject", "invoice_id", "parked_at", "failed_at"),
        *("attempts", "error", "request_id"),
    )

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp)

    on_head = on_get

    async def _show(
        self, req: Request, resp: falcon.asgi.Response, *, refused: Refused | None = None
    ) -> None:
        names = list(self.deps.parked)
        answers = await asyncio.gather(*(self._list(name) for name in names))
        rows = [
            (name, event)
            for name, answer in zip(names, answers, strict=True)
            for event in (answer.events if answer else ())
        ]
        rows.sort(key=lambda row: row[1].parked_at.ToNanoseconds())
        total = sum(answer.total for answer in answers if answer)
        away = [name for name, answer in zip(names, answers, strict=True) if answer is None]
        self.show(
            req,
            resp,
            "parked",
            refused=refused,
            rows=rows,
            total=total,
            away=away,
            csv=self.file(req),
        )

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        """Yields the events of one service after those of the other."""
        for name, stub in self.deps.parked.items():
            request = pb.ListParkedRequest(limit=ROWS_PER_CALL)
            while events := (await stub.ListParked(request)).events:
                yield [_cells(name, each) for each in events]
                request.after_event_id = events[-1].event_id
                request.after_parked_at.CopyFrom(events[-1].parked_at)

    async def _list(self, name: str) -> pb.ListParkedResponse | None:
        request = pb.ListParkedRequest(limit=SHOWN_MOST)
        return await or_none(self.deps.parked[name].ListParked(request))

    async def on_post_retry(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Handles the events of the services again that the person may change, once each. A person who may change none
        is refused by the service, which records it.
        """
        await self.form(req)
        services = [name for name, role in ROLES.items() if self.may(req, role)] or list(ROLES)
        await self._retried(resp, [pb.RetryParkedRequest()] * len(services), services)

    async def on_post_retry_one(
        self, req: Request, resp: falcon.asgi.Response, service: str, event_id: str
    ) -> None:
        await self.form(req)
        self._require(service)
        await self._retried(resp, [pb.RetryParkedRequest(event_id=event_id)], [service])

    async def on_post_discard(
        self, req: Request, resp: falcon.asgi.Response, service: str, event_id: str
    ) -> None:
        form = await self.form(req)
        self._require(service)
        request = pb.DiscardParkedRequest(event_id=event_id, even_if_true=bool(form.text("even_if_true")))
        try:
            await self.deps.parked[service].DiscardParked(request)
        except Refused as refused:
            if refused.reason != "VALIDATION_ERROR":
                raise
            await self._show(req, resp, refused=refused)
        else:
            leave_for(resp, "/parked", notice="parked-discarded")

    async def _retried(
        self,
        resp: falcon.asgi.Response,
        requests: Sequence[pb.RetryParkedRequest],
        services: Sequence[str],
    ) -> None:
        counts = [await self._retry(name, request) for name, request in zip(services, requests, strict=True)]
        stayed = sum(retried - mended for retried, mended in counts)
        leave_for(resp, "/parked", notice="parked-stayed" if stayed else "parked-retried")

    async def _retry(self, name: str, request: pb.RetryParkedRequest) -> tuple[int, int]:
        """Returns the numbers of events that were handled again, and of those that took effect."""
        retried = mended = 0
        ends_at = monotonic_seconds() + SEVERAL_SECONDS / len(self.deps.parked)
        while monotonic_seconds() < ends_at:
            allow(REQUEST_SECONDS)
            answer = await self.deps.parked[name].RetryParked(request)
            retried, mended = retried + answer.retried, mended + answer.mended
            if not answer.more:
                return retried, mended
            request = pb.RetryParkedRequest(after_event_id=answer.last_event_id)
        return retried + 1, mended  # others wait still

    def _require(self, service: str) -> None:
        if service not in self.deps.parked:
            raise not_found("NOT_FOUND", "There is no such event")


def _cells(service: str, event: pb.ParkedEvent) -> Sequence[str]:
    return (
        *(service, event.event_id, event.claimed_event_id, event.subject, event.invoice_id),
        *(iso(event.parked_at), iso(event.failed_at), str(event.attempts), event.error, event.request_id),
    )


ROLES: Final = {"withdrawals": "treasury", "webhooks": "desk"}
"""The role whose work the events of a service are (parked.proto)."""
