"""Authenticates keys with one call for all requests that wait for the same answer.

Nothing is cached: a request is only answered by a call that began after the request came, so a deactivated key is
refused from the next request on. While one call about a key is under way, the requests that come meanwhile wait
together for the next call. So a busy merchant costs a few calls, not one per request; a quiet one never waits.
"""

import asyncio
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fiatgate.merchants.v1.merchants_pb2 import AuthenticateRequest, AuthenticateResponse

if TYPE_CHECKING:  # exists for type checkers only
    from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceAsyncStub


@dataclass
class _Question:
    """One call, its waiting requests, and the context (deadline, request id) of the first one, in which it is made."""

    answer: asyncio.Future[AuthenticateResponse]
    context: Context


class Keys:
    """One per worker. `_next` has the keys with a call under way, each with the question that follows it, or None."""

    def __init__(self, merchants: "MerchantsServiceAsyncStub") -> None:
        self._merchants = merchants
        self._next: dict[str, _Question | None] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def authenticate(self, api_key: str) -> AuthenticateResponse:
        """Raises `Refused` with the reasons of MerchantsService.Authenticate."""
        waiting = self._next.get(api_key)
        if waiting is None:
            answer = asyncio.get_running_loop().create_future()
            waiting = _Question(answer, copy_context())
            if api_key in self._next:
                self._next[api_key] = waiting
            else:
                self._ask(api_key, waiting)
        # Shielded: a client that hangs up must not cancel the call for the others.
        return await asyncio.shield(waiting.answer)

    def _ask(self, api_key: str, question: _Question) -> None:
        self._next[api_key] = None
        call = asyncio.get_running_loop().create_task(self._call(api_key, question), context=question.context)
        self._calls.add(call)  # the loop itself holds tasks weakly
        call.add_done_callback(self._calls.discard)

    async def _call(self, api_key: str, question: _Question) -> None:
        answer = question.answer
        try:
            answer.set_result(await self._merchants.Authenticate(AuthenticateRequest(api_key=api_key)))
        except BaseException as error:
            answer.set_exception(error)
            answer.exception()  # marks it as retrieved: all waiting clients may have hung up
            if not isinstance(error, Exception):
                raise
        finally:
            following = self._next.pop(api_key)
            if following is not None:
                self._ask(api_key, following)
