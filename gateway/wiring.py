"""The one place that builds the gateway from its parts."""

from __future__ import annotations  # the asynchronous stubs exist for the type checker only

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grpc_health.v1 import health_pb2_grpc

from fiatgate.bank.v1.feed_pb2_grpc import FeedServiceStub
from fiatgate.catalog.v1.catalog_pb2_grpc import CatalogServiceStub
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub, InvoicesServiceStub
from fiatgate.invoices.v1.simulation_pb2_grpc import SimulationServiceStub
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from fiatgate.webhooks.v1.webhooks_pb2_grpc import WebhooksServiceStub
from fiatgate.withdrawals.v1.corrections_pb2_grpc import CorrectionsServiceStub
from fiatgate.withdrawals.v1.refunds_pb2_grpc import RefundsServiceStub
from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub
from gateway.access.limits import RateLimit
from gateway.config import GatewaySettings
from gateway.json.problems import Json
from gateway.links import Links
from gateway.walls.calls import bounded, calls_by_method
from gateway.walls.strangers import strangers_of
from kit.base.clock import SystemClock
from kit.events.hints import Hints
from kit.rpc.client import aio_channel
from kit.web.walls.strangers import Strangers

if TYPE_CHECKING:
    from fiatgate.bank.v1.feed_pb2_grpc import FeedServiceAsyncStub
    from fiatgate.catalog.v1.catalog_pb2_grpc import CatalogServiceAsyncStub
    from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceAsyncStub, InvoicesServiceAsyncStub
    from fiatgate.invoices.v1.simulation_pb2_grpc import SimulationServiceAsyncStub
    from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceAsyncStub
    from fiatgate.webhooks.v1.webhooks_pb2_grpc import WebhooksServiceAsyncStub
    from fiatgate.withdrawals.v1.corrections_pb2_grpc import CorrectionsServiceAsyncStub
    from fiatgate.withdrawals.v1.refunds_pb2_grpc import RefundsServiceAsyncStub
    from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceAsyncStub


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The collaborators of the resources.

    health      one stub of the standard health service per service that payments need
    hints       messages of other processes, which may be lost
    rate_limit  of requests per key; None when there is no limit
    strangers   bounds questions about keys and payments that do not exist, and new colours
    """

    settings: GatewaySettings
    links: Links
    merchants: MerchantsServiceAsyncStub
    catalog: CatalogServiceAsyncStub
    invoices: InvoicesServiceAsyncStub
    checkout: CheckoutServiceAsyncStub
    simulation: SimulationServiceAsyncStub
    withdrawals: WithdrawalsServiceAsyncStub
    corrections: CorrectionsServiceAsyncStub
    refunds: RefundsServiceAsyncStub
    webhooks: WebhooksServiceAsyncStub
    feed: FeedServiceAsyncStub
    health: Mapping[str, Any]
    hints: Hints
    rate_limit: RateLimit | None
    strangers: Strangers

    def marked(self, answer: Json) -> Json:
        """Returns the answer about an invoice, a withdrawal or a refund, with the mark of test mode."""
        return answer | {"test": True} if self.settings.is_test else answer


def addresses(settings: GatewaySettings) -> Mapping[str, str]:
    """Returns the address of each service that payments need, by name. Without bank the feed alone is away."""
    return {
        "identity": settings.identity_address,
        "catalog": settings.catalog_address,
        "invoices": settings.invoices_address,
        "withdrawals": settings.withdrawals_address,
        "webhooks": settings.webhooks_address,
    }


@asynccontextmanager
async def wired(settings: GatewaySettings) -> AsyncIterator[Deps]:
    """Builds the collaborators of one worker process inside its running loop: channels don't survive a fork."""
    async with AsyncExitStack() as opened:
        channels = {
            name: await opened.enter_async_context(
                aio_channel(address, name=name, identity=settings.identity)
            )
            for name, address in {**addresses(settings), "bank": settings.bank_address}.items()
        }
        calls = calls_by_method()
        called = {name: bounded(channel, calls) for name, channel in channels.items()}
        hints = await opened.enter_async_context(
            Hints(settings.nats_url, name="gateway", ca=settings.nats_ca)
        )
        rate_limit = None
        if settings.rate_limit_per_minute:
            rate_limit = RateLimit(settings.rate_limit_per_minute, clock=SystemClock())
        yield Deps(
            settings=settings,
            links=Links(settings.public_url),
            merchants=MerchantsServiceStub(called["identity"]),
            catalog=CatalogServiceStub(called["catalog"]),
            invoices=InvoicesServiceStub(called["invoices"]),
            checkout=CheckoutServiceStub(called["invoices"]),
            simulation=SimulationServiceStub(called["invoices"]),
            withdrawals=WithdrawalsServiceStub(called["withdrawals"]),
            corrections=CorrectionsServiceStub(called["withdrawals"]),
            refunds=RefundsServiceStub(called["withdrawals"]),
            webhooks=WebhooksServiceStub(called["webhooks"]),
            feed=FeedServiceStub(called["bank"]),
            health={name: health_pb2_grpc.HealthStub(channels[name]) for name in addresses(settings)},
            hints=hints,
            rate_limit=rate_limit,
            strangers=strangers_of(settings.strangers_per_minute),
        )
