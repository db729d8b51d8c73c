"""The one place that builds the service from its parts."""

from dataclasses import dataclass

from kit.audit.decisions import Known
from kit.base.clock import Clock, SystemClock
from kit.base.seals import Seals
from kit.db.database import Database
from kit.events.bus.connection import Bus
from services.catalog.clients import RateSources
from services.catalog.config import CatalogSettings
from services.catalog.store.decisions import CURRENCY, METHOD


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation and worker.

    sources  the configured rate sources
    seals    seals rates, and proves them before a deal locks one
    decided_currencies, decided_methods  the values that this process has compared with their acts
    """

    settings: CatalogSettings
    db: Database
    clock: Clock
    bus: Bus
    sources: RateSources
    seals: Seals
    decided_currencies: Known
    decided_methods: Known


def wire(settings: CatalogSettings, *, clock: Clock | None = None) -> Deps:
    db = Database(
        settings.database_url,
        name=settings.service,
        pool_size=settings.connections,
        seals=settings.seals,
    )
    return Deps(
        settings=settings,
        db=db,
        clock=clock or SystemClock(),
        bus=Bus(settings.nats_url, name=settings.service, ca=settings.nats_ca),
        sources=RateSources(settings.rate_sources, allow_private=settings.rate_allow_private),
        seals=settings.seals,
        decided_currencies=Known(db, CURRENCY),
        decided_methods=Known(db, METHOD),
    )
