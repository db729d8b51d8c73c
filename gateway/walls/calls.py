"""Bounds on a worker's calls of each kind at a time: no kind can use up the capacity of another.

The services divide their threads among kinds as well (`SLOTS` in their `rpc`). Here a call of a burst waits for a
place before it is sent, so the service does not refuse it. A call that gets no place within the kind's time, or finds
too many waiting, is refused with DB_UNAVAILABLE. A place is held for one call only, so no kind waits for another.

Some kinds have a share per merchant, so that one merchant cannot hold all places, and merchants take turns. A call
beyond the share waits too; a call beyond its merchant's waiting calls is refused with RATE_LIMITED.
"""

from __future__ import annotations  # the asynchronous channel is generic in its stubs only

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from kit.rpc.errors import Refused, database_unavailable, exhausted
from kit.web.walls import turned_away
from kit.web.walls.places import Bound, NoPlace, Places

if TYPE_CHECKING:
    from grpc import aio

# A request that is refused is tried again, and each try costs more than the wait. After an outage all whom it held up
# come within seconds, and are worked off while they wait. So a wait may take nearly all of the request's time.
WAIT_SECONDS: Final = 4.0
CALL_SECONDS: Final = 0.5
"""The time that is left to the call itself. One that would get less is refused: nobody would wait for its answer."""
# The services let a call of the same merchant wait for a few seconds too; the request has five in all.
SHARE_WAIT_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 5


@dataclass(frozen=True)
class Kind:
    """name     in metrics
    methods  as `InvoicesService/CreateInvoice`
    running  calls under way at a time; four workers send no more than the service takes before it refuses
    waiting  calls that may wait for a place; more are refused at once
    seconds  longest wait for a place
    share    the same bounds for one merchant; None: none
    owner    returns the merchant of a request, where there is a share
    """

    name: str
    methods: frozenset[str]
    running: int
    waiting: int
    seconds: float = WAIT_SECONDS
    share: Bound | None = None
    owner: Callable[[Any], str] = attrgetter("merchant_id")


KINDS: Final = (
    Kind("keys", frozenset({"MerchantsService/Authenticate"}), running=40, waiting=400),
    Kind("creates", frozenset({"InvoicesService/CreateInvoice"}), running=64, waiting=400),
    Kind(
        "reads",
        frozenset(
            {
                "InvoicesService/GetInvoice",
                "WithdrawalsService/GetBalance",
                "WithdrawalsService/GetWithdrawal",
            }
        ),
        running=32,
        waiting=200,
    ),
    # Currencies and payment methods: the same for all requests of a merchant, and the largest of the quick answers.
    Kind(
        "offers",
        frozenset({"CatalogService/ListMerchantCurrencies", "CatalogService/ListMethodOffers"}),
        running=16,
        waiting=200,
        share=Bound(running=1, waiting=99),
        owner=attrgetter("merchant.merchant_id"),
    ),
    Kind(
        "lists",
        frozenset(
            {
                "CorrectionsService/ListCorrections",
                "WithdrawalsService/ListAddresses",
                "WithdrawalsService/ListTransfers",
                "InvoicesService/ListInvoices",
                "RefundsService/ListRefunds",
                "WithdrawalsService/ListWithdrawals",
                "WebhooksService/FollowEvents",
                "WebhooksService/ListInvoiceEvents",
            }
        ),
        running=8,
        waiting=64,
        seconds=SHARE_WAIT_SECONDS,
        # Lists of 20 a second wait without a refusal while the first calls of a process take half a second.
        share=Bound(running=2, waiting=14),
    ),
    Kind(
        "resends",
        frozenset({"WebhooksService/ResendLatest"}),
        running=16,
        waiting=64,
        seconds=SHARE_WAIT_SECONDS,
        share=Bound(running=4, waiting=20),
    ),
    Kind(
        "cancels",
        frozenset({"InvoicesService/CancelInvoice"}),
        running=2,
        waiting=64,
        seconds=SHARE_WAIT_SECONDS,
        share=Bound(running=1, waiting=15),
    ),
    # Each is two calls of withdrawals to invoices.
    Kind(
        "refunds",
        frozenset({"RefundsService/RequestRefund"}),
        running=8,
        waiting=64,
        seconds=SHARE_WAIT_SECONDS,
        share=Bound(running=2, waiting=14),
    ),
    Kind(
        "refund pages",
        frozenset({"RefundsService/ListRefundsOfPage", "RefundsService/GiveRefundAccount"}),
        running=8,
        waiting=100,
    ),
    Kind(
        "pages",
        frozenset({"CheckoutService/GetCheckout", "CheckoutService/GetLink"}),
        running=16,
        waiting=200,
    ),
    # As many under way as a worker of the gateway asks, each for all that wait (gateway/pay/existing.py).
    Kind("guesses", frozenset({"CheckoutService/FindMissingInvoices"}), running=2, waiting=2),
    Kind(
        "choices",
        frozenset(
            {"CheckoutService/PayLink", "CheckoutService/SelectPaymentMethod", "SimulationService/Simulate"}
        ),
        running=16,
        waiting=200,
    ),
    Kind(
        "steps",
        frozenset({"CheckoutService/CancelCheckout", "CheckoutService/MarkPaid"}),
        running=30,
        waiting=200,
    ),
    # Each holds its picture three times in memory while it is sent.
    Kind(
        "pictures",
        frozenset({"CheckoutService/OpenCustomerAppeal", "CheckoutService/OpenCase"}),
        running=4,
        waiting=16,
    ),
    # Four workers send no more at a time than bank takes (`SLOTS` of bank).
    Kind(
        "feed",
        frozenset({"FeedService/FindConnector", "FeedService/PostLines", "FeedService/ListPostedLines"}),
        running=4,
        waiting=64,
    ),
    Kind("logos", frozenset({"MerchantsService/GetLogo", "CatalogService/GetLogo"}), running=4, waiting=64),
)


