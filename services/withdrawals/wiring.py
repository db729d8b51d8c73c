"""The one place that builds the service from its parts."""

from dataclasses import dataclass

from kit.base.clock import Clock, SystemClock
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.proof import Verifier
from services.withdrawals.clients import IdentityClient, InvoicesClient
from services.withdrawals.config import WithdrawalsSettings


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation and worker.

    verifier  knows the facts that invoices has signed
    identity  None where no people are served
    invoices  None where there are no corrections and no refunds
    """

    settings: WithdrawalsSettings
    db: Database
    clock: Clock
    bus: Bus
    verifier: Verifier
    identity: IdentityClient | None
    invoices: InvoicesClient | None


def wire(settings: WithdrawalsSettings, *, clock: Clock | None = None) -> Deps:
    """Opens no connection; the process starts the bus."""
    clock = clock or SystemClock()
    return Deps(
        settings=settings,
        db=Database(
            settings.database_url,
            name=settings.service,
            pool_size=settings.connections,
            seals=settings.seals,
        ),
        clock=clock,
        bus=Bus(settings.nats_url, name=settings.service, ca=settings.nats_ca),
        verifier=Verifier(settings.fact_public_keys),
        identity=IdentityClient(settings.identity_address, identity=settings.identity)
        if settings.identity_address
        else None,
        invoices=InvoicesClient(settings.invoices_address, identity=settings.identity)
        if settings.invoices_address
        else None,
    )
