"""The orders behind the credits of a statement: the ledger has their ids only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from console.calls import or_none
from console.page import Page
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb

INVOICES_PER_CALL = 1000


async def orders_of(
    page: Page, merchant_id: str, transfers: Sequence[pb.Transfer]
) -> Mapping[str, invoices_pb2.Invoice]:
    """Returns the invoices of the transfers by id; none while invoices is away."""
    ids = sorted({each.invoice_id for each in transfers if each.invoice_id})
    found: dict[str, invoices_pb2.Invoice] = {}
    for first in range(0, len(ids), INVOICES_PER_CALL):
        some = ids[first : first + INVOICES_PER_CALL]
        request = invoices_pb2.ListAllInvoicesRequest(
            merchant_id=merchant_id, invoice_ids=some, limit=len(some)
        )
        answer = await or_none(page.deps.deals.ListAllInvoices(request))
        if answer is None:
            break
        found |= {each.invoice_id: each for each in answer.invoices}
    return found
