"""The signed facts of finished invoices, which outlast the outbox."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import and_, select, text
from sqlalchemy.orm import Session

from services.invoices.models import Deal, Invoice


@dataclass(frozen=True)
class KeptFact:
    signature: str
    payload: bytes


_OF_EVENTS: Final = text("SELECT event_id, signature, payload FROM facts WHERE event_id = ANY(:ids)")
_AT_ONCE: Final = 100
"""Rows in memory at the same time: SQL may have added any number."""
_KEEP: Final = text(
    "INSERT INTO facts (event_id, signature, payload) VALUES (:event_id, :signature, :payload) ON CONFLICT DO NOTHING"
)


def kept_facts(tx: Session, event_ids: Sequence[UUID]) -> Iterator[tuple[UUID, KeptFact]]:
    """Yields the facts of these events, each with the id of its event."""
    with tx.execute(_OF_EVENTS, {"ids": list(event_ids)}, execution_options={"yield_per": _AT_ONCE}) as found:
        for row in found:
            yield row.event_id, KeptFact(row.signature, bytes(row.payload))


def keep_fact(tx: Session, event_id: UUID, fact: KeptFact) -> None:
    """Keeps a fact that is announced under an id other than its event's."""
    tx.execute(_KEEP, {"event_id": event_id, "signature": fact.signature, "payload": fact.payload})


def invoices_with_deals(
    tx: Session, invoice_ids: Sequence[UUID]
) -> Mapping[UUID, tuple[Invoice, Deal | None]]:
    """Returns those of these invoices that exist, each with its newest deal."""
    found = tx.execute(
        select(Invoice, Deal)
        .outerjoin(Deal, and_(Deal.id == Invoice.deal_id, Deal.invoice_id == Invoice.id))
        .where(Invoice.id.in_(invoice_ids))
    )
    return {invoice.id: (invoice, deal) for invoice, deal in found}
