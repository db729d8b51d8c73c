"""The orders and corrections that the transfers of a statement belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import Final

from console.calls import invoices_of
from console.page import Page
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.proto import timestamp_from

CORRECTIONS_PER_CALL: Final = 1000


@dataclass(frozen=True)
class Things:
    """By their ids. `away`: invoices does not answer, so the orders are missing."""

    orders: Mapping[str, invoices_pb2.Invoice] = field(default_factory=dict)
    corrections: Mapping[str, corrections_pb2.Correction] = field(default_factory=dict)
    away: bool = False

    def correction_of(self, row: pb.Transfer) -> corrections_pb2.Correction:
        return self.corrections.get(row.correction_id, corrections_pb2.Correction())

    def invoice_id_of(self, row: pb.Transfer) -> str:
        """Returns the invoice that the transfer is about; empty: none."""
        return row.invoice_id or self.correction_of(row).invoice_id


async def things_of(page: Page, merchant_id: str, transfers: Sequence[pb.Transfer]) -> Things:
    """Returns the orders and corrections of these transfers, which come oldest first."""
    corrections = await _corrections(page, merchant_id, [each for each in transfers if each.correction_id])
    found = Things(corrections=corrections)
    orders = await invoices_of(
        page.deps.deals, (found.invoice_id_of(each) for each in transfers), merchant_id=merchant_id
    )
    return Things(orders or {}, corrections, away=orders is None)


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
        limit=CORRECTIONS_PER_CALL,
    )
    found: dict[str, corrections_pb2.Correction] = {}
    while True:
        some = (await page.deps.corrections.ListCorrections(request)).corrections
        found |= {each.correction_id: each for each in some}
        if len(some) < CORRECTIONS_PER_CALL:
            return found
        request.after_correction_id = some[-1].correction_id
