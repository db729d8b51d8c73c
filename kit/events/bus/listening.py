"""Listeners of hints. They run on the loop's thread."""

import asyncio
from collections.abc import Awaitable, Callable

from nats.aio.msg import Msg

from kit.events.bus.messages import is_too_large
from kit.observe.log import get_logger

_log = get_logger()

Listener = Callable[[str, bytes], None]


class Spaced:
    """A listener that is called at most once per `every_seconds`, on the loop's thread."""

    def __init__(self, listener: Listener, every_seconds: float) -> None:
        self._listener = listener
        self._every_seconds = every_seconds
        self._next_at_seconds = 0.0
        self._last: tuple[str, bytes] | None = None

    def __call__(self, subject: str, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next_at_seconds:
            self._next_at_seconds = loop.time() + self._every_seconds
            self._last = None
            self._listener(subject, data)
            return
        if self._last is None:
            loop.call_at(self._next_at_seconds, self._call_with_the_last)
        self._last = (subject, data)

    def _call_with_the_last(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            self._next_at_seconds = asyncio.get_running_loop().time() + self._every_seconds
            try:
                self._listener(*last)
            except Exception:  # noqa: BLE001  a hint that fails must not stop those after it
                _log.exception("hint_failed", subject=last[0])


def callback_of(listener: Listener) -> Callable[[Msg], Awaitable[None]]:
    """Returns the callback for nats-py, which drops hints that are too large. A listener that raises still receives
    the next hint.
    """

    async def received(message: Msg) -> None:
        if is_too_large(message.data):
            return
        try:
            listener(message.subject, message.data)
        except Exception:  # noqa: BLE001  a hint that fails must not stop those after it
            _log.exception("hint_failed", subject=message.subject)

    return received
