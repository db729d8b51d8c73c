"""The orders, corrections and refunds that the transfers of a statement belong to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import Final

from console.calls import invoices_of
from console.page import Page
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.proto import timestamp_from

ROWS_PER_CALL: Final = 1000


@dataclass(frozen=True)
class Things:
    """By their ids. `away`: invoices does not answer, so the orders are missing."""

    orders: Mapping[str, invoices_pb2.Invoice] = field(default_factory=dict)
    corrections: Mapping[str, corrections_pb2.Correction] = field(default_factory=dict)
    refunds: Mapping[str, refunds_pb2.Refund] = field(default_factory=dict)
    away: bool = False

    def _cause_of(self, row: pb.Transfer) -> corrections_pb2.Correction | refunds_pb2.Refund:
        """Returns the correction or refund that moved the money; one without values when another thing did."""
        return (
            self.corrections.get(row.correction_id)
            or self.refunds.get(row.refund_id)
            or corrections_pb2.Correction()
        )

    def invoice_id_of(self, row: pb.Transfer) -> str:
        """Returns the invoice that the transfer is about; empty: none."""
        return row.invoice_id or self._cause_of(row).invoice_id

    def reason_of(self, row: pb.Transfer) -> str:
        """Returns the reason of the correction or refund that moved the money; may be empty."""
        return self._cause_of(row).reason

    def paid_of(self, row: pb.Transfer) -> tuple[str, str, str]:
        """Returns fiat: what of the order was paid, what was asked for, what came. A correction has what came for it
        only.
        """
        if correction := self.corrections.get(row.correction_id):
            return "", "", correction.received_amount
        if row.correction_id or row.refund_id:
            return "", "", ""
        order = self.orders.get(row.invoice_id, invoices_pb2.Invoice())
        return order.final_amount, order.deal.amount_to_send, order.deal.amount_fiat


async def things_of(page: Page, merchant_id: str, transfers: Sequence[pb.Transfer]) -> Things:
    """Returns the orders, corrections and refunds of these transfers, which come oldest first."""
    corrections, refunds = await asyncio.gather(
        _corrections(page, merchant_id, [each for each in transfers if each.correction_id]),
        _refunds(page, merchant_id, sorted({each.refund_id for each in transfers} - {""})),
    )
    found = Things(corrections=corrections, refunds=refunds)
    orders = await invoices_of(
        page.deps.deals, (found.invoice_id_of(each) for each in transfers), merchant_id=merchant_id
    )
    return Things(orders or {}, corrections, refunds, away=orders is None)


async def _refunds(page: Page, merchant_id: str, ids: Sequence[str]) -> Mapping[str, refunds_pb2.Refund]:
    found: dict[str, refunds_pb2.Refund] = {}
    for first in range(0, len(ids), ROWS_PER_CALL):
        some = ids[first : first + ROWS_PER_CALL]
        request = refunds_pb2.ListRefundsRequest(merchant_id=merchant_id, refund_ids=some, limit=len(some))
        found |= {each.refund_id: each for each in (await page.deps.refunds.ListRefunds(request)).refunds}
    return found


async def _corrections(
    page: Page, merchant_id: str, transfers: Sequence[pb.Transfer]
) -> Mapping[str, corrections_pb2.Correction]:
    """Returns the corrections that these transfers belong to: each is as old as its transfers."""
    if not transfers:
        return {}
    first, last = (transfers[each].created_at.ToDatetime(UTC) for each in (0, -1))
    request = corrections_pb2.ListCorrectionsRequest(
        merchant_id=merchant_id,
        created_from=timestamp_from(first),
        created_before=timestamp_from(last + timedelta(microseconds=1)),
        limit=ROWS_PER_CALL,
    )
    found: dict[str, corrections_pb2.Correction] = {}
    while True:
        some = (await page.deps.corrections.ListCorrections(request)).corrections
        found |= {each.correction_id: each for each in some}
        if len(some) < ROWS_PER_CALL:
            return found
        request.after_correction_id = some[-1].correction_id
