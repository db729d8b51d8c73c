"""Facts that NATS has and the database has lost, because it was restored to an earlier time: named, and where possible
made true again.

A fact is signed by this service, so it proves how its invoice ended. An invoice that the database still has as pending
ends as its fact says, under the id that merchants know: to end it anew, by time for example, would send the merchant a
second webhook that contradicts the first.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import exc
from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2
from kit.audit import acts
from kit.audit.decisions import EARLIEST
from kit.base import actors
from kit.base.proto import datetime_from
from kit.db.database import retry_conflicts
from kit.events.bus.messages import BusRefused, BusUnavailable
from kit.events.bus.reading import Stored
from kit.events.proof import Unproven
from kit.observe.log import get_logger
from kit.rpc import values
from kit.rpc.errors import Refused
from services.invoices import errors, events
from services.invoices.domain import states
from services.invoices.domain.states import InvoiceStatus
from services.invoices.models import Deal, Invoice
from services.invoices.operations import lifecycle
from services.invoices.store import facts
from services.invoices.wiring import Deps

_log = get_logger()

CLOCKS_DIFFER: Final = timedelta(seconds=10)
"""The greatest difference between the clock of NATS and ours."""
RESTORE: Final = "invoice.restore"
NOTE: Final = "restored from its signed fact"

_OF_DEAL: Final = frozenset({"sub_status", "rate_usd", "reason", "merchant_usdt"})
"""The fields of a fact that come from the deal alone."""

_STATUSES: Final = {
    invoices_pb2.InvoiceStatus.Value(f"INVOICE_STATUS_{status.name}"): status for status in InvoiceStatus
}


@dataclass(frozen=True, kw_only=True)
class Forgotten:
    """A signed fact whose invoice is here in another state: `status`, or None when there is no such invoice."""

    fact: invoices_pb2.InvoiceFinished
    status: InvoiceStatus | None


@dataclass(frozen=True, kw_only=True)
class ForgottenPage:
    """`read` is the number of facts that were compared; `last_seq` is the place of the page's end in the stream.
    The stream has no facts of before `begins_at`.
    """

    forgotten: Sequence[Forgotten]
    read: int
    last_seq: int
    more: bool
    begins_at: datetime


@dataclass(frozen=True, kw_only=True)
class NotRestored:
    """A pending invoice that can't end as its fact says. `has_other_deal`: it has no deal, or not that of the fact."""

    invoice_id: UUID
    reason: str
    has_other_deal: bool


@dataclass(frozen=True, kw_only=True)
class RestoredPage:
    """The invoices that ended as their facts say, and those that could not."""

    restored: Sequence[UUID]
    refused: Sequence[NotRestored]
    last_seq: int
    more: bool


class _Differs(Exception):
    """The steps from the invoice's present state make another fact than the signed one."""

    def __init__(self, reason: str, *, has_other_deal: bool) -> None:
        super().__init__(reason)
        self.has_other_deal = has_other_deal


def list_forgotten_facts(deps: Deps, *, since: datetime, after_seq: int, limit: int) -> ForgottenPage:
    """Compares a page of the facts that NATS has stored since that time with the invoices. Raises DB_UNAVAILABLE when
    NATS does not answer, or refuses to.
    """
    most = values.rows(limit, default=values.LIST_MOST_ROWS)
    try:
        page = deps.bus.read(since=max(since, EARLIEST) - CLOCKS_DIFFER, after_seq=after_seq, limit=most)
    except BusRefused as refused:
        raise errors.nats_refuses(str(refused)) from refused
    except BusUnavailable as away:
        raise errors.nats_unavailable() from away
    proven = [fact for each in page.facts if (fact := _proven(deps, each)) is not None]
    with deps.db.transaction() as tx:
        here = facts.invoices_with_deals(tx, [UUID(fact.invoice_id) for fact in proven])
    return ForgottenPage(
        forgotten=list(_forgotten(proven, here)),
        read=len(proven),
        last_seq=page.last_seq,
        more=page.more,
        begins_at=page.begins_at,
    )


def restore_forgotten(
    deps: Deps, *, since: datetime, after_seq: int, limit: int, but: Collection[str] = ()
) -> RestoredPage:
    """Ends the pending invoices of a page of `list_forgotten_facts` as their facts say, `but` those with these ids.

    The caller has seen all pages: an invoice whose facts contradict each other belongs to `but`.
    """
    values.at_most("not_invoice_ids", but, values.LIST_MOST_ROWS)
    left_alone = {values.uuid("not_invoice_ids", each) for each in but}
    page = list_forgotten_facts(deps, since=since, after_seq=after_seq, limit=limit)
    restored, refused = list[UUID](), list[NotRestored]()
    for each in page.forgotten:
        if each.status is not InvoiceStatus.PENDING or UUID(each.fact.invoice_id) in left_alone:
            continue
        refusal = _refusal(deps, each.fact)
        if refusal is None:
            restored.append(UUID(each.fact.invoice_id))
        else:
            refused.append(refusal)
    return RestoredPage(restored=restored, refused=refused, last_seq=page.last_seq, more=page.more)


