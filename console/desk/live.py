"""Live updates: the numbers of the queues, sent to each open page whenever one changes.

One watcher per worker calls the services, and only while a page listens: fifty open desks cost no more calls than one.
The calls name no person, and the numbers concern none.
"""

from __future__ import annotations  # the asynchronous stubs exist for the type checker only

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import falcon
import falcon.asgi
from falcon.asgi import SSEvent
from google.protobuf.timestamp_pb2 import Timestamp

from console.exchange import Request
from console.page import Page
from console.ui.pages import LIVE
from console.ui.values import iso_milliseconds
from console.wiring import Deps
from fiatgate.queues.v1 import queues_pb2 as pb
from kit.rpc.errors import Refused
from kit.web.walls import turned_away
from kit.work.tasks import supervised

if TYPE_CHECKING:
    from fiatgate.queues.v1.queues_pb2_grpc import QueuesServiceAsyncStub

PAID_SECONDS: Final = 0.5
"""Pause between two calls of invoices: a customer's "I have paid" is on an open desk within a second."""
OTHERS_SECONDS: Final = 3.0
AWAY_SECONDS: Final = 5.0
CALL_SECONDS: Final = 2.0
STREAMS_MAX: Final = 500
STREAMS_PER_PERSON: Final = 20
# Proxies end a connection that is silent for a minute; a ping also detects a browser that vanished.
PING_SECONDS: Final = 20.0
# The session is checked when the browser connects anew.
STREAM_SECONDS: Final = 30.0
RECONNECT_MILLISECONDS: Final = 2000


class Watcher:
    """The queues of all services, as they were at the last call of each."""

    def __init__(self, queues: Mapping[str, QueuesServiceAsyncStub]) -> None:
        self._queues = queues
        self._found: dict[str, Sequence[pb.Queue] | None] = {}
        self._bells: set[asyncio.Event] = set()
        self._tasks: list[asyncio.Task[None]] = []

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """Gives an event that is set at each change. The first listener starts the calls, the last one ends them."""
        bell = asyncio.Event()
        bell.set()
        self._bells.add(bell)
        if not self._tasks:
            # In a context of their own: that of the request has the token of its person.
            self._tasks = [
                Context().run(supervised, "queues", partial(self._watch, name)) for name in self._queues
            ]
        try:
            yield bell
        finally:
            self._bells.discard(bell)
            if not self._bells:
                for task in self._tasks:
                    task.cancel()
                self._tasks, self._found = [], {}

    async def _watch(self, name: str) -> None:
        while True:
            pause_seconds = PAID_SECONDS if name == "invoices" else OTHERS_SECONDS
            found: Sequence[pb.Queue] | None = None
            try:
                found = (
                    await self._queues[name].ListQueues(pb.ListQueuesRequest(), timeout=CALL_SECONDS)
                ).queues
            except Refused:
                pause_seconds = AWAY_SECONDS
            if name not in self._found or self._found[name] != found:
                self._found[name] = found
                for bell in self._bells:
                    bell.set()
            await asyncio.sleep(pause_seconds)

    @property
    def is_complete(self) -> bool:
        """Whether each service has answered or failed since the first listener came."""
        return len(self._found) == len(self._queues)

    def state(self) -> dict[str, Any]:
        """Returns the queues by name, those of one name in several services as one, and the services that are away."""
        queues: dict[str, dict[str, Any]] = {}
        for each in merged(found for found in self._found.values() if found is not None):
            queues[each.name] = {
                "count": each.count,
                "oldest": iso_milliseconds(each.oldest_at) if each.HasField("oldest_at") else None,
                "newest": iso_milliseconds(each.newest_at) if each.HasField("newest_at") else None,
            }
        return {"queues": queues, "away": [name for name, found in self._found.items() if found is None]}


def merged(found: Iterable[Sequence[pb.Queue]]) -> list[pb.Queue]:
    """Returns the queues of several services, those of one name as one."""
    queues: dict[str, pb.Queue] = {}
    for each in (queue for of_one in found for queue in of_one):
        into = queues.setdefault(each.name, pb.Queue(name=each.name))
        into.count += each.count
        if each.HasField("oldest_at") and not _is_before(into, "oldest_at", each.oldest_at):
            into.oldest_at.CopyFrom(each.oldest_at)
        if each.HasField("newest_at") and not _is_before(each, "newest_at", into.newest_at):
            into.newest_at.CopyFrom(each.newest_at)
    return list(queues.values())


def _is_before(queue: pb.Queue, field: Literal["oldest_at", "newest_at"], at: Timestamp) -> bool:
    """Returns whether the queue has this time, and it is before the other one."""
    return queue.HasField(field) and getattr(queue, field).ToNanoseconds() < at.ToNanoseconds()


class LivePage(Page):
    """/live: the state of the queues at once and after each change, as server-sent events."""

    link: ClassVar[str] = LIVE
    is_unattended: ClassVar[bool] = True

    def __init__(self, deps: Deps) -> None:
        super().__init__(deps)
        self._watcher = Watcher(deps.queues)
        self._open: Counter[str] = Counter()  # by person

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Answers with 204, after which a browser does not connect again by itself, when too many streams are open: the
        page then shows the numbers of its load.
        """
        person = req.exchange.signed_in.person.person_id
        of_one = self._open[person] >= STREAMS_PER_PERSON
        if of_one or self._open.total() >= STREAMS_MAX:
            turned_away.count("streams", "of one person" if of_one else "")
            resp.status = falcon.HTTP_204
            return
        resp.set_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        resp.sse = self._stream(person, req.exchange.stopping)

    async def _stream(self, person: str, stopping: asyncio.Event) -> AsyncGenerator[SSEvent | None, None]:
        self._open[person] += 1
        stopped = asyncio.create_task(stopping.wait())
        try:
            with self._watcher.listening() as bell, suppress(TimeoutError):
                stopped.add_done_callback(lambda _: bell.set())
                yield SSEvent(comment="listening", retry=RECONNECT_MILLISECONDS)
                async with asyncio.timeout(STREAM_SECONDS):
                    while not stopping.is_set():
                        yield await self._next(bell)
        finally:
            stopped.cancel()
            self._open[person] -= 1
            if not self._open[person]:
                del self._open[person]

    async def _next(self, bell: asyncio.Event) -> SSEvent | None:
        """Returns the state after a change; None, which becomes a comment, when nothing changes for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PING_SECONDS):
                await bell.wait()
        if not bell.is_set():
            return None
        bell.clear()
        if not self._watcher.is_complete:
            return None
        return SSEvent(event="queues", data=json.dumps(self._watcher.state()).encode())
