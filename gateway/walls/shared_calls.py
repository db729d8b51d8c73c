"""One call for all requests that wait for the same answer.

Nothing is cached: a request is only answered by a call that began after the request came. While one call for a key is
under way, the requests that come meanwhile wait together for the next call. So a busy merchant costs a few calls, not
one per request; a quiet one never waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar

from kit.rpc import deadline
from kit.rpc.errors import too_late

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass
class _Waiting(Generic[T]):
    """One call with its waiting requests, and the context (deadline, request id) of the last one, in which it is made:
    that one has the most time left.
    """

    answer: asyncio.Future[T]
    context: Context
    call: Callable[[], Awaitable[T]]


class SharedCalls(Generic[K, T]):
    """One per worker and kind of answer. `_next` has the keys with a call under way, each with the call that follows
    it, or None.
    """

    def __init__(self, *, pause_seconds: float = 0) -> None:
        """pause_seconds  before a call that follows another: for answers that are costly to make and to send"""
        self._pause_seconds = pause_seconds
        self._next: dict[K, _Waiting[T] | None] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def answer(self, key: K, call: Callable[[], Awaitable[T]]) -> T:
        """Returns the result of a `call` for this key, of this request or of another. Raises what the call raised, and
        DB_UNAVAILABLE when the time of this request ends before.
        """
        waiting = self._next.get(key)
        if waiting is None:
            waiting = _Waiting(asyncio.get_running_loop().create_future(), copy_context(), call)
            if key in self._next:
                self._next[key] = waiting
            else:
                self._start(key, waiting)
        else:
            waiting.context = copy_context()
        try:
            async with asyncio.timeout(deadline.remaining_seconds()):
                # Shielded: a client that hangs up must not cancel the call for the others.
                return await asyncio.shield(waiting.answer)
        except TimeoutError:
            raise too_late() from None

    def _start(self, key: K, waiting: _Waiting[T]) -> None:
        self._next[key] = None
        task = asyncio.get_running_loop().create_task(self._make(key, waiting), context=waiting.context)
        self._calls.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._calls.discard)

    async def _make(self, key: K, waiting: _Waiting[T]) -> None:
        answer = waiting.answer
        try:
            answer.set_result(await waiting.call())
        except BaseException as error:
            answer.set_exception(error)
            answer.exception()  # marks it as retrieved: all waiting clients may have hung up
            if not isinstance(error, Exception):
                raise
        finally:
            following = self._next[key]
            if following is None:
                del self._next[key]
            else:  # requests that come during the pause share the call
                asyncio.get_running_loop().call_later(self._pause_seconds, self._start, key, following)
