"""Corrections, and what merchants owe."""

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.decisions import is_as_decided
from kit.db.database import table_of
from kit.db.lists import in_span, stands_after
from kit.db.rows import Rows
from services.withdrawals.domain import DEBITS, CorrectionKind
from services.withdrawals.models import Correction
from services.withdrawals.store.decisions import CORRECTION
from services.withdrawals.store.refunds import is_spelled
from services.withdrawals.store.views import CorrectionView, Debt

_CORRECTIONS: Final = Rows(CorrectionView, table_of(Correction))


def add(tx: Session, correction: CorrectionView) -> None:
    tx.execute(insert(Correction).values(asdict(correction)))


def of_request_key(tx: Session, request_key: UUID) -> CorrectionView | None:
    query = select(*_CORRECTIONS.columns).where(Correction.request_key == request_key)
    return _CORRECTIONS.one_or_none(tx.execute(query))


@dataclass(frozen=True, slots=True)
class Made:
    """The ids of what a request has made; `approval_id` is that of one that waits for a second person."""

    correction_id: UUID | None
    refund_id: UUID | None
    approval_id: UUID | None
    invoice_id: UUID | None


_MADE: Final = text("""
SELECT correction.id, refund.id, approval.id, coalesce(correction.invoice_id, refund.invoice_id)
FROM (VALUES (CAST(:key AS text))) AS asked (key)
LEFT JOIN corrections AS correction ON correction.request_key = CAST(asked.key AS uuid)
LEFT JOIN refunds AS refund ON refund.external_id = asked.key AND refund.status NOT IN ('failed', 'canceled')
LEFT JOIN approvals AS approval ON approval.state = 'pending'
  AND asked.key IN (approval.request ->> 'request_key', approval.request ->> 'external_id')
LIMIT 1
""")


def made_of(tx: Session, request_key: UUID) -> Made:
    return Made(*tx.execute(_MADE, {"key": str(request_key)}).one())


def correction(tx: Session, correction_id: UUID) -> CorrectionView | None:
    return _CORRECTIONS.one_or_none(
        tx.execute(select(*_CORRECTIONS.columns).where(Correction.id == correction_id))
    )


def credit_of_evidence(tx: Session, evidence: str) -> CorrectionView | None:
    """Returns the newest credit with this evidence, in any spelling; None for none."""
    query = select(*_CORRECTIONS.columns).where(
        is_spelled("evidence", evidence), Correction.kind.not_in(DEBITS)
    )
    return _CORRECTIONS.one_or_none(tx.execute(query.order_by(Correction.created_at.desc()).limit(1)))


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
        query = query.where(stands_after((at, id), (after.created_at, after.id), oldest_first=False))
    return _CORRECTIONS.all(tx.execute(query.order_by(at.desc(), id.desc()).limit(limit)))


def surplus_of(tx: Session, invoice_id: UUID | None) -> Decimal | None:
    """Returns the fiat that came beyond the amount of the invoice and was credited; None for nothing."""
    return tx.scalar(
        select(Correction.received_amount)
        .where(Correction.invoice_id == invoice_id, Correction.kind == CorrectionKind.SURPLUS)
        .limit(1)
    )


def are_decided(tx: Session, invoice_id: UUID) -> bool:
    """Returns whether acts decided every correction of the invoice: one that SQL wrote moves no money, but would count
    in `money_of`.
    """
    query = select(*_CORRECTIONS.columns).where(Correction.invoice_id == invoice_id)
    return all(
        is_as_decided(tx, CORRECTION, each.id, acts.values_of(each, CORRECTION.fields), locked=True)
        for each in _CORRECTIONS.all(tx.execute(query))
    )


_MONEY: Final = text("""
SELECT coalesce((SELECT amount FROM transfers WHERE reference = :reference), 0) + coalesce(sum(transfers.amount)
         FILTER (WHERE kind <> 'reversal'), 0),
       coalesce(sum(corrections.amount) FILTER (WHERE kind = 'reversal'), 0),
       coalesce(sum(received_amount), 0), min(conversion_rate),
       coalesce(bool_or(kind = 'late_credit'), false), coalesce(bool_or(kind = 'surplus'), false)
FROM corrections LEFT JOIN transfers ON reference = 'correction:' || corrections.id WHERE invoice_id = :invoice_id
""")
_REFUNDS: Final = text("""
SELECT coalesce(sum(amount), 0), coalesce(sum(refund_amount) FILTER (WHERE origin = 'credited'), 0),
       coalesce(bool_or(origin = 'late'), false), coalesce(bool_or(origin = 'surplus'), false)
FROM refunds WHERE invoice_id = :invoice_id AND status NOT IN ('failed', 'canceled')
""")


@dataclass(frozen=True)
class InvoiceMoney:
    """The money that was credited, taken back and refunded for one invoice; a change reads it after `ledger.locked`.

    credited, reversed  USDT; a credit counts by its transfer: a row that SQL wrote has none
    received, rate      fiat that late credits and surplus brought, and their lowest rate; None without any
    refunding           USDT of refunds that were paid or wait
    refunded            fiat of them, of money that was credited
    late, surplus       whether the money that came late, or beyond the amount, was credited or goes back; a late credit
                        that was wholly taken back does not count
    """

    credited: Decimal
    reversed: Decimal
    received: Decimal
    rate: Decimal | None
    refunding: Decimal
    refunded: Decimal
    late: bool
    surplus: bool

    @property
    def reversible(self) -> Decimal:
        return max(self.credited - self.reversed - self.refunding, Decimal(0))


def money_of(tx: Session, invoice_id: UUID) -> InvoiceMoney:
    values = {"invoice_id": invoice_id, "reference": f"invoice:{invoice_id}"}
    credited, back, received, rate, late, surplus = tx.execute(_MONEY, values).one()
    refunding, refunded, returns_late, returns_surplus = tx.execute(_REFUNDS, values).one()
    late = late and credited > back
    return InvoiceMoney(
        credited, back, received, rate, refunding, refunded, late or returns_late, surplus or returns_surplus
    )


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
