"""The one fact of invoices, a finished invoice, and its hint that an invoice has changed, for open pages."""

import json
from collections.abc import Sequence
from uuid import UUID

from fiatgate.invoices.v1 import invoices_pb2
from kit.base.money import fiat_text, rate_text, usdt_text
from kit.base.proto import timestamp_from
from kit.events.subjects import durable_of, subject_of
from services.invoices.domain.states import (
    ADJUSTED_EVENT_TYPE,
    EVENT_TYPES,
    REASONS_WITHOUT_METHOD,
    InvoiceStatus,
)
from services.invoices.models import Deal, Invoice

FINISHED = subject_of(invoices_pb2.InvoiceFinished)
CONSUMERS = {
    durable_of(invoices_pb2.InvoiceFinished, consumer): FINISHED for consumer in ("withdrawals", "webhooks")
}
"""The durable consumers of the fact. Invoices makes them together with the stream: a process with the right to make a
consumer could have the fact delivered to any subject.
"""
CHANGED_HINT = subject_of(invoices_pb2.InvoiceChanged)
"""Followed by a point and the invoice's id. A hint may be lost: the page then updates by itself, only later."""


def changed_subject(invoice_id: UUID) -> str:
    """Returns the subject of the hint for the pages that show the invoice."""
    return f"{CHANGED_HINT}.{invoice_id}"


def invoice_finished(invoice: Invoice, deal: Deal | None) -> invoices_pb2.InvoiceFinished:
    """Returns the InvoiceFinished of a terminal invoice, with the same bytes each time."""
    status = InvoiceStatus(invoice.status)
    adjusted = deal.adjusted_amount if deal else None
    return invoices_pb2.InvoiceFinished(
        event_id=str(invoice.event_id),
        event_type=EVENT_TYPES[status] if adjusted is None else ADJUSTED_EVENT_TYPE,
        invoice_id=str(invoice.id),
        merchant_id=str(invoice.merchant_id),
        key_id=str(invoice.key_id),
        external_id=invoice.external_id,
        status=invoices_pb2.InvoiceStatus.Value(f"INVOICE_STATUS_{status.name}"),
        sub_status=deal.sub_status if deal else None,
        finished_at=timestamp_from(invoice.finished_at),
        expires_at=timestamp_from(invoice.expires_at),
        amount=fiat_text(invoice.amount if adjusted is None else adjusted),
        currency_code=invoice.currency_code,
        rate_usd=rate_text(deal.conversion_rate) if deal else None,
        callback_url=invoice.callback_url,
        success_url=invoice.success_url,
        fail_url=invoice.fail_url,
        is_adjusted=adjusted is not None,
        original_amount=None if adjusted is None else fiat_text(invoice.amount),
        adjusted_amount=None if adjusted is None else fiat_text(adjusted),
        reason=None if deal else REASONS_WITHOUT_METHOD.get(status),
        merchant_usdt=usdt_text(deal.merchant_usdt) if deal and deal.merchant_usdt is not None else None,
        metadata=metadata_to_messages(invoice.merchant_data),
    )


def metadata_to_messages(merchant_data: str | None) -> Sequence[invoices_pb2.Metadata]:
    """Returns what is stored of the request's metadata."""
    if merchant_data is None:
        return ()
    return [invoices_pb2.Metadata(key=key, value=value) for key, value in json.loads(merchant_data).items()]
