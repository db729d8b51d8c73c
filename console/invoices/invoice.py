"""One invoice: its fields, and its timeline from all services. The services leave out what a member may not see."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.page import Page
from console.ui.csv import csv_line
from console.ui.pages import exports, require_exporter
from console.words.bank import PaidBy
from console.words.moments import Moment
from console.words.timeline import COLUMNS, cells, timeline
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2, withdrawals_pb2
from kit.rpc.errors import database_unavailable

LEDGER_READERS: Final = ("finance", "viewer")
"""The roles of members that see credits and balances, beside the owner; a developer sees neither."""
TIMELINE_SECONDS: Final = 4.0
"""The time of the calls for a timeline; what is left of the request's is for names."""


@dataclass(frozen=True)
class Whole:
    """An invoice with all that the services know of it.

    away  the services that did not answer: their moments are missing
    """

    story: pb.GetInvoiceStoryResponse
    moments: Sequence[Moment]
    corrections: Sequence[corrections_pb2.Correction]
    merchant_name: str
    away: Sequence[str]


class InvoicePage(Page):
    """/invoices/{invoice_id}, and its timeline as CSV."""

    link = "/invoices"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        whole = await self._whole(req, invoice_id)
        invoice = whole.story.invoice
        self.show(
            req,
            resp,
            "invoice",
            invoice=invoice,
            stories=whole.story.deals,
            moments=whole.moments,
            corrections=whole.corrections,
            merchant_name=whole.merchant_name,
            away=whole.away,
            refunds=await self._refunds(req, invoice.invoice_id),
            link_to=lambda thing: self._link_to(req, thing),
            exports=exports(req),
            may_be_canceled=invoice.status == pb.INVOICE_STATUS_PENDING
            and not invoice.deal.HasField("mark_paid_at"),
        )

    on_head = on_get

    async def on_get_csv(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        """Sends the timeline. A file with a part missing would look complete, so it needs all services."""
        require_exporter(req, self.deps.pages.opened_by(self.link))
        whole = await self._whole(req, invoice_id, whole_only=True)
        resp.content_type = "text/csv; charset=utf-8"
        resp.set_headers(
            {
                "Content-Disposition": f'attachment; filename="invoice-{whole.story.invoice.invoice_id}.csv"',
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
            }
        )
        resp.data = b"".join([csv_line(COLUMNS), *(csv_line(cells(each)) for each in whole.moments)])

    async def _whole(self, req: Request, invoice_id: str, *, whole_only: bool = False) -> Whole:
        """Returns the invoice with its timeline. With `whole_only` it raises DB_UNAVAILABLE when a
        service is away. A member's calls name the session's merchant; acts, which name operators, are for the desk.
        """
        own = req.exchange.signed_in.merchant_id
        story, transfers, corrections, webhooks = await asyncio.gather(
            self.deps.deals.GetInvoiceStory(pb.GetInvoiceStoryRequest(invoice_id=invoice_id)),
            or_none(
                self.deps.withdrawals.ListTransfers(
                    withdrawals_pb2.ListTransfersRequest(
                        merchant_id=own, invoice_id=invoice_id, with_balances=True
                    )
                ),
                seconds=TIMELINE_SECONDS,
            )
            if self._may_read_ledger(req)
            else _no_transfers(),
            or_none(
                self.deps.corrections.ListCorrections(
                    corrections_pb2.ListCorrectionsRequest(merchant_id=own, invoice_id=invoice_id)
                ),
                seconds=TIMELINE_SECONDS,
            )
            if self._may_read_ledger(req)
            else _no_corrections(),
            or_none(
                self.deps.webhooks.ListInvoiceEvents(
                    webhooks_pb2.ListInvoiceEventsRequest(
                        merchant_id=own, invoice_id=invoice_id, with_acts=not own
                    )
                ),
                seconds=TIMELINE_SECONDS,
            ),
        )
        answers = {"withdrawals": corrections and transfers, "webhooks": webhooks}
        away = [service for service, answer in answers.items() if answer is None]
        if whole_only and away:
            raise database_unavailable()
        merchant_id = story.invoice.merchant_id
        names, keys, paid_by = await asyncio.gather(
            self.names(merchant_id),
            self._keys(req, merchant_id),
            self._paid_by([each.deal for each in story.deals]),
        )
        moments = timeline(
            story,
            transfers.transfers if transfers else (),
            webhooks,
            key_name=_key_name(keys, story.invoice.key_id),
            corrections=corrections,
            paid_by=paid_by,
        )
        made = corrections.corrections if corrections else ()
        return Whole(story, moments, made, names.get(merchant_id, ""), away)

    def _link_to(self, req: Request, thing: str) -> str:
        """Returns the address of the page of a moment's thing; empty for one without a page on this surface."""
        kind, _, id = thing.partition(":")
        path = _PATHS[kind].format(id) if kind in _PATHS else ""
        if kind == "proof":
            deal_id, _, use = id.partition("/")
            path = f"/deals/{deal_id}/pictures/{use}"
        return path if path and self.deps.pages.opens(req, f"/{path.split('/')[1]}") else ""

    async def _refunds(self, req: Request, invoice_id: str) -> Sequence[refunds_pb2.Refund]:
        """Returns the refunds of the invoice; none while withdrawals is away, or for other roles."""
        if not self.deps.pages.opens(req, "/refunds"):
            return ()
        own = req.exchange.signed_in.merchant_id
        request = refunds_pb2.ListRefundsRequest(merchant_id=own, invoice_id=invoice_id)
        found = await or_none(self.deps.refunds.ListRefunds(request))
        return found.refunds if found else ()

    async def _paid_by(self, deals: Sequence[pb.Deal]) -> Sequence[PaidBy]:
        """Returns the bank lines that paid the deals, which members don't see."""
        return ()

    def _may_read_ledger(self, req: Request) -> bool:
        return not req.exchange.signed_in.merchant_id or self.may(req, *LEDGER_READERS)

    async def _keys(self, req: Request, merchant_id: str) -> merchants_pb2.ListApiKeysResponse | None:
        """Returns the keys with their names; None for members who may not read them."""
        if req.exchange.signed_in.merchant_id and not self.may(req, "developer"):
            return None
        request = merchants_pb2.ListApiKeysRequest(merchant_id=merchant_id)
        return await or_none(self.deps.merchants.ListApiKeys(request))


async def _no_transfers() -> withdrawals_pb2.ListTransfersResponse:
    return withdrawals_pb2.ListTransfersResponse()


async def _no_corrections() -> corrections_pb2.ListCorrectionsResponse:
    return corrections_pb2.ListCorrectionsResponse()


def _key_name(keys: merchants_pb2.ListApiKeysResponse | None, key_id: str) -> str:
    """Returns the name of the key and the first characters of its secret; empty for an unknown one."""
    known = keys.keys if keys else ()
    return next((f"{each.name or key_id} ({each.hint}…)" for each in known if each.key_id == key_id), "")


_PATHS: Final = {
    "deal": "/deals/{}",
    "case": "/cases/{}",
    "webhook": "/webhooks/{}",
    "bank": "/bank/{}",
    "approval": "/approvals/{}",
}
