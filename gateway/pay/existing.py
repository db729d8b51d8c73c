"""The question whether payments exist, asked for all that wait at a time.

A worker asks it before the first request for a payment that is new to it. Few such questions are under way, so that
guesses take little from others (`gateway.walls.strangers`). While each was about one payment, a busy machine answered
ten a second, and after an outage hundreds of customers come at once.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from itertools import islice
from typing import TYPE_CHECKING, Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.rpc import deadline
from kit.rpc.errors import Refused, not_found, too_late

if TYPE_CHECKING:
    from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceAsyncStub

CALLS: Final = 2
PAYMENTS_OF_CALL: Final = 32
CALL_SECONDS: Final = 4.0


class ExistingPayments:
    """The questions of one worker. Use it inside the running loop."""

    def __init__(self, checkout: CheckoutServiceAsyncStub) -> None:
        self._checkout = checkout
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def require(self, invoice_id: str) -> None:
        """Raises INVOICE_NOT_FOUND for a payment that does not exist, and what the call raised."""
        answer = self._waiting.get(invoice_id)
        if answer is None:
            answer = self._waiting[invoice_id] = asyncio.get_running_loop().create_future()
            self._ask()
        try:
            async with asyncio.timeout(deadline.remaining_seconds()):
                # Shielded: others may wait for the same answer.
                exists = await asyncio.shield(answer)
        except TimeoutError:
            raise too_late() from None
        if not exists:
            raise not_found("INVOICE_NOT_FOUND", "Invoice not found")

    def _ask(self) -> None:
        """Sends a call for those who wait, unless as many as may be are under way."""
        if not self._waiting or len(self._calls) >= CALLS:
            return
        asked = {id: self._waiting.pop(id) for id in list(islice(self._waiting, PAYMENTS_OF_CALL))}
        # In the context of the newest of them: it names the request in logs.
        call = asyncio.get_running_loop().create_task(self._answer(asked), context=copy_context())
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
