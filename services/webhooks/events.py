"""The one fact that webhooks consumes: an invoice reached a terminal status."""

from uuid import UUID

from fiatgate.invoices.v1 import invoices_pb2
from kit.base.proto import datetime_from, optional
from services.webhooks.domain import FinishedInvoice

# The final states, as the payload names them. An invoice in any other state must not become a webhook.
_STATUSES = {
    invoices_pb2.INVOICE_STATUS_SUCCESS: "success",
    invoices_pb2.INVOICE_STATUS_FAIL: "fail",
    invoices_pb2.INVOICE_STATUS_EXPIRED: "expired",
    invoices_pb2.INVOICE_STATUS_CANCELED: "canceled",
}


def finished_invoice_from_message(message: invoices_pb2.InvoiceFinished) -> FinishedInvoice:
    """Returns the fact with Python's types.

    Raises ValueError when an id or the status is not of the documented form: the consumer parks such a message.
    """
    status = _STATUSES.get(message.status)
    if status is None:
        raise ValueError(f"invoice {message.invoice_id}: status {message.status} is not terminal")
    return FinishedInvoice(
        event_id=UUID(message.event_id),
        event_type=message.event_type,
        invoice_id=UUID(message.invoice_id),
        merchant_id=UUID(message.merchant_id),
        key_id=UUID(message.key_id),
        external_id=message.external_id,
        status=status,
        sub_status=optional(message, "sub_status"),
        finished_at=datetime_from(message.finished_at),
        expires_at=datetime_from(message.expires_at),
        amount=message.amount,
        currency=message.currency_code,
        rate_usd=optional(message, "rate_usd"),
        callback_url=optional(message, "callback_url"),
        success_url=optional(message, "success_url"),
        fail_url=optional(message, "fail_url"),
        is_adjusted=message.is_adjusted,
        original_amount=optional(message, "original_amount"),
        adjusted_amount=optional(message, "adjusted_amount"),
        reason=optional(message, "reason"),
        metadata={each.key: each.value for each in message.metadata},
    )
