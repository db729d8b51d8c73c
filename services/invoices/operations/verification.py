"""For `fiatgate verify`: the credits and announcements that are due, and the repair of missing ones.

An invoice is announced again with the fact that the service signed when the invoice finished. An attacker who has only
the database can finish an invoice there, but cannot sign.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2
from kit.audit import acts
from kit.base import actors
from kit.db.database import retry_conflicts
from kit.events.outbox import announce
from kit.events.proof import Unproven
from kit.observe.log import get_logger
from kit.rpc import values
from services.invoices import events
from services.invoices.models import Deal, Invoice, Outbox
from services.invoices.store import invoices
from services.invoices.store.facts import (
    KeptFact,
    are_kept,
    finished_before_facts_were_kept,
    keep_fact,
    kept_facts,
)
from services.invoices.wiring import Deps

_log = get_logger()

NO_FACT = "it has no signed fact"
OTHER_FACT = "it is not what its signed fact says"


@dataclass(frozen=True)
class Finished:
    """A terminal invoice with its deal. `unproven` is the reason why it is not proven; empty when it is."""

    invoice: Invoice
    deal: Deal | None
    unproven: str


@dataclass(frozen=True)
class Reannounced:
    announced: Sequence[UUID]
    refused: Sequence[UUID]


def list_finished_invoices(deps: Deps, *, after_invoice_id: str, limit: int) -> Sequence[Finished]:
    """Returns finished invoices with their deals, in the order of the invoices' ids, after the given one."""
    after = values.uuid("after_invoice_id", after_invoice_id) if after_invoice_id else None
    with deps.db.transaction() as tx:
        page = invoices.finished_invoices_after(tx, after, values.rows(limit, default=values.LIST_MOST_ROWS))
        return _judged(deps, tx, page)


@retry_conflicts
def reannounce_invoices(deps: Deps, *, invoice_ids: Sequence[str], accept: bool = False) -> Reannounced:
    """Announces those of these invoices that are finished again, with the same content; refuses those that are not
    proven.

    With `accept` an operator takes responsibility for their present content: unproven ones are signed as they are.

    Each announcement has a new id of the outbox: with the old one JetStream (for two minutes) and every inbox (for
    days) would drop it, and it would repair nothing. Consumers have one effect per invoice, however often they get it.
    """
    values.at_most("invoice_ids", invoice_ids, values.LIST_MOST_ROWS)
    wanted = [values.uuid("invoice_ids", each) for each in invoice_ids]
    with deps.db.transaction() as tx:
        finished = _judged(deps, tx, invoices.finished_invoices(tx, wanted))
        taken = [each for each in finished if accept or not each.unproven]
        for each in taken:
            if each.unproven:
                _accept(deps, tx, each)
            announce(
                tx,
                Outbox,
                subject=events.FINISHED,
                message=events.invoice_finished(each.invoice, each.deal),
                at=deps.clock.now(),
                announced=deps.announced,
                signer=deps.signer,
            )
            id, merchant = f"invoice:{each.invoice.id}", each.invoice.merchant_id
            acts.record(tx, "invoice.reannounce", id, merchant_id=merchant, note=each.unproven)
    refused = [each.invoice.id for each in finished if each not in taken]
    return Reannounced([each.invoice.id for each in taken], refused)


def _judged(deps: Deps, tx: Session, finished: Sequence[tuple[Invoice, Deal | None]]) -> list[Finished]:
    if not are_kept(tx):
        return [Finished(invoice, deal, "") for invoice, deal in finished]
    kept = kept_facts(tx, [invoice.event_id for invoice, _ in finished if invoice.event_id])
    unproven = {}
    for invoice, deal in finished:
        facts = _signed(deps, invoice, kept.get(invoice.event_id, ()) if invoice.event_id else ())
        if events.invoice_finished(invoice, deal) not in facts:
            unproven[invoice.id] = OTHER_FACT if facts else NO_FACT
    for old in finished_before_facts_were_kept(tx, [id for id, why in unproven.items() if why == NO_FACT]):
        del unproven[old]
    return [Finished(invoice, deal, unproven.get(invoice.id, "")) for invoice, deal in finished]


def _signed(deps: Deps, invoice: Invoice, kept: Sequence[KeptFact]) -> list[invoices_pb2.InvoiceFinished]:
    """Returns those of the `kept` facts that the service signed."""
    signed = []
    for fact in kept:
        assert invoice.event_id is not None
        try:
            deps.verifier.check(events.FINISHED, invoice.event_id, fact.payload, fact.signature)
        except Unproven:
            continue
        signed.append(invoices_pb2.InvoiceFinished.FromString(fact.payload))
    return signed


def _accept(deps: Deps, tx: Session, finished: Finished) -> None:
    invoice = finished.invoice
    assert invoice.event_id is not None
    payload = events.invoice_finished(invoice, finished.deal).SerializeToString()
    signature = deps.signer.sign(subject=events.FINISHED, event_id=invoice.event_id, payload=payload)
    keep_fact(tx, invoice.event_id, KeptFact(signature, payload))
    _log.warning(
        "unproven_invoice_accepted",
        invoice_id=str(invoice.id),
        unproven=finished.unproven,
        actor=str(actors.current()),
    )
