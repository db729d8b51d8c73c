"""InvoicesService: merchants' calls on invoices, and the verification's."""

from typing import Any, Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import datetime_from, timestamp_from
from kit.rpc.methods import Methods, by_name
from services.invoices.domain.creating import NewInvoice
from services.invoices.domain.states import LinkStatus
from services.invoices.operations import (
    creating,
    deal_money,
    desk,
    forgotten,
    links,
    reading,
    verification,
)
from services.invoices.rpc.as_seen import invoice_as_seen
from services.invoices.rpc.converters import (
    deal_money_fields,
    finished_to_message,
    forgotten_to_message,
    invoice_to_message,
    link_to_message,
    not_restored_to_message,
)
from services.invoices.store.views import InvoiceView, LinkView
from services.invoices.wiring import Deps


def list_forgotten_facts(deps: Deps, request: pb.ListForgottenFactsRequest) -> pb.ListForgottenFactsResponse:
    page = forgotten.list_forgotten_facts(
        deps, since=datetime_from(request.since), after_seq=request.after_seq, limit=request.limit
    )
    return pb.ListForgottenFactsResponse(
        facts=map(forgotten_to_message, page.forgotten),
        read=page.read,
        last_seq=page.last_seq,
        more=page.more,
        begins_at=timestamp_from(page.begins_at),
    )


def restore_forgotten(deps: Deps, request: pb.RestoreForgottenRequest) -> pb.RestoreForgottenResponse:
    page = forgotten.restore_forgotten(
        deps,
        since=datetime_from(request.since),
        after_seq=request.after_seq,
        limit=request.limit,
        but=request.not_invoice_ids,
    )
    return pb.RestoreForgottenResponse(
        invoice_ids=map(str, page.restored),
        refused=map(not_restored_to_message, page.refused),
        last_seq=page.last_seq,
        more=page.more,
    )


def _invoice(view: InvoiceView | NewInvoice) -> dict[str, Any]:
    return {"invoice": invoice_to_message(view)}


def _link(view: LinkView, status: LinkStatus) -> dict[str, Any]:
    return {"link": link_to_message(view, status, note=view.note)}


METHODS: Final[Methods] = {
    "CreateInvoice": by_name(creating.create_invoice, _invoice),
    "CreateInvoiceByHand": by_name(creating.create_invoice_by_hand, _invoice),
    "GetInvoice": by_name(
        reading.get_invoice, lambda view: {"invoice": invoice_as_seen(invoice_to_message(view))}
    ),
    "ListInvoices": by_name(
        reading.list_invoices,
        lambda page: {
            "invoices": [invoice_as_seen(invoice_to_message(view)) for view in page.invoices],
            "total": page.total,
        },
        ascending="order",
    ),
    "GetDealMoney": by_name(deal_money.get_deal_money, deal_money_fields),
    "CancelInvoice": by_name(desk.cancel_invoice, _invoice),
    "CreateLink": by_name(links.create_link, lambda view: _link(view, LinkStatus.OPEN)),
    "ListLinks": by_name(
        links.list_links,
        lambda page: {
            "links": [
                link_to_message(
                    *(each.link, each.link.status(page.now)), note=each.link.note, payments=each.payments
                )
                for each in page.links
            ]
        },
    ),
    "CancelLink": by_name(links.cancel_link, lambda view: _link(view, LinkStatus.CANCELED)),
    "ListFinishedInvoices": by_name(
        verification.list_finished_invoices,
        lambda page: {
            "invoices": map(finished_to_message, page.finished),
            "unreadable": page.unreadable,
            "last_invoice_id": str(page.last_id or ""),
            "more": page.more,
        },
    ),
    "ReannounceInvoices": by_name(
        verification.reannounce_invoices,
        lambda done: {
            "invoice_ids": map(str, done.announced),
            "refused_invoice_ids": map(str, done.refused),
        },
    ),
    "ListForgottenFacts": list_forgotten_facts,
    "RestoreForgotten": restore_forgotten,
}
