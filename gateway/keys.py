"""Asks merchants who is behind a key, once for all requests that wait for the same answer.

Nothing is remembered: a request is only ever answered by a call that began after the request came, so a deactivated key
is refused from the very next request on. But while one call about a key is under way, the requests that come meanwhile
wait together for the next one. A busy merchant then costs a few calls and not one per request; a quiet one no wait.
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
    """Who waits for one call, and in whose context (deadline, request id) it is made: the first one's."""

    answer: asyncio.Future[AuthenticateResponse]
    context: Context


class Keys:
    """One per worker. `_next` holds, of each key with a call under way, the question after that; None without one."""

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
        # Shielded: one client that hangs up takes the answer from no other.
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
            answer.exception()  # seen: all who waited may have hung up
            if not isinstance(error, Exception):
                raise
        finally:
            following = self._next.pop(api_key)
            if following is not None:
                self._ask(api_key, following)
