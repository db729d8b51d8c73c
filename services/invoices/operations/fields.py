"""Checks of request values that are rules of this service; those of all services are in kit/rpc/values.py."""

import unicodedata
from collections.abc import Sequence
from functools import partial
from uuid import UUID

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base import account_forms
from kit.base.account_forms import AccountKind, normal_form
from kit.base.codes import parse_code
from kit.base.proto import most_of
from kit.rpc import values
from services.invoices import errors
from services.invoices.domain.names import is_name
from services.invoices.domain.states import SUB_STATUSES

ACCOUNT_MAX_CHARACTERS = most_of(pb.AddRequisiteRequest, "account")
SENDER_NAME_MAX_CHARACTERS = most_of(pb.MarkPaidRequest, "sender_name")
NOTE_MAX_CHARACTERS = most_of(pb.OpenCustomerAppealRequest, "note")


def note(value: str) -> str:
    return values.text("note", value, least=0, most=NOTE_MAX_CHARACTERS)


def sender_name(value: str) -> str:
    """Returns the name with one blank between its words."""
    name = " ".join(values.text("sender_name", value, most=SENDER_NAME_MAX_CHARACTERS).split())
    if not is_name(name):
        raise values.invalid("sender_name", "Expected a name on one line, without control characters")
    return name


def reference(value: str) -> str:
    """Returns a payment reference in its stored form, however it was typed."""
    found = parse_code(value)
    if found is None:
        raise values.invalid("reference", "This is no payment reference: one looks like 7K3M 9QTX")
    return found


def account(value: str, kind: AccountKind) -> str:
    """Returns an account of this kind in its normal form. Digits and letters of full width are stored as usual ones."""
    typed = values.text("account", unicodedata.normalize("NFKC", value), most=ACCOUNT_MAX_CHARACTERS)
    return values.parsed("account", typed, partial(normal_form, kind))


def account_key(value: str) -> str:
    """Returns an account as lists compare it, however it was typed."""
    key = account_forms.account_key(values.text("account", value, most=ACCOUNT_MAX_CHARACTERS))
    if not key:
        raise values.invalid("account", "An account has letters or digits")
    return key


def sub_status(value: str) -> str:
    """Returns a sub_status that deals can have, or ""."""
    if value and value not in SUB_STATUSES:
        raise values.invalid("sub_status", f"Expected one of {', '.join(sorted(SUB_STATUSES))}")
    return value


def one_of(field: str, value: str, known: Sequence[str]) -> str:
    """Returns the value if it is one of those."""
    if value not in known:
        raise values.invalid(field, f"Expected one of {', '.join(known)}")
    return value


def invoice_id(value: str) -> UUID:
    """Returns the id. Raises INVOICE_NOT_FOUND: text that is no UUID names no invoice."""
    return values.uuid_or(errors.invoice_not_found, value)


def deal_id(value: str) -> UUID:
    """Returns the id. Raises DEAL_NOT_FOUND."""
    return values.uuid_or(errors.deal_not_found, value)


def link_id(value: str) -> UUID:
    """Returns the id. Raises LINK_NOT_FOUND."""
    return values.uuid_or(errors.link_not_found, value)


def requisite_id(value: str) -> UUID:
    """Returns the id. Raises REQUISITE_NOT_FOUND."""
    return values.uuid_or(errors.requisite_not_found, value)
