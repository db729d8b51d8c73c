"""The question whether payments exist, asked for all that wait at a time.

A worker asks it before the first request for a payment that is new to it. Few such questions are under way, so that
guesses take little from others (`kit.web.walls.strangers`). While each was about one payment, a busy machine answered
ten a second, and after an outage hundreds of customers come at once.
"""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.rpc import deadline
from kit.rpc.errors import Refused, not_found, too_late

if TYPE_CHECKING:
    from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceAsyncStub

CALLS: Final = 2
PAYMENTS_OF_CALL: Final = 32
CALL_SECONDS: Final = 4.0


class _Waiting(NamedTuple):
    """The answer for one payment, and the context of the first request that asked for it."""

    answer: asyncio.Future[bool]
    context: Context


class ExistingPayments:
    """The questions of one worker. Use it inside the running loop."""

    def __init__(self, checkout: CheckoutServiceAsyncStub) -> None:
        self._checkout = checkout
        self._waiting: dict[str, _Waiting] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def require(self, invoice_id: str) -> None:
        """Raises INVOICE_NOT_FOUND for a payment that does not exist, and what the call raised."""
        waiting = self._waiting.get(invoice_id)
        if waiting is None:
            future = asyncio.get_running_loop().create_future()
            waiting = self._waiting[invoice_id] = _Waiting(future, copy_context())
            self._ask()
        try:
            async with asyncio.timeout(deadline.remaining_seconds()):
                # Shielded: others may wait for the same answer.
                exists = await asyncio.shield(waiting.answer)
        except TimeoutError:
            raise too_late() from None
        if not exists:
            raise not_found("INVOICE_NOT_FOUND", "Invoice not found")

    def _ask(self) -> None:
        """Sends a call for those who wait, unless as many as may be are under way."""
        if not self._waiting or len(self._calls) >= CALLS:
            return
        waiting = {id: self._waiting.pop(id) for id in list(islice(self._waiting, PAYMENTS_OF_CALL))}
        asked = {id: each.answer for id, each in waiting.items()}
        # In the context of the newest of them, which names the request in logs: one that `_ended` begins would
        # otherwise run in that of a request of the call before.
        newest = next(reversed(waiting.values()))
        call = asyncio.get_running_loop().create_task(self._answer(asked), context=newest.context)
        self._calls.add(call)
        call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._ask()

    async def _answer(self, asked: dict[str, asyncio.Future[bool]]) -> None:
        deadline.expires_at.set(None)  # the call is that of other requests as well
        request = pb.FindMissingInvoicesRequest(invoice_ids=asked)
        try:
            found = await self._checkout.FindMissingInvoices(request, timeout=CALL_SECONDS)
        except BaseException as error:
            for answer in asked.values():
                _fail(answer, error)
            if not isinstance(error, Refused):
                raise
        else:
            missing = set(found.missing_ids)
            for id, answer in asked.items():
                answer.set_result(id not in missing)


def _fail(answer: asyncio.Future[bool], error: BaseException) -> None:
    """Ends a wait. Each gets a refusal of its own: a raised one keeps the frames of its request in memory."""
    if isinstance(error, Refused):
        error = Refused(error.reason, error.message, code=error.code, metadata=error.metadata)
    answer.set_exception(error)
    answer.exception()  # marks it as retrieved: its client may have hung up
