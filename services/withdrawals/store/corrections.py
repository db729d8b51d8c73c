"""Corrections, and what merchants owe."""

from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.lists import in_span, stands_after
from kit.db.rows import Rows
from services.withdrawals.domain import CorrectionKind
from services.withdrawals.models import Correction
from services.withdrawals.store.views import CorrectionView, Debt

_CORRECTIONS: Final = Rows(CorrectionView, table_of(Correction))


def add(tx: Session, correction: CorrectionView) -> None:
    tx.execute(insert(Correction).values(asdict(correction)))


def of_request_key(tx: Session, request_key: UUID) -> CorrectionView | None:
    query = select(*_CORRECTIONS.columns).where(Correction.request_key == request_key)
    return _CORRECTIONS.one_or_none(tx.execute(query))


def correction(tx: Session, correction_id: UUID) -> CorrectionView | None:
    return _CORRECTIONS.one_or_none(
        tx.execute(select(*_CORRECTIONS.columns).where(Correction.id == correction_id))
    )


def listed(
    tx: Session,
    *,
    merchant_id: UUID | None,
    invoice_id: UUID | None,
    kind: CorrectionKind | None,
    created_from: datetime | None,
    created_before: datetime | None,
    after: CorrectionView | None,
    limit: int,
) -> list[CorrectionView]:
    """Returns the newest corrections that all filters leave: from the start, or those that stand after `after`."""
    at, id = Correction.created_at, Correction.id
    query = select(*_CORRECTIONS.columns).where(*in_span(at, created_from, created_before))
    for column, wanted in (
        (Correction.merchant_id, merchant_id),
        (Correction.invoice_id, invoice_id),
        (Correction.kind, kind),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    if after is not None:
        query = query.where(stands_after(at, id, (after.created_at, after.id), oldest_first=False))
    return _CORRECTIONS.all(tx.execute(query.order_by(at.desc(), id.desc()).limit(limit)))


_REVERSIBLE: Final = text("""
SELECT coalesce((SELECT amount FROM transfers WHERE reference = :reference), 0)
  + coalesce((SELECT sum(transfers.amount) FROM corrections
              JOIN transfers ON reference = 'correction:' || corrections.id
              WHERE invoice_id = :invoice_id AND kind <> 'reversal'), 0)
  - coalesce((SELECT sum(amount) FROM corrections WHERE invoice_id = :invoice_id AND kind = 'reversal'), 0)
  - coalesce((SELECT sum(amount) FROM refunds
              WHERE invoice_id = :invoice_id AND status NOT IN ('failed', 'canceled')), 0)
""")


def reversible(tx: Session, invoice_id: UUID) -> Decimal:
    """Returns what was credited for the invoice and neither taken back nor refunded, USDT. A credit counts by its
    transfer: a row that SQL wrote has none.
    """
    values = {"invoice_id": invoice_id, "reference": f"invoice:{invoice_id}"}
    return Decimal(tx.execute(_REVERSIBLE, values).scalar_one())


_MERCHANT: Final = text("""
SELECT accounts.merchant_id FROM transfers JOIN accounts ON accounts.id = credit_account WHERE reference = :reference
UNION ALL SELECT merchant_id FROM corrections WHERE invoice_id = :invoice_id LIMIT 1
""")


def merchant_of(tx: Session, invoice_id: UUID) -> UUID | None:
    """Returns the merchant to whom something was credited for the invoice; None when nothing was."""
    found: UUID | None = tx.scalar(
        _MERCHANT, {"invoice_id": invoice_id, "reference": f"invoice:{invoice_id}"}
    )
    return found


_DEBTS: Final = text("""
SELECT accounts.merchant_id, balance, grown.at
FROM accounts LEFT JOIN LATERAL (
  SELECT max(created_at) AS at FROM corrections WHERE corrections.merchant_id = accounts.merchant_id AND owed > 0
) AS grown ON true
WHERE kind = 'merchant_owed' AND balance > 0 ORDER BY balance DESC, accounts.merchant_id LIMIT :limit
""")


def debts(tx: Session, *, limit: int) -> list[Debt]:
    """Returns the merchants that owe money, the largest debt first."""
    return [Debt(*row) for row in tx.execute(_DEBTS, {"limit": limit})]
