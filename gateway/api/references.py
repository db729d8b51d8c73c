"""`{invoice_ref}` of the paths: an invoice's UUID or the merchant's external_id, percent-encoded."""

from typing import Final
from urllib.parse import unquote_to_bytes

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import most_of
from kit.rpc.errors import Refused, not_found

MAX_CHARACTERS: Final = most_of(pb.CreateInvoiceRequest, "external_id")


def invoice_ref_from(segment: str) -> str:
    """Returns the reference in a raw path segment, decoded once. Raises INVOICE_NOT_FOUND for a text that can't be
    one.
    """
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise invoice_not_found() from None
    if not 1 <= len(text) <= MAX_CHARACTERS or "\x00" in text:
        raise invoice_not_found()
    return text


def invoice_not_found() -> Refused:
    return not_found("INVOICE_NOT_FOUND", "Invoice not found")
