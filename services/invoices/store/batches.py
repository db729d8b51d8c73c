"""Changes many invoices or their deals at once, each function with one statement that waits for no lock of others.

As in `deals` and `invoices`, the invoices' rows are locked first, and their deals are read after that.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, bindparam, select
from sqlalchemy.orm import Session

from kit.db import prepared
from kit.db.prepared import Prepared
from services.invoices.domain.states import DealState, InvoiceStatus
from services.invoices.models import Deal, Invoice

_IDS = any_(bindparam("ids", type_=ARRAY(Uuid())))
_LOCKED = select(Invoice).where(Invoice.id == _IDS).with_for_update(skip_locked=True)
_DEALS = select(Deal).where(Deal.id == _IDS)


def locked_invoices(tx: Session, invoice_ids: Sequence[UUID]) -> Sequence[Invoice]:
    """Returns those of these invoices that no other transaction holds, locked."""
    return tx.execute(_LOCKED, {"ids": list(invoice_ids)}).scalars().all()


def newest_deals(tx: Session, invoices: Sequence[Invoice]) -> Mapping[UUID, Deal]:
    """Returns the newest deals of locked invoices by their id, read after the lock."""
    ids = [invoice.deal_id for invoice in invoices if invoice.deal_id]
    return {deal.id: deal for deal in tx.execute(_DEALS, {"ids": ids}).scalars()} if ids else {}


_STEP_DEALS = Prepared(
    "step_deals",
    """
WITH stepped AS (
    UPDATE deals SET status = :status, sub_status = :sub_status, finished_at = :finished_at WHERE id = ANY(:ids)
    RETURNING id
)
INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
SELECT id, :now, :status, :sub_status, :actor, '' FROM stepped
""",
    {
        "ids": "uuid[]",
        "status": "text",
        "sub_status": "text",
        "finished_at": "timestamptz",
        "now": "timestamptz",
        "actor": "text",
    },
    lambda: None,
)


def step_deals(
    tx: Session, deals: Sequence[Deal], target: DealState, *, is_final: bool, now: datetime, actor: str
) -> None:
    """Takes deals of locked invoices to the same state, with a row of each in the history."""
    values = {"status": target.status, "sub_status": target.sub_status, "now": now, "actor": actor}
    ids = [deal.id for deal in deals]
    prepared.rows(tx, _STEP_DEALS, values | {"ids": ids, "finished_at": now if is_final else None})


_FINISH = Prepared(
    "finish_invoices",
    """
UPDATE invoices SET status = :status, finished_at = :now, event_id = its.event_id
FROM unnest(:ids, :event_ids) AS its (id, event_id) WHERE invoices.id = its.id
""",
    {"ids": "uuid[]", "event_ids": "uuid[]", "status": "text", "now": "timestamptz"},
    lambda: None,
)


def finish_invoices(
    tx: Session, event_ids: Mapping[UUID, UUID], status: InvoiceStatus, *, now: datetime
) -> None:
    """Makes locked invoices terminal. `event_ids` has the id of each one's fact by the id of the invoice."""
    values = {"ids": list(event_ids), "event_ids": list(event_ids.values())}
    prepared.rows(tx, _FINISH, values | {"status": status, "now": now})


_RELEASE = Prepared(
    "release_requisites",
    """
WITH ended AS (
    SELECT id, count(*) AS deals FROM unnest(:ids) AS id GROUP BY id
), free AS (
    SELECT id FROM requisites WHERE id = ANY(:ids) FOR NO KEY UPDATE SKIP LOCKED
), released AS (
    UPDATE requisites SET open_deals = open_deals - ended.deals
    FROM ended JOIN free ON free.id = ended.id WHERE requisites.id = ended.id
)
SELECT (SELECT count(*) FROM ended) = (SELECT count(*) FROM free)
""",
    {"ids": "uuid[]"},
    bool,
)


def release_requisites(tx: Session, requisite_ids: Sequence[UUID]) -> bool:
    """Frees a place for each of these ids; an id may come several times. Returns false when another transaction holds
    one of them: then this transaction must not commit.
    """
    return prepared.one_or_none(tx, _RELEASE, {"ids": list(requisite_ids)}) is True
