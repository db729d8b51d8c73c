"""Payments that are new to a worker: one call asks for all that wait, and those that it has made are known."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast

import pytest
from grpc import aio

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub
from gateway.pay.existing import CALLS, PAYMENTS_OF_CALL, ExistingPayments
from kit.base.ids import new_id
from kit.rpc.client import aio_channel
from kit.rpc.errors import Refused
from tests.gateway.conftest import LIMIT
from tests.gateway.desk import Shop
from tests.gateway.strangers import Watched, answers, head, networks
from tests.support.stack import Stack

pytestmark = pytest.mark.anyio


ASKING: ContextVar[str] = ContextVar("asking")


class Noted:
    """A channel to invoices, which notes for each call the request in whose context it runs, and what it asks for."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.calls: list[tuple[str, list[str]]] = []

    def unary_unary(self, method: str, *args: Any, **options: Any) -> Any:
        call = self._inner.unary_unary(method, *args, **options)

        def noted(request: pb.FindMissingInvoicesRequest, **given: Any) -> Any:
            self.calls.append((ASKING.get(""), list(request.invoice_ids)))
            return call(request, **given)

        return noted


@asynccontextmanager
async def payments_of(stack: Stack) -> AsyncIterator[tuple[ExistingPayments, Noted]]:
    async with aio_channel(stack.addresses["invoices"], name="invoices") as opened:
        noted = Noted(opened)
        yield ExistingPayments(CheckoutServiceStub(cast("aio.Channel", noted))), noted


async def test_payments_that_are_asked_for_at_a_time_share_calls_and_each_gets_its_own_answer(
    shop: Shop, stack: Stack
) -> None:
    here = [shop.create()["invoice_id"] for _ in range(3)]
    guessed = [str(new_id()) for _ in range(PAYMENTS_OF_CALL + 8)]
    async with payments_of(stack) as (existing, noted):
        asked = [*guessed, *here, here[0]]
        answers = await asyncio.gather(*map(existing.require, asked), return_exceptions=True)
        assert answers[len(guessed) :] == [None] * 4
        refused = [str(each.reason) for each in answers if isinstance(each, Refused)]
        assert refused == ["INVOICE_NOT_FOUND"] * len(guessed)
        assert len(noted.calls) == CALLS + 2, "the first ones ask alone, the others wait for them together"
        await existing.require(here[0])
        assert len(noted.calls) == CALLS + 3, "nothing is cached here"


async def test_a_call_runs_in_the_context_of_a_request_that_waits_for_it(stack: Stack) -> None:
    """Also one that begins when a call before it ends: its log lines have the id of one of its own requests."""
    async with payments_of(stack) as (existing, noted):

        async def ask(invoice_id: str) -> None:
            ASKING.set(invoice_id)
            await existing.require(invoice_id)

        asked = [str(new_id()) for _ in range(CALLS + 3)]
        await asyncio.gather(*map(ask, asked), return_exceptions=True)
    assert [len(ids) for _, ids in noted.calls] == [1] * CALLS + [3]
    assert [by for by, _ in noted.calls] == [ids[-1] for _, ids in noted.calls]


async def test_when_the_call_fails_everyone_who_waits_is_told() -> None:
    async with aio_channel("127.0.0.1:1", name="invoices") as opened:
        existing = ExistingPayments(CheckoutServiceStub(opened))
        asked = [existing.require(str(new_id())) for _ in range(5)]
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(answer, Refused)
            assert answer.reason == "DB_UNAVAILABLE"


async def test_a_worker_knows_the_payments_that_it_has_made(shop: Shop, strict: Watched) -> None:
    """So their customers wait for no question about them, and need no token of their network."""
    made_here, made_elsewhere = (
        head("GET", f"/pay/{where.create()['invoice_id']}") for where in (replace(shop, url=strict.url), shop)
    )
    guesses = [head("GET", f"/pay/{new_id()}") for _ in range(2 * LIMIT)]
    (network,) = networks(9)[8:]
    assert (await answers(strict, network, [*guesses, made_elsewhere])).keys() == {404, 429}
    assert await answers(strict, network, [made_here]) == {200: 1}
