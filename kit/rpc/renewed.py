"""A channel that is replaced while it is used. It is replaced when its credentials have changed, because a client of
gRPC in Python can't change them (grpc/grpc#41779), and when it has had no answer for seconds.

The second case is for names. A channel that can't resolve its peer's name tries again after one second, then after
growing pauses of up to two minutes, which can't be shortened; a new channel tries at once. In a cluster a name is gone
while no pod of a service is ready.
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import grpc
from grpc import aio

from kit.base.clock import monotonic_seconds

# Longer than any call, so calls that began on a replaced channel can end.
REPLACED_CLOSES_SECONDS: Final = 60.0
# Longer than a restart of the peer takes: gRPC itself tries to reconnect every second.
SILENT_SECONDS: Final = 5.0

C = TypeVar("C")  # a channel of either kind


class Renewed(Generic[C]):
    """Stands for the channel that is in use now.

    open     makes a new channel
    retire   closes a replaced channel once its calls have ended
    version  the credentials; when they change, a new channel is opened
    """

    def __init__(
        self, open: Callable[[], C], retire: Callable[[C], None], version: Callable[[], object] = lambda: None
    ) -> None:
        self._open = open
        self._retire = retire
        self._version = version
        self._replacing = threading.Lock()
        self._opened_with = version()
        self._answered_seconds = monotonic_seconds()
        self._channel = open()

    def current(self) -> C:
        if self._version() is not self._opened_with:
            with self._replacing:
                if self._version() is not self._opened_with:
                    self._replace()
        return self._channel

    def answered(self) -> None:
        """Records that the peer has answered."""
        self._answered_seconds = monotonic_seconds()

    def unreachable(self) -> None:
        """Records that a call could not reach the peer; replaces the channel after `SILENT_SECONDS` without an
        answer.
        """
        with self._replacing:
            if monotonic_seconds() - self._answered_seconds > SILENT_SECONDS:
                self._replace()

    def _replace(self) -> None:
        self._opened_with = self._version()
        replaced, self._channel = self._channel, self._open()
        self._answered_seconds = monotonic_seconds()
        self._retire(replaced)

    def call(self, make: Callable[[C], Any]) -> Call:
        return Call(self, make)


class Call:
    """One method of the channel that is in use."""

    def __init__(self, channels: Renewed[Any], make: Callable[[Any], Any]) -> None:
        self._channels = channels
        self._make = make
        channel = channels.current()
        self._made = (channel, make(channel))  # one attribute, so that threads see both or neither

    def current(self) -> Any:
        """Returns gRPC's callable of the method."""
        channel, made = self._channels.current(), self._made
        if made[0] is not channel:
            made = self._made = (channel, self._make(channel))
        return made[1]


def close_later(channel: grpc.Channel) -> None:
    timer = threading.Timer(REPLACED_CLOSES_SECONDS, channel.close)
    timer.daemon = True
    timer.start()


_closing: Final[set[asyncio.Task[None]]] = set()  # the loop holds tasks weakly


def close_later_in_the_loop(channel: aio.Channel) -> None:
    task = asyncio.get_running_loop().create_task(channel.close(REPLACED_CLOSES_SECONDS))
    _closing.add(task)
    task.add_done_callback(_closing.discard)