def _proven(deps: Deps, stored: Stored) -> invoices_pb2.InvoiceFinished | None:
    """Returns the fact if this service has signed it. Consumers park the others."""
    if stored.subject != events.FINISHED:
        return None
    try:
        deps.verifier.check(stored.subject, stored.event_id, stored.payload, stored.signature)
    except Unproven:
        return None
    return invoices_pb2.InvoiceFinished.FromString(stored.payload)


def _forgotten(
    proven: Sequence[invoices_pb2.InvoiceFinished], here: Mapping[UUID, tuple[Invoice, Deal | None]]
) -> Sequence[Forgotten]:
    found: dict[bytes, Forgotten] = {}  # a fact that was announced again is in the stream twice
    for fact in proven:
        invoice, deal = here.get(UUID(fact.invoice_id), (None, None))
        if invoice is None:
            found[fact.SerializeToString()] = Forgotten(fact=fact, status=None)
        elif invoice.status == InvoiceStatus.PENDING or events.invoice_finished(invoice, deal) != fact:
            status = InvoiceStatus(invoice.status)
            found[fact.SerializeToString()] = Forgotten(fact=fact, status=status)
    return list(found.values())


def _refusal(deps: Deps, fact: invoices_pb2.InvoiceFinished) -> NotRestored | None:
    """Ends the invoice as its fact says; returns why that is not possible, and then nothing has changed."""
    has_other_deal = False
    try:
        _restore(deps, fact)
    except _Differs as differs:
        reason, has_other_deal = str(differs), differs.has_other_deal
    except Refused as refused:
        reason = refused.message or refused.reason
    except (exc.IntegrityError, exc.DataError) as error:
        rule = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
        reason = f"the database refuses it ({rule or type(error).__name__})"
    else:
        _log.warning("invoice_restored", invoice_id=fact.invoice_id, event_id=fact.event_id)
        return None
    _log.warning("invoice_not_restored", invoice_id=fact.invoice_id, reason=reason)
    return NotRestored(invoice_id=UUID(fact.invoice_id), reason=reason, has_other_deal=has_other_deal)


@retry_conflicts
def _restore(deps: Deps, fact: invoices_pb2.InvoiceFinished) -> None:
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, UUID(fact.invoice_id))
        lifecycle.require_open(invoice)
        _take_steps(tx, deps, invoice, deal, fact)
        _require_equal(events.invoice_finished(invoice, deal), fact)
        acts.record(tx, RESTORE, f"invoice:{invoice.id}", merchant_id=invoice.merchant_id, note=NOTE)


def _require_equal(found: invoices_pb2.InvoiceFinished, fact: invoices_pb2.InvoiceFinished) -> None:
    """Raises _Differs with the first difference; one of the invoice itself comes before those of its deal."""
    different = [
        each.name for each in fact.DESCRIPTOR.fields if _value(found, each.name) != _value(fact, each.name)
    ]
    if not different:
        return
    name = min(different, key=lambda each: each in _OF_DEAL)
    raise _Differs(
        f"its {name} is {_value(found, name)}, that of its signed fact {_value(fact, name)}",
        has_other_deal=name in _OF_DEAL,
    )


def _value(fact: invoices_pb2.InvoiceFinished, name: str) -> object:
    value = getattr(fact, name)
    if fact.DESCRIPTOR.fields_by_name[name].has_presence and not fact.HasField(name):  # type: ignore[arg-type]
        return "empty"
    return datetime_from(value).isoformat() if isinstance(value, Timestamp) else value


def _take_steps(
    tx: Session, deps: Deps, invoice: Invoice, deal: Deal | None, fact: invoices_pb2.InvoiceFinished
) -> None:
    status, at, event_id = _STATUSES[fact.status], datetime_from(fact.finished_at), UUID(fact.event_id)
    if deal is None:
        if fact.HasField("sub_status"):
            raise _Differs("it has no deal", has_other_deal=True)
        lifecycle.finish(tx, deps, invoice, None, status, now=at, event_id=event_id)
        return
    if not fact.HasField("sub_status"):
        raise _Differs("it has a deal, and its signed fact has none", has_other_deal=False)
    for trigger in states.way_to(lifecycle.state_of(deal), fact.sub_status, status):
        lifecycle.advance(
            tx,
            deps,
            invoice,
            deal,
            trigger,
            now=at,
            actor=str(actors.current()),
            note=NOTE,
            adjusted_amount=values.decimal("adjusted_amount", fact.adjusted_amount)
            if trigger is states.Trigger.RESOLVE_ADJUSTED
            else None,
            event_id=event_id,
        )
    if invoice.status == InvoiceStatus.PENDING:
        raise _Differs(
            f"no step leads from the state of its deal ({deal.sub_status}) to that of its signed fact "
            f"({fact.sub_status})",
            has_other_deal=False,
        )
