"""Payments that are new to a worker: one call asks for all that wait, and those that it has made are known."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import requests
from grpc import aio

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub
from gateway.pay.existing import CALLS, PAYMENTS_OF_CALL, ExistingPayments
from kit.base.ids import new_id
from kit.rpc.client import aio_channel
from kit.rpc.errors import Refused
from tests.gateway.desk import HTTP_SECONDS, Shop
from tests.gateway.strangers import watched_gateway
from tests.support.stack import Stack


class Counted:
    """A channel to a service, with the number of calls that it has passed on."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.calls = 0

    def unary_unary(self, method: str, *args: Any, **options: Any) -> Any:
        call = self._inner.unary_unary(method, *args, **options)

        def counted(*request: Any, **given: Any) -> Any:
            self.calls += 1
            return call(*request, **given)

        return counted


def test_payments_that_are_asked_for_at_a_time_share_calls_and_each_gets_its_own_answer(
    shop: Shop, stack: Stack
) -> None:
    here = [shop.create()["invoice_id"] for _ in range(3)]
    guessed = [str(new_id()) for _ in range(PAYMENTS_OF_CALL + 8)]

    async def story() -> None:
        async with aio_channel(stack.addresses["invoices"], name="invoices") as opened:
            counted = Counted(opened)
            existing = ExistingPayments(CheckoutServiceStub(cast("aio.Channel", counted)))
            asked = [*guessed, *here, here[0]]
            answers = await asyncio.gather(
                *(existing.require(each) for each in asked), return_exceptions=True
            )
            assert answers[len(guessed) :] == [None] * 4
            refused = [str(each.reason) for each in answers if isinstance(each, Refused)]
            assert refused == ["INVOICE_NOT_FOUND"] * len(guessed)
            assert counted.calls == CALLS + 2, "the first ones ask alone, the others wait for them together"
            await existing.require(here[0])
            assert counted.calls == CALLS + 3, "nothing is cached here"

    asyncio.run(story())


def test_a_call_runs_in_the_context_of_a_request_that_waits_for_it(shop: Shop, stack: Stack) -> None:
    """Also one that begins when a call before it ends: its log lines have the id of one of its own requests."""
    asking: ContextVar[str] = ContextVar("asking")
    named: list[tuple[str, list[str]]] = []

    class Noting(Counted):
        def unary_unary(self, method: str, *args: Any, **options: Any) -> Any:
            call = super().unary_unary(method, *args, **options)

            def noting(request: pb.FindMissingInvoicesRequest, **given: Any) -> Any:
                named.append((asking.get(), list(request.invoice_ids)))
                return call(request, **given)

            return noting

    async def story() -> None:
        async with aio_channel(stack.addresses["invoices"], name="invoices") as opened:
            existing = ExistingPayments(CheckoutServiceStub(cast("aio.Channel", Noting(opened))))

            async def ask(invoice_id: str) -> None:
                asking.set(invoice_id)
                await existing.require(invoice_id)

            asked = [str(new_id()) for _ in range(CALLS + 3)]
            await asyncio.gather(*map(ask, asked), return_exceptions=True)
        assert [len(ids) for _, ids in named] == [1] * CALLS + [3]
        assert [by for by, _ in named] == [ids[-1] for _, ids in named]

    asyncio.run(story())


def test_when_the_call_fails_everyone_who_waits_is_told() -> None:
    async def story() -> None:
        async with aio_channel("127.0.0.1:1", name="invoices") as opened:
            existing = ExistingPayments(CheckoutServiceStub(opened))
            asked = [existing.require(str(new_id())) for _ in range(5)]
            for answer in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(answer, Refused)
                assert answer.reason == "DB_UNAVAILABLE"

    asyncio.run(story())


@pytest.mark.parametrize(("made_here", "status"), [(True, 200), (False, 429)])
def test_a_worker_knows_the_payments_that_it_has_made(
    shop: Shop, stack: Stack, tmp_path: Path, made_here: bool, status: int
) -> None:
    """So their customers wait for no question about them, and need no token of their network."""
    with watched_gateway(stack, tmp_path, FIATGATE_STRANGERS_PER_MINUTE="1") as gateway:
        created = (replace(shop, url=gateway.url) if made_here else shop).create()
        guess = requests.get(f"{gateway.url}/pay/{new_id()}", timeout=HTTP_SECONDS)
        page = requests.get(f"{gateway.url}/pay/{created['invoice_id']}", timeout=HTTP_SECONDS)
    assert (guess.status_code, page.status_code) == (404, status)
