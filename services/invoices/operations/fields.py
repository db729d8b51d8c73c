"""Checks of request values that are rules of this service; those of all services are in kit/rpc/values.py."""

from uuid import UUID

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import most_of
from kit.rpc import values
from services.invoices import errors
from services.invoices.domain.states import SUB_STATUSES

NOTE_MAX_CHARACTERS = most_of(pb.OpenCustomerAppealRequest, "note")


def note(value: str) -> str:
    return values.text("note", value, least=0, most=NOTE_MAX_CHARACTERS)


def sub_status(value: str) -> str:
    """Returns a sub_status that deals can have, or ""."""
    if value and value not in SUB_STATUSES:
        raise values.invalid("sub_status", f"Expected one of {', '.join(sorted(SUB_STATUSES))}")
    return value


def invoice_id(value: str) -> UUID:
    """Returns the id. Raises INVOICE_NOT_FOUND: text that is no UUID names no invoice."""
    return values.uuid_or(errors.invoice_not_found, value)


def deal_id(value: str) -> UUID:
    """Returns the id. Raises DEAL_NOT_FOUND."""
    return values.uuid_or(errors.deal_not_found, value)


def requisite_id(value: str) -> UUID:
    """Returns the id. Raises REQUISITE_NOT_FOUND."""
    return values.uuid_or(errors.requisite_not_found, value)
