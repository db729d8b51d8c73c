"""The one place that builds the service from its parts."""

from dataclasses import dataclass

from kit.base.clock import Clock, SystemClock
from kit.db.database import Database
from kit.events.bus.connection import Bus
from services.catalog.clients import RateSources
from services.catalog.config import CatalogSettings


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation and worker.

    sources  the configured rate sources
    """

    settings: CatalogSettings
    db: Database
    clock: Clock
    bus: Bus
    sources: RateSources


def wire(settings: CatalogSettings, *, clock: Clock | None = None) -> Deps:
    return Deps(
        settings=settings,
        db=Database(settings.database_url, name=settings.service, pool_size=settings.connections),
        clock=clock or SystemClock(),
        bus=Bus(settings.nats_url, name=settings.service, ca=settings.nats_ca),
        sources=RateSources(settings.rate_sources, allow_private=settings.rate_allow_private),
    )
