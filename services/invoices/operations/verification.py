"""For `fiatgate verify`: the credits and announcements that are due, and the repair of missing ones.

An invoice is announced again with the fact that the service signed when the invoice finished. An attacker who has only
the database can finish an invoice there, but cannot sign.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2
from kit.audit import acts
from kit.audit.approvals import Approval, Terms
from kit.base import actors
from kit.db.database import retry_conflicts
from kit.db.reading import each_by_itself
from kit.events.outbox import announce
from kit.events.proof import Unproven
from kit.observe.log import get_logger
from kit.rpc import approvals, values
from services.invoices import errors, events
from services.invoices.models import Deal, Invoice, Outbox
from services.invoices.store import invoices
from services.invoices.store.facts import (
    KeptFact,
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
    """The invoices that were announced and refused, and the requests to accept some."""

    announced: Sequence[UUID]
    refused: Sequence[UUID]
    requested: Sequence[Approval] = ()


@dataclass(frozen=True)
class FinishedPage:
    """Finished invoices in the order of their ids, and those that could not be read, with the error."""

    finished: Sequence[Finished]
    unreadable: Sequence[str]
    last_id: UUID | None
    more: bool


def list_finished_invoices(deps: Deps, *, after_invoice_id: str, limit: int) -> FinishedPage:
    """Returns the finished invoices after the given one, with their deals."""
    after = values.uuid("after_invoice_id", after_invoice_id) if after_invoice_id else None
    most, unreadable = values.rows(limit, default=values.LIST_MOST_ROWS), list[str]()
    with deps.db.transaction() as tx:
        ids = {str(id): id for id in invoices.finished_ids_after(tx, after, most)}

        def read(first: str, last: str) -> list[Finished]:
            wanted = [id for text, id in ids.items() if first < text <= last]
            return judged(deps, tx, invoices.finished_invoices(tx, wanted))

        keys = list(ids)
        last = keys[-1] if keys else ""
        finished = each_by_itself(tx, read, first="", keys=keys, last=last, unreadable=unreadable)
    finished.sort(key=lambda each: each.invoice.id)
    return FinishedPage(finished, unreadable, ids.get(last), more=len(ids) == most)


ACCEPT: Final = "invoice.accept"


def reannounce_invoices(deps: Deps, *, invoice_ids: Sequence[str], accept: bool = False) -> Reannounced:
    """Announces those of these invoices that are finished again, with the same content; refuses those that are not
    proven.

    With `accept` two operators take responsibility for the present content of the unproven ones: one requests, and the
    approval of the other signs them as they are. Raises APPROVAL_REQUIRED when there are such.

    Each announcement has a new id of the outbox: with the old one JetStream (for two minutes) and every inbox (for
    days) would drop it, and it would repair nothing. Consumers have one effect per invoice, however often they get it.
    """
    values.at_most("invoice_ids", invoice_ids, values.LIST_MOST_ROWS)
    done = _reannounced(deps, [values.uuid("invoice_ids", each) for each in invoice_ids], accept=accept)
    if done.requested:
        raise approvals.required(done.requested)
    return done


@retry_conflicts
def _reannounced(deps: Deps, invoice_ids: Sequence[UUID], *, accept: bool) -> Reannounced:
    announced, refused, requested = list[UUID](), list[UUID](), list[Approval]()
    with deps.db.transaction() as tx:
        for each in judged(deps, tx, invoices.finished_invoices(tx, invoice_ids)):
            if each.unproven and accept and deps.settings.four_eyes:
                requested.append(approvals.request(tx, _accepting(each), deps))
            elif each.unproven and not accept:
                refused.append(each.invoice.id)
            else:
                _announce(deps, tx, each)
                announced.append(each.invoice.id)
    return Reannounced(announced, refused, requested)


def accept_approved(deps: Deps, tx: Session, asked: Approval) -> None:
    """Signs and announces the requested invoice. Raises INVOICE_NOT_FOUND, APPROVAL_STATE_CONFLICT."""
    found = judged(deps, tx, invoices.finished_invoices(tx, [UUID(asked.request["invoice_id"])]))
    if not found:
        raise errors.invoice_not_found()
    if not found[0].unproven or not asked.asks_for(_accepting(found[0])):
        raise approvals.changed_since()
    _announce(deps, tx, found[0])


def _accepting(finished: Finished) -> Terms:
    invoice, fact = finished.invoice, events.invoice_finished(finished.invoice, finished.deal)
    return accept_terms(
        {
            "invoice_id": str(invoice.id),
            "merchant_id": str(invoice.merchant_id),
            "status": str(invoice.status),
            "amount": fact.amount,
            "currency_code": fact.currency_code,
            "merchant_usdt": fact.merchant_usdt,
            "unproven": finished.unproven,
            "fact_sha256": hashlib.sha256(fact.SerializeToString()).hexdigest(),
        }
    )


def accept_terms(request: Mapping[str, Any]) -> Terms:
    credited = request["merchant_usdt"]
    return Terms(
        act=ACCEPT,
        object=f"invoice:{request['invoice_id']}",
        request=request,
        summary=f"Sign and announce an invoice of merchant {request['merchant_id']} as {request['status']} over "
        f"{request['amount']} {request['currency_code']}{f', which credits {credited} USDT' if credited else ''}, "
        f"although {request['unproven']}",
        merchant_id=UUID(request["merchant_id"]),
    )


def _announce(deps: Deps, tx: Session, finished: Finished) -> None:
    """Announces the invoice as it is; an unproven one is signed first."""
    invoice = finished.invoice
    if finished.unproven:
        _accept(deps, tx, finished)
    announce(
        tx,
        Outbox,
        subject=events.FINISHED,
        message=events.invoice_finished(invoice, finished.deal),
        at=deps.clock.now(),
        announced=deps.announced,
        signer=deps.signer,
    )
    act = ACCEPT if finished.unproven else "invoice.reannounce"
    acts.record(tx, act, f"invoice:{invoice.id}", merchant_id=invoice.merchant_id, note=finished.unproven)


def judged(deps: Deps, tx: Session, finished: Sequence[tuple[Invoice, Deal | None]]) -> list[Finished]:
    """Returns the invoices, each compared with its signed fact."""
    signed: dict[UUID, list[invoices_pb2.InvoiceFinished]] = defaultdict(list)
    for event_id, fact in kept_facts(tx, [invoice.event_id for invoice, _ in finished if invoice.event_id]):
        if _is_signed(deps, event_id, fact):
            signed[event_id].append(invoices_pb2.InvoiceFinished.FromString(fact.payload))
    unproven = {}
    for invoice, deal in finished:
        facts = signed.get(invoice.event_id, ()) if invoice.event_id else ()
        if events.invoice_finished(invoice, deal) not in facts:
            unproven[invoice.id] = OTHER_FACT if facts else NO_FACT
    return [Finished(invoice, deal, unproven.get(invoice.id, "")) for invoice, deal in finished]


def _is_signed(deps: Deps, event_id: UUID, fact: KeptFact) -> bool:
    """Returns whether the service signed the fact as that of this event."""
    try:
        deps.verifier.check(events.FINISHED, event_id, fact.payload, fact.signature)
    except Unproven:
        return False
    return True


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
