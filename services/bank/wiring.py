"""The one place that builds the service from its parts."""

from dataclasses import dataclass

from kit.audit.decisions import Known
from kit.base.clock import Clock, SystemClock
from kit.db.database import Database
from kit.work.worker import Signal
from services.bank.clients import InvoicesClient
from services.bank.config import BankSettings
from services.bank.store.decisions import CONNECTOR


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation and worker.

    invoices  None where nothing is proposed
    arrived   rings in the process that has just kept a file
    keys      of connectors, whose acts were compared
    """

    settings: BankSettings
    db: Database
    clock: Clock
    invoices: InvoicesClient | None
    arrived: Signal
    keys: Known


def wire(settings: BankSettings, *, clock: Clock | None = None) -> Deps:
    """Opens no connection."""
    db = Database(
        settings.database_url, name=settings.service, pool_size=settings.connections, seals=settings.seals
    )
    return Deps(
        settings=settings,
        db=db,
        clock=clock or SystemClock(),
        invoices=InvoicesClient(settings.invoices_address, identity=settings.identity)
        if settings.invoices_address
        else None,
        arrived=Signal(),
        keys=Known(db, CONNECTOR),
    )
