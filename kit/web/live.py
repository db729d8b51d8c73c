"""The stream of events behind an open page: it sends an event without content whenever the shown item has changed.

The page then loads its state again. A lost hint costs a few seconds: the page also checks by itself.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Final

from falcon.asgi import SSEvent

from kit.events.hints import Hints
from kit.web.walls import turned_away

STREAMS_MAX: Final = 2000
STREAMS_PER_ITEM: Final = 8
# Per client's network. Pages beyond it check by themselves, so people who share a network lose nothing.
STREAMS_PER_NETWORK: Final = 250
# Proxies end a connection that is silent for a minute; a ping also detects a client that vanished.
PING_SECONDS: Final = 20.0
# After this time NATS has the subscription: one more check then finds earlier changes.
SETTLE_SECONDS: Final = 1.0
STREAM_SECONDS: Final = 600.0
RECONNECT_MILLISECONDS: Final = 3000


class Live:
    """The streams of one worker.

    item  the kind of things that pages show, in metrics
    """

    def __init__(self, hints: Hints, *, item: str) -> None:
        self._hints = hints
        self._item = item
        self._open: Counter[str] = Counter()  # by item
        self._networks: Counter[str] = Counter()

    def has_room_for(self, item: str, network: str) -> bool:
        """Returns whether one more page may have a stream; a page without one checks again every few seconds."""
        full = (
            (self._item, self._open[item] >= STREAMS_PER_ITEM),
            ("network", self._networks[network] >= STREAMS_PER_NETWORK),
            ("", self._open.total() >= STREAMS_MAX),
        )
        of = next((of for of, is_full in full if is_full), None)
        if of is not None:
            turned_away.count("streams", of and f"of one {of}")
        return of is None

    async def stream(
        self,
        item: str,
        network: str,
        *,
        subject: str,
        has_changed: bool,
        check: Callable[[], Awaitable[bool]],
        stopping: asyncio.Event,
    ) -> AsyncGenerator[SSEvent | None, None]:
        """Sends an event at every change until the client goes, the worker stops, or it is time to connect anew.

        subject      of the hints that it has changed
        has_changed  send one at once: it changed before the client connected
        check        whether it has changed by now; called once, for changes before the subscription
        """
        bell = asyncio.Event()
        if has_changed:
            bell.set()
        self._open[item] += 1
        self._networks[network] += 1
        stopped = asyncio.create_task(stopping.wait())
        stopped.add_done_callback(lambda _: bell.set())
        try:
            async with self._hints.listening(subject, lambda *_: bell.set()):
                yield SSEvent(comment="listening", retry=RECONNECT_MILLISECONDS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(STREAM_SECONDS):
                        yield await _next(bell, stopping, SETTLE_SECONDS)
                        if await check():
                            bell.set()
                        while not stopping.is_set():
                            yield await _next(bell, stopping, PING_SECONDS)
        finally:
            stopped.cancel()
            for counts, name in ((self._open, item), (self._networks, network)):
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]


async def _next(bell: asyncio.Event, stopping: asyncio.Event, seconds: float) -> SSEvent | None:
    """Returns an event when the item changes; None, which becomes a comment, when nothing happens for a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await bell.wait()
    if stopping.is_set() or not bell.is_set():
        return None
    bell.clear()
    return SSEvent(event="changed", text="look")
