"""The signed facts of finished invoices, which outlast the outbox."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
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


MOST_OF_ONE: Final = 8
"""Facts of one event that are read. An event has one, and one more for each time that two operators accepted it."""
_OF_EVENTS: Final = text(f"""
SELECT event_id, signature, payload FROM unnest(CAST(:ids AS uuid[])) AS event (id)
CROSS JOIN LATERAL (SELECT * FROM facts WHERE event_id = event.id LIMIT {MOST_OF_ONE}) AS kept
""")  # noqa: S608  made of constants
_KEEP: Final = text(
    "INSERT INTO facts (event_id, signature, payload) VALUES (:event_id, :signature, :payload) ON CONFLICT DO NOTHING"
)


def kept_facts(tx: Session, event_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[KeptFact]]:
    found: dict[UUID, list[KeptFact]] = defaultdict(list)
    for row in tx.execute(_OF_EVENTS, {"ids": list(event_ids)}):
        found[row.event_id].append(KeptFact(row.signature, bytes(row.payload)))
    return found


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
