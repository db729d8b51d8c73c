"""The one place that builds the service from its parts."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from kit.audit.decisions import Known
from kit.base.clock import Clock, SystemClock
from kit.base.seals import Seals
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.bus.stream import OwnStream
from kit.events.outbox import Announced
from kit.events.proof import Verifier
from kit.events.signing import Signer
from kit.work.recent import Recent
from kit.work.set_aside import SetAside
from services.invoices.clients import CATALOG_CHANGED, CatalogClient, IdentityClient, Storefronts
from services.invoices.config import InvoicesSettings
from services.invoices.events import CONSUMERS
from services.invoices.store.decisions import LINK, REQUISITE
from services.invoices.store.requisites import Use

USES_KEPT = timedelta(seconds=3)
"""A page of requisites, or each thousand rows of their file, would else count all deals of the day."""
HINT_SECONDS = 0.1
"""The least time between two reactions to hints of a changed catalog: each one loads all of it."""


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation and worker.

    announced  the facts that this process committed to the outbox
    set_aside  the invoices that the timers failed at
    uses       the use of all requisites today, which calls share
    verifier   knows the facts that this service has signed, also with its earlier keys
    seals      proves the terms of a deal before it is credited
    decided_requisites, decided_links  the accounts and links that this process has compared with their acts
    """

    settings: InvoicesSettings
    clock: Clock
    db: Database
    bus: Bus
    catalog: CatalogClient
    identity: IdentityClient
    storefronts: Storefronts
    announced: Announced
    set_aside: SetAside[UUID]
    uses: Recent[Use]
    signer: Signer
    verifier: Verifier
    seals: Seals
    decided_requisites: Known
    decided_links: Known


def wire(settings: InvoicesSettings, *, clock: Clock | None = None) -> Deps:
    """Opens no connection; the process starts the bus."""
    stream = OwnStream(replicas=settings.nats_replicas, consumers=CONSUMERS)
    bus = Bus(settings.nats_url, name=settings.service, ca=settings.nats_ca, stream=stream)
    catalog = CatalogClient(settings.catalog_address, identity=settings.identity)
    identity = IdentityClient(settings.identity_address, identity=settings.identity)
    storefronts = Storefronts(identity, catalog)

    def catalog_changed(_subject: str, _data: bytes) -> None:
        catalog.changed.set()
        storefronts.close_all()

    bus.on_hint(CATALOG_CHANGED, catalog_changed, every_seconds=HINT_SECONDS)
    clock, signer = clock or SystemClock(), Signer(settings.fact_signing_key)
    db = Database(
        settings.database_url,
        name=settings.service,
        pool_size=settings.connections,
        seals=settings.seals,
    )
    return Deps(
        settings=settings,
        clock=clock,
        db=db,
        bus=bus,
        catalog=catalog,
        identity=identity,
        storefronts=storefronts,
        announced=Announced(),
        set_aside=SetAside(),
        uses=Recent(USES_KEPT, clock),
        signer=signer,
        verifier=Verifier((signer.public_key, *settings.fact_public_keys)),
        seals=settings.seals,
        decided_requisites=Known(db, REQUISITE),
        decided_links=Known(db, LINK),
    )
