"""Receives hints over core NATS: messages that may be lost, late or repeated (docs/glossary.md#hint).

Each worker process has one connection, on the worker's own loop (kit.events.bus, which services use, is for threads).
NATS may be away at any time: then no hints are received, everything else goes on, and hints resume once it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self

from nats.aio.subscription import Subscription

from kit.events.bus.client import Client
from kit.events.bus.listening import Listener, callback_of
from kit.events.bus.messages import NATS_ERRORS, count_refusal, error_text
from kit.observe.log import get_logger
from kit.work.tasks import supervised

RECONNECT_SECONDS: Final = 1
CLOSE_SECONDS: Final = 2.0

_log = get_logger()


@dataclass(eq=False)
class _Listening:
    """A listener and its subject; `subscription` is None until NATS was first reached."""

    subject: str
    listener: Listener
    subscription: Subscription | None = None


class Hints:
    """Use as an asynchronous context manager inside the worker's loop; entering does not wait for NATS."""

    def __init__(self, url: str, *, name: str, ca: str = "") -> None:
        self._url = url
        self._ca = ca
        self._name = name
        self._client = Client(ca=self._ca)
        self._entries: list[_Listening] = []
        self._stays: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._stays = supervised("hints", self._stay_connected)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._stays:
            self._stays.cancel()
        with suppress(*NATS_ERRORS):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._client.close()

    @property
    def connected(self) -> bool:
        """Whether hints are received at this moment."""
        return bool(self._client.is_connected)

    @asynccontextmanager
    async def listening(self, subject: str, listener: Listener) -> AsyncIterator[None]:
        """Calls `listener(subject, data)` in this loop for every hint on `subject` (NATS wildcards work) until the
        block ends. The listener should only set a signal.
        """
        entry = _Listening(subject, listener)
        self._entries.append(entry)
        try:
            if self.connected:
                await self._subscribe(entry)
            yield
        finally:
            self._entries.remove(entry)
            await _unsubscribe(entry)

    async def _subscribe(self, entry: _Listening) -> None:
        with suppress(*NATS_ERRORS):
            entry.subscription = await self._client.subscribe(entry.subject, cb=callback_of(entry.listener))
            if entry not in self._entries:  # it was stopped meanwhile
                await _unsubscribe(entry)

    async def _stay_connected(self) -> None:
        """Connects again whenever nats-py gives up; until then nats-py itself reconnects and keeps subscriptions."""
        while True:
            over = asyncio.Event()
            try:
                await self._connect(over)
                _log.info("hints_connected")
                for entry in list(self._entries):
                    await self._subscribe(entry)
                await over.wait()
            except NATS_ERRORS as error:
                _log.warning("hints_lost", error=error_text(error))
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _connect(self, over: asyncio.Event) -> None:
        async def closed() -> None:
            over.set()

        async def disconnected() -> None:
            _log.warning("hints_lost")

        async def reconnected() -> None:
            _log.info("hints_connected")

        async def quiet(error: Exception) -> None:
            """Counts a refusal by NATS and logs nothing: nats-py reports it at every attempt to reconnect, and the loss
            is already in the log.
            """
            count_refusal(error)

        self._client = Client(ca=self._ca)
        await self._client.connect_to(
            self._url,
            name=self._name,
            max_reconnect_attempts=-1,  # the default gives up after 60, silently
            reconnect_time_wait=RECONNECT_SECONDS,
            connect_timeout=2,
            ping_interval=10,
            max_outstanding_pings=2,
            error_cb=quiet,
            disconnected_cb=disconnected,
            reconnected_cb=reconnected,
            closed_cb=closed,
        )


async def _unsubscribe(entry: _Listening) -> None:
    if entry.subscription is not None:
        with suppress(*NATS_ERRORS):
            await entry.subscription.unsubscribe()
