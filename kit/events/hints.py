"""Receives hints over core NATS: messages that may be lost, late or repeated (docs/glossary.md#hint).

Each worker process has one connection, on the worker's own loop (kit.events.bus, which services use, is for threads).
NATS may be away at any time: then no hints are received, everything else goes on, and hints resume once it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

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
        self._listening: list[_Listening] = []
        self._stays: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

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

    def on_hint(self, subject: str, listener: Listener) -> Callable[[], None]:
        """Calls `listener(subject, data)` in this loop for every hint on `subject` (NATS wildcards work).

        The listener should only set a signal. Returns a function that ends the subscription, which a listener for one
        request must call.
        """
        listening = _Listening(subject, listener)
        self._listening.append(listening)
        if self.connected:
            self._start(self._subscribe(listening))

        def stop() -> None:
            if listening in self._listening:
                self._listening.remove(listening)
                self._start(self._unsubscribe(listening))

        return stop

    def _start(self, step: Any) -> None:
        task = asyncio.get_running_loop().create_task(step)
        self._tasks.add(task)  # the loop holds tasks weakly
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("hint_step_failed", exc_info=task.exception())

    async def _subscribe(self, listening: _Listening) -> None:
        with suppress(*NATS_ERRORS):
            listening.subscription = await self._client.subscribe(
                listening.subject, cb=callback_of(listening.listener)
            )
            if listening not in self._listening:  # it was stopped meanwhile
                await listening.subscription.unsubscribe()

    async def _unsubscribe(self, listening: _Listening) -> None:
        if listening.subscription is not None:
            with suppress(*NATS_ERRORS):
                await listening.subscription.unsubscribe()

    async def _stay_connected(self) -> None:
        """Connects again whenever nats-py gives up; until then nats-py itself reconnects and keeps subscriptions."""
        while True:
            over = asyncio.Event()
            try:
                await self._connect(over)
                _log.info("hints_connected")
                for listening in list(self._listening):
                    await self._subscribe(listening)
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
            """Counts a refusal; it comes at every attempt to reconnect, and the loss is already logged."""
            count_refusal(error)

        self._client = Client(ca=self._ca)
        await self._client.connect(
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
