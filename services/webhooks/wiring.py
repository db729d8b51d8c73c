"""The one place that builds the service from its parts."""

from dataclasses import dataclass
from typing import Final

from kit.base.clock import Clock, SystemClock
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.proof import Verifier
from kit.rpc.turns import Share, Turns
from services.webhooks.clients import IdentityClient
from services.webhooks.config import WebhooksSettings
from services.webhooks.delivery.courier import Courier
from services.webhooks.delivery.fresh import Fresh
from services.webhooks.delivery.record import Recorder
from services.webhooks.delivery.seals import EventSeals
from services.webhooks.delivery.wake import Wake

RESENDS: Final = Share(working=2, waiting=6, wait_seconds=2)
"""Resends of one merchant that wait for their receivers at the same time, and those that wait for their turn."""


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation and worker.

    verifier      knows the facts that invoices has signed
    seals         seals the events that this service makes, and proves them before they are sent
    courier       sends one attempt
    recorder      writes the result of an attempt
    wake          is set when something may be due; the engine of this process waits for it, if there is one
    fresh         passes new events to the engine of this process, if there is one
    resend_turns  a merchant whose receivers are slow delays no other merchant's resends
    """

    settings: WebhooksSettings
    db: Database
    bus: Bus
    verifier: Verifier
    clock: Clock
    identity: IdentityClient
    seals: EventSeals
    courier: Courier
    recorder: Recorder
    wake: Wake
    fresh: Fresh
    resend_turns: Turns


def wire(settings: WebhooksSettings, *, clock: Clock | None = None) -> Deps:
    clock = clock or SystemClock()
    db = Database(
        settings.database_url,
        name=settings.service,
        pool_size=settings.connections,
        seals=settings.seals,
    )
    seals = EventSeals(settings.seals)
    return Deps(
        settings=settings,
        db=db,
        bus=Bus(settings.nats_url, name=settings.service, ca=settings.nats_ca),
        verifier=Verifier(settings.fact_public_keys),
        clock=clock,
        identity=IdentityClient(settings.identity_address, identity=settings.identity),
        seals=seals,
        courier=Courier(
            clock=clock,
            seals=seals,
            timeout_seconds=settings.webhook_timeout_seconds,
            allow_private=settings.webhook_allow_private,
        ),
        recorder=Recorder(db, clock, settings.webhook_retry_delays),
        wake=Wake(),
        fresh=Fresh(clock, lease_seconds=settings.lease_seconds),
        resend_turns=Turns("resends", RESENDS, threads=settings.threads),
    )
