"""The one place where the service is put together."""

from dataclasses import dataclass

from kit.bus import Bus
from kit.clock import Clock, SystemClock
from kit.db import Database
from services.withdrawals.config import WithdrawalsSettings


@dataclass(frozen=True, kw_only=True)
class Deps:
    """What every operation gets first."""

    settings: WithdrawalsSettings
    db: Database
    clock: Clock
    bus: Bus


def wire(settings: WithdrawalsSettings, *, clock: Clock | None = None) -> Deps:
    """Connects nowhere; the process starts the bus."""
    return Deps(
        settings=settings,
        db=Database(settings.database_url, name=settings.service, pool_size=settings.connections),
        clock=clock or SystemClock(),
        bus=Bus(settings.nats_url, name=settings.service, ca=settings.nats_ca),
    )
