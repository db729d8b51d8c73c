"""Reads one invoice, and pages of invoices (docs/api.md#get-invoice)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kit.base.ids import parse_id
from kit.rpc import values
from services.invoices import errors
from services.invoices.domain.states import InvoiceStatus
from services.invoices.operations import fields
from services.invoices.store import invoices
from services.invoices.store.views import InvoiceView
from services.invoices.wiring import Deps


@dataclass(frozen=True)
class Page:
    """One page of the matching invoices; `total` counts all that match."""

    invoices: Sequence[InvoiceView]
    total: int


def get_invoice(deps: Deps, *, merchant_id: str, invoice_ref: str) -> InvoiceView:
    """Returns the merchant's invoice by UUID or external id. Raises INVOICE_NOT_FOUND."""
    if "\0" in invoice_ref:
        raise errors.invoice_not_found()
    owner = values.uuid("merchant_id", merchant_id)
    view = invoices.invoice_view_by_ref(deps.db, owner, invoice_ref, parse_id(invoice_ref))
    if view is None:
        raise errors.invoice_not_found()
    return view


def list_invoices(
    deps: Deps,
    *,
    merchant_id: str,
    page: int,
    per_page: int,
    status: InvoiceStatus | None,
    currency_code: str | None,
    ascending: bool,
) -> Page:
    """Returns one page. Raises INVOICES_NOT_FOUND when nothing matches at all; a page past the last is empty."""
    values.page(page, per_page)
    owner = values.uuid("merchant_id", merchant_id)
    with deps.db.autocommit() as connection:
        total = invoices.invoice_count(connection, owner, status, currency_code)
        if total == 0:
            raise errors.invoices_not_found()
        offset = (page - 1) * per_page
        if offset >= total:
            return Page([], total)
        found = invoices.invoice_page(
            connection, owner, status, currency_code, ascending=ascending, offset=offset, limit=per_page
        )
    return Page(found, total)


def list_all_invoices(
    deps: Deps,
    *,
    limit: int,
    merchant_id: str = "",
    status: InvoiceStatus | None = None,
    amount: str = "",
    created_from: datetime | None = None,
    created_before: datetime | None = None,
    after_invoice_id: str = "",
) -> Sequence[InvoiceView]:
    """Returns the operator's list over all merchants, newest first. An empty filter matches all.

    Raises VALIDATION_ERROR, and INVOICE_NOT_FOUND for an unknown `after_invoice_id`.
    """
    wanted = invoices.InvoiceFilter(
        merchant_id=values.uuid("merchant_id", merchant_id) if merchant_id else None,
        status=status,
        amount=values.decimal("amount", amount) if amount else None,
        created_from=created_from,
        created_before=created_before,
    )
    after = fields.invoice_id(after_invoice_id) if after_invoice_id else None
    with deps.db.autocommit() as connection:
        if after is not None:
            place = invoices.place_of_invoice(connection, after)
            if place is None:
                raise errors.invoice_not_found()
            wanted = replace(wanted, after=place)
        return invoices.newest_invoices(connection, wanted, values.rows(limit))
