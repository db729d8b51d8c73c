"""The signed facts of finished invoices, which outlast the outbox."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from services.invoices.models import Deal, Invoice


@dataclass(frozen=True)
class KeptFact:
    signature: str
    payload: bytes


_THERE: Final = text("SELECT to_regclass('public.facts') IS NOT NULL")
_OF_EVENTS: Final = text("SELECT event_id, signature, payload FROM facts WHERE event_id = ANY(:ids)")
_KEEP: Final = text(
    "INSERT INTO facts (event_id, signature, payload) VALUES (:event_id, :signature, :payload) ON CONFLICT DO NOTHING"
)
# Decided by the records, which the service's role can't write. A row with `made_as` is recorded from its start.
_FROM_BEFORE: Final = text("""
SELECT invoices.id
FROM invoices CROSS JOIN LATERAL (
  SELECT min(at) AS at FROM records
  WHERE kind = 'invoice' AND subject = invoices.id::text AND facts ->> 'finished_at' IS NOT NULL
) AS ended
WHERE invoices.id = ANY(:ids)
  AND CASE WHEN ended.at IS NULL THEN invoices.made_as IS NULL
           ELSE ended.at < (SELECT at FROM records WHERE kind = 'recorded' AND subject = 'fact') END
""")


def are_kept(tx: Session) -> bool:
    """Returns false on the schema of the version before."""
    return bool(tx.scalar(_THERE))


def kept_facts(tx: Session, event_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[KeptFact]]:
    found: dict[UUID, list[KeptFact]] = defaultdict(list)
    for row in tx.execute(_OF_EVENTS, {"ids": list(event_ids)}):
        found[row.event_id].append(KeptFact(row.signature, bytes(row.payload)))
    return found


def keep_fact(tx: Session, event_id: UUID, fact: KeptFact) -> None:
    """Keeps a fact that is announced under an id other than its event's."""
    tx.execute(_KEEP, {"event_id": event_id, "signature": fact.signature, "payload": fact.payload})


def finished_before_facts_were_kept(tx: Session, invoice_ids: Sequence[UUID]) -> set[UUID]:
    """Returns the invoices that may lack a signed fact, because they finished under a version that kept none."""
    return set(tx.scalars(_FROM_BEFORE, {"ids": list(invoice_ids)}))


def invoices_with_deals(
    tx: Session, invoice_ids: Sequence[UUID]
) -> Mapping[UUID, tuple[Invoice, Deal | None]]:
    """Returns those of these invoices that exist, each with its newest deal."""
    found = tx.execute(
        select(Invoice, Deal).outerjoin(Deal, Deal.id == Invoice.deal_id).where(Invoice.id.in_(invoice_ids))
    )
    return {invoice.id: (invoice, deal) for invoice, deal in found}
