"""Calls that a page can do without, and one act on several things."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fiatgate.invoices.v1 import invoices_pb2
from kit.base.clock import monotonic_seconds
from kit.rpc.deadline import within
from kit.rpc.errors import Refused, is_away, not_found
from kit.web.exchange import REQUEST_SECONDS, allow

if TYPE_CHECKING:
    from fiatgate.invoices.v1.invoices_pb2_grpc import DealDeskServiceAsyncStub

CASE_MAX_DIGITS: Final = 18
OPTIONAL_SECONDS: Final = 2.0
"""The time of a call that a page can do without: the rest of the request's is for the calls that it needs."""
INVOICES_PER_CALL: Final = 1000
CALLS_AT_ONCE: Final = 4
SEVERAL_SECONDS: Final = 40.0
"""The time in which the calls of one form begin. They carry the token of one request, which counts for a minute."""

T = TypeVar("T")


async def or_none(call: Awaitable[T], *, seconds: float = OPTIONAL_SECONDS) -> T | None:
    """Returns the answer; None while the service is away. Raises its other refusals."""
    try:
        with within(seconds):
            return await call
    except Refused as refused:
        if not is_away(refused):
            raise
        return None


async def invoices_of(
    deals: DealDeskServiceAsyncStub, ids: Iterable[str], *, merchant_id: str
) -> Mapping[str, invoices_pb2.Invoice] | None:
    """Returns the invoices by their ids, for rows of services that have the ids only; None while invoices is away.

    merchant_id  empty: of all merchants
    """
    wanted, found = sorted({*ids} - {""}), dict[str, invoices_pb2.Invoice]()
    for first in range(0, len(wanted), INVOICES_PER_CALL):
        some = wanted[first : first + INVOICES_PER_CALL]
        request = invoices_pb2.ListAllInvoicesRequest(
            merchant_id=merchant_id, invoice_ids=some, limit=len(some)
        )
        answer = await or_none(deals.ListAllInvoices(request))
        if answer is None:
            return None
        found |= {each.invoice_id: each for each in answer.invoices}
    return found


async def answers_of(calls: Mapping[str, Awaitable[T]]) -> tuple[Sequence[T], Sequence[str]]:
    """Waits for a call to each service, by its name. Returns the answers, and the services that are away. Raises their
    other refusals.
    """
    outcomes = await asyncio.gather(*calls.values(), return_exceptions=True)
    answers: list[T] = []
    away: list[str] = []
    for name, outcome in zip(calls, outcomes, strict=True):
        if isinstance(outcome, Refused) and is_away(outcome):
            away.append(name)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            answers.append(outcome)
    return answers, away


@dataclass(frozen=True)
class Outcome:
    """The result of an act on one thing.

    answer   of the service, when the act is done
    refused  why it is not done. Without answer and refusal it was not tried.
    """

    id: str
    answer: Any = None
    refused: Refused | None = None

    @property
    def is_done(self) -> bool:
        return self.answer is not None

    @property
    def sentence(self) -> str:
        """Why the act is not done."""
        if self.refused is None:
            return "Not tried, because a call before it failed or took too long."
        return f"{self.refused.message.rstrip('.')}."


async def each_of(
    ids: Sequence[str],
    call: Callable[[str], Awaitable[Any]],
    *,
    beside: Collection[str],
    at_once: int = CALLS_AT_ONCE,
    seconds: float = REQUEST_SECONDS,
) -> list[Outcome]:
    """Returns the outcome of the call for each id, in their order.

    beside   refusals of one thing, beside which the others go on. After another refusal no further call begins.
    seconds  for each call
    The first call is made alone, and raises a refusal that would be that of every call: a missing role is recorded
    once, and the question for a second factor comes before anything is done.
    """
    found = {id: Outcome(id) for id in ids}
    ends_at = monotonic_seconds() + SEVERAL_SECONDS
    waiting = iter(ids)
    goes_on = True

    async def one(id: str) -> None:
        nonlocal goes_on
        allow(seconds)
        try:
            found[id] = Outcome(id, await call(id))
        except Refused as refused:
            goes_on = goes_on and refused.reason in beside
            found[id] = Outcome(id, refused=refused)

    async def several() -> None:
        for id in waiting:
            if not goes_on or monotonic_seconds() > ends_at:
                return
            await one(id)

    if (first := next(waiting, None)) is not None:
        await one(first)
        refused = found[first].refused
        if refused is not None and refused.reason not in beside and not is_away(refused):
            raise refused
    await asyncio.gather(*(several() for _ in range(at_once)))
    allow(REQUEST_SECONDS)
    return list(found.values())


def case_number(text: str) -> int:
    """Returns the number of a case. Raises CASE_NOT_FOUND for other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= CASE_MAX_DIGITS):
        raise not_found("CASE_NOT_FOUND", "No case has this number")
    return int(text)