class Calls:
    """The calls of one kind in one worker."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._places = Places(
            Bound(running=kind.running, waiting=kind.waiting),
            of_one=kind.share,
            seconds=kind.seconds,
            kept_seconds=CALL_SECONDS,
        )
        turned_away.begin("calls", kind.name)
        if kind.share:
            turned_away.begin("shares", kind.name)

    async def call(self, request: Any, send: Callable[[], Any]) -> Any:
        """Returns the result of `send`, once there is a place. Raises DB_UNAVAILABLE when the kind is full, and
        RATE_LIMITED when the request's merchant has too many calls of the kind.
        """
        owner = self._kind.owner(request) if self._kind.share else ""
        try:
            async with self._places.place(owner):
                return await send()
        except NoPlace as full:
            raise self._refusal(of_one=full.of_one) from None

    def _refusal(self, *, of_one: bool) -> Refused:
        turned_away.count("shares" if of_one else "calls", self._kind.name)
        if not of_one:
            return database_unavailable()
        return exhausted(
            "RATE_LIMITED",
            "Too many requests of this kind are under way for the merchant",
            retry_after_seconds=str(RETRY_SECONDS),
        )


def calls_by_method() -> Mapping[str, Calls]:
    """Returns the bounds of one worker, by method."""
    return {method: calls for kind in KINDS for calls in [Calls(kind)] for method in kind.methods}


def bounded(channel: aio.Channel, calls: Mapping[str, Calls]) -> aio.Channel:
    """Returns the channel, for stubs whose calls wait for a place. A call without a kind raises LookupError."""
    return cast("aio.Channel", _Channel(channel, calls))


class _Channel:
    """The part of a channel that a stub of unary methods uses."""

    def __init__(self, inner: aio.Channel, calls: Mapping[str, Calls]) -> None:
        self._inner = inner
        self._calls = calls

    def unary_unary(self, method: str, *args: Any, **options: Any) -> _Call:
        calls = self._calls.get(method.rpartition(".")[2])
        return _Call(method, self._inner.unary_unary(method, *args, **options), calls)


class _Call:
    def __init__(self, method: str, inner: Any, calls: Calls | None) -> None:
        self._method = method
        self._inner = inner
        self._calls = calls

    async def __call__(self, request: Any, **options: Any) -> Any:
        if self._calls is None:
            raise LookupError(f"{self._method} is of no kind in gateway/walls/calls.py")
        return await self._calls.call(request, lambda: self._inner(request, **options))
