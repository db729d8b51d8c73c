"""The one place that builds a surface from its parts."""

from __future__ import annotations  # the asynchronous stubs exist for the type checker only

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grpc_health.v1 import health_pb2_grpc

from console.config import ConsoleSettings
from console.surfaces import Surface, surface_of
from console.ui.pages import Link, Pages
from fiatgate.accounts.v1.accounts_pb2_grpc import OwnAccountServiceStub, PeopleServiceStub, SignInServiceStub
from fiatgate.audit.v1.audit_pb2_grpc import AuditServiceStub
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.rpc.client import aio_channel

if TYPE_CHECKING:
    from fiatgate.accounts.v1.accounts_pb2_grpc import (
        OwnAccountServiceAsyncStub,
        PeopleServiceAsyncStub,
        SignInServiceAsyncStub,
    )
    from fiatgate.audit.v1.audit_pb2_grpc import AuditServiceAsyncStub
    from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceAsyncStub


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The collaborators of the resources.

    own     the person's own factors and sessions
    merchants  the names of merchants, for their members
    audit   the acts of each service, by its name
    health  the standard health service of the services without which no page works
    """

    settings: ConsoleSettings
    surface: Surface
    pages: Pages
    signin: SignInServiceAsyncStub
    own: OwnAccountServiceAsyncStub
    people: PeopleServiceAsyncStub
    merchants: MerchantsServiceAsyncStub
    audit: Mapping[str, AuditServiceAsyncStub]
    health: Mapping[str, Any]


def addresses(settings: ConsoleSettings) -> Mapping[str, str]:
    """Returns the address of each service, by name."""
    return {
        "accounts": settings.accounts_address,
        "merchants": settings.merchants_address,
        "catalog": settings.catalog_address,
        "invoices": settings.invoices_address,
        "withdrawals": settings.withdrawals_address,
        "webhooks": settings.webhooks_address,
    }


@asynccontextmanager
async def wired(settings: ConsoleSettings, navigation: Sequence[Link]) -> AsyncIterator[Deps]:
    """Builds the collaborators of one worker process inside its running loop: channels don't survive a fork."""
    async with AsyncExitStack() as opened:
        channels = {
            name: await opened.enter_async_context(
                aio_channel(address, name=name, identity=settings.identity)
            )
            for name, address in addresses(settings).items()
        }
        surface = surface_of(settings)
        accounts = channels["accounts"]
        yield Deps(
            settings=settings,
            surface=surface,
            pages=Pages(surface, origin=settings.url, navigation=navigation),
            signin=SignInServiceStub(accounts),
            own=OwnAccountServiceStub(accounts),
            people=PeopleServiceStub(accounts),
            merchants=MerchantsServiceStub(channels["merchants"]),
            audit={name: AuditServiceStub(channel) for name, channel in channels.items()},
            health={"accounts": health_pb2_grpc.HealthStub(accounts)},
        )
