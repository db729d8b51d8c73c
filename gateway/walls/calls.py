"""How many calls of each kind a worker has under way at a time: no kind can use up what another one needs.

The services divide their threads among kinds as well (`SLOTS` in their rpc.py); here a burst waits its turn before it
is sent, in place of being refused there. A call that finds no turn within WAIT_SECONDS, or too many waiting, is
refused with DB_UNAVAILABLE. A turn is held for one call only, so no kind waits for another.
"""

from __future__ import annotations  # the asynchronous channel is generic in its stubs only

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from gateway.walls import turned_away
from kit.errors import database_unavailable

if TYPE_CHECKING:
    from grpc import aio

WAIT_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Kind:
    """name     in metrics
    methods  as `InvoicesService/CreateInvoice`
    running  calls under way at a time; with four workers about what the service takes before it refuses
    waiting  calls that may wait for their turn; more are refused at once
    """

    name: str
    methods: frozenset[str]
    running: int
    waiting: int


KINDS: Final = (
    Kind("keys", frozenset({"MerchantsService/Authenticate"}), running=40, waiting=400),
    Kind("orders", frozenset({"InvoicesService/CreateInvoice"}), running=64, waiting=400),
    Kind(
        "reads",
        frozenset(
            {
                "InvoicesService/GetInvoice",
                "WithdrawalsService/GetWithdrawal",
                "CatalogService/ListMerchantCurrencies",
                "CatalogService/ListMethodOffers",
            }
        ),
        running=32,
        waiting=200,
    ),
    Kind(
        "lists",
        frozenset(
            {
                "InvoicesService/ListInvoices",
                "WithdrawalsService/ListWithdrawals",
                "WebhooksService/ListInvoiceEvents",
            }
        ),
        running=8,
        waiting=64,
    ),
    Kind("resends", frozenset({"WebhooksService/ResendLatest"}), running=16, waiting=64),
    Kind("pages", frozenset({"CheckoutService/GetCheckout"}), running=16, waiting=200),
    Kind("choices", frozenset({"CheckoutService/SelectPaymentMethod"}), running=16, waiting=100),
    Kind(
        "steps",
        frozenset({"CheckoutService/MarkPaid", "CheckoutService/CancelCheckout"}),
        running=32,
        waiting=200,
    ),
    # Each holds its picture three times over while it is sent.
    Kind(
        "pictures",
        frozenset({"CheckoutService/OpenCustomerAppeal", "CheckoutService/OpenCase"}),
        running=4,
        waiting=16,
    ),
    Kind("logos", frozenset({"MerchantsService/GetLogo", "CatalogService/GetLogo"}), running=4, waiting=64),
)


class Turns:
    """The calls of one kind in one worker."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._free = asyncio.Semaphore(kind.running)
        self._waiting = 0

    async def take(self) -> None:
        """Waits for a turn. Raises DB_UNAVAILABLE."""
        if not self._free.locked():
            await self._free.acquire()
            return
        if self._waiting >= self._kind.waiting:
            self._refuse()
        self._waiting += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            self._refuse()
        finally:
            self._waiting -= 1

    def give_back(self) -> None:
        self._free.release()

    def _refuse(self) -> NoReturn:
        turned_away.count("calls", self._kind.name)
        raise database_unavailable()


def all_turns() -> Mapping[str, Turns]:
    """By method, for one worker."""
    return {method: turns for kind in KINDS for turns in [Turns(kind)] for method in kind.methods}


def in_turn(channel: aio.Channel, turns: Mapping[str, Turns]) -> aio.Channel:
    """The channel, for stubs whose calls wait for their turn. A call of no kind raises LookupError."""
    return cast("aio.Channel", _Channel(channel, turns))


class _Channel:
    """As much of a channel as a stub of unary methods asks for."""

    def __init__(self, inner: aio.Channel, turns: Mapping[str, Turns]) -> None:
        self._inner = inner
        self._turns = turns

    def unary_unary(self, method: str, *args: Any, **options: Any) -> _Call:
        turns = self._turns.get(method.rpartition(".")[2])
        return _Call(method, self._inner.unary_unary(method, *args, **options), turns)


class _Call:
    def __init__(self, method: str, inner: Any, turns: Turns | None) -> None:
        self._method = method
        self._inner = inner
        self._turns = turns

    async def __call__(self, request: Any, **options: Any) -> Any:
        if self._turns is None:
            raise LookupError(f"{self._method} is of no kind in gateway/walls/calls.py")
        await self._turns.take()
        try:
            return await self._inner(request, **options)
        finally:
            self._turns.give_back()
