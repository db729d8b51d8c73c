"""The webhooks of a merchant in their order, with a long poll (docs/api.md#follow-events)."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import falcon
import falcon.asgi

from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from gateway.api.webhooks import EVENT_STATUS_NAMES
from gateway.exchange import Request
from gateway.json.query import Query
from gateway.json.replies import time_text
from gateway.wiring import Deps
from kit.base.clock import monotonic_seconds
from kit.rpc.errors import exhausted
from kit.web.exchange import REQUEST_SECONDS, allow
from kit.web.replies import reply
from kit.web.walls import turned_away
from kit.web.walls.places import Bound, NoPlace, Places

WAIT_MOST_SECONDS: Final = 25
"""Proxies end a request that is silent for half a minute."""
LOOK_SECONDS: Final = 1.0
"""Between two looks of a request that waits."""
EVENTS_MOST: Final = 100
LAST_ID: Final = 2**63 - 1
REQUESTS: Final = Bound(running=500, waiting=0)
REQUESTS_OF_ONE: Final = Bound(running=5, waiting=0)

turned_away.begin("events")


class EventResource:
    """GET /api/v1/events."""

    def __init__(self, deps: Deps) -> None:
        self._webhooks = deps.webhooks
        self._places = Places(REQUESTS, of_one=REQUESTS_OF_ONE, seconds=0)

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        query = Query(req.query_string)
        after = query.integer("after", default=0, least=0, most=LAST_ID)
        limit = query.integer("limit", default=EVENTS_MOST, least=1, most=EVENTS_MOST)
        wait = query.integer("wait", default=0, least=0, most=WAIT_MOST_SECONDS)
        query.check()
        wanted = pb.FollowEventsRequest(
            merchant_id=req.exchange.caller.merchant_id, after_event_id=after, limit=limit
        )
        try:
            async with self._places.place(wanted.merchant_id):
                events = await self._events(wanted, wait, req.exchange.stopping)
        except NoPlace:
            turned_away.count("events")
            raise exhausted(
                "RATE_LIMITED", "Too many requests for events at the same time", retry_after_seconds="1"
            ) from None
        last = events[-1].event.event_id if events else after
        data = [followed_to_json(each) for each in events]
        reply(resp, {"successful": True, "data": data, "next_after": str(last)})

    async def _events(
        self, wanted: pb.FollowEventsRequest, wait_seconds: int, stopping: asyncio.Event
    ) -> Sequence[pb.FollowedEvent]:
        """Returns the events, as soon as there are any; none when the time is over or the worker is about to stop."""
        ends_seconds = monotonic_seconds() + wait_seconds
        while True:
            allow(REQUEST_SECONDS)
            events = (await self._webhooks.FollowEvents(wanted)).events
            left_seconds = ends_seconds - monotonic_seconds()
            if events or left_seconds <= 0 or stopping.is_set():
                return events
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), min(LOOK_SECONDS, left_seconds))


def followed_to_json(followed: pb.FollowedEvent) -> dict[str, Any]:
    """Returns `FollowedEvent` of openapi.yaml."""
    event = followed.event
    return {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "invoice_id": event.invoice_id,
        "status": EVENT_STATUS_NAMES[event.status],
        "created_at": time_text(event.created_at),
        "headers": dict(followed.headers),
        "body": event.request_payload.decode(errors="replace"),
    }
