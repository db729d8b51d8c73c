"""Reads one invoice, its story, and pages of invoices (docs/api.md#get-invoice)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base import actors
from kit.base.ids import parse_id
from kit.base.proto import most_of
from kit.rpc import values
from kit.rpc.actors import require_merchant
from services.invoices import errors
from services.invoices.domain.states import InvoiceStatus
from services.invoices.operations import fields
from services.invoices.store import invoice_lists, invoices, merchant_lists, stories
from services.invoices.store.invoice_lists import InvoiceFilter, InvoiceList
from services.invoices.store.merchant_lists import ListFilter, Page
from services.invoices.store.stories import InvoiceStory
from services.invoices.store.views import InvoiceView
from services.invoices.wiring import Deps


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
    customer_id: str = "",
    created_from: datetime | None = None,
    created_before: datetime | None = None,
    after_invoice_id: str = "",
) -> Page:
    """Returns one page. Raises INVOICES_NOT_FOUND when nothing matches at all; a page past the last is empty, and so is
    one after the last invoice. Raises INVOICE_NOT_FOUND for an `after_invoice_id` that is none of the merchant's.
    """
    values.page(page, per_page)
    if "\0" in (currency_code or ""):
        raise values.query_invalid("currency_code", "A currency's code has no NUL characters")
    owner = values.uuid("merchant_id", merchant_id)
    customer = values.text("customer_id", customer_id, least=0, most=_most("customer_id"))
    after_id = fields.invoice_id(after_invoice_id) if after_invoice_id else None
    with deps.db.transaction() as tx:
        connection = tx.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        after = None if after_id is None else invoice_lists.place_of_invoice(connection, after_id, owner)
        if after_id is not None and after is None:
            raise errors.invoice_not_found()
        wanted = ListFilter(
            owner, status, currency_code, customer, created_from, created_before, after, ascending
        )
        found = merchant_lists.invoice_page(connection, wanted, offset=(page - 1) * per_page, limit=per_page)
    if found.total == 0 and after is None:
        raise errors.invoices_not_found()
    return found


def list_all_invoices(
    deps: Deps,
    *,
    limit: int,
    merchant_id: str = "",
    status: InvoiceStatus | None = None,
    external_id: str = "",
    customer_id: str = "",
    amount: str = "",
    amount_from: str = "",
    amount_to: str = "",
    currency_code: str = "",
    method_code: str = "",
    created_from: datetime | None = None,
    created_before: datetime | None = None,
    after_invoice_id: str = "",
    invoice_ids: Sequence[str] = (),
    by_hand: bool = False,
) -> InvoiceList:
    """Returns the list over all merchants, newest first. An empty filter matches all; `amount` is both bounds.

    Raises VALIDATION_ERROR, and INVOICE_NOT_FOUND for an `after_invoice_id` that is unknown, or of another merchant
    than the member's.
    """

    def decimal(field: str, text: str) -> Decimal | None:
        return values.decimal(field, text) if text else None

    values.at_most("invoice_ids", invoice_ids, values.LIST_MOST_ROWS)
    exact = decimal("amount", amount)
    wanted = InvoiceFilter(
        merchant_id=values.uuid("merchant_id", merchant_id) if merchant_id else None,
        status=status,
        external_id=values.text("external_id", external_id, least=0, most=_most("external_id")),
        customer_id=values.text("customer_id", customer_id, least=0, most=_most("customer_id")),
        amount_from=decimal("amount_from", amount_from) if exact is None else exact,
        amount_to=decimal("amount_to", amount_to) if exact is None else exact,
        currency_code=values.text("currency_code", currency_code, least=0, most=3).upper(),
        method_code=values.text("payment_method_code", method_code, least=0, most=64),
        created_from=created_from,
        created_before=created_before,
        ids=[values.uuid("invoice_ids", each) for each in invoice_ids],
        by_hand=by_hand,
    )
    after = fields.invoice_id(after_invoice_id) if after_invoice_id else None
    with deps.db.autocommit() as connection:
        if after is not None:
            of_merchant = wanted.merchant_id if actors.current().surface == "dashboard" else None
            place = invoice_lists.place_of_invoice(connection, after, of_merchant)
            if place is None:
                raise errors.invoice_not_found()
            wanted = replace(wanted, after=place)
        return invoice_lists.newest_invoices(connection, wanted, values.rows(limit))


def _most(field: str) -> int:
    return most_of(pb.ListAllInvoicesRequest, field)


def get_invoice_story(deps: Deps, *, invoice_id: str) -> InvoiceStory:
    """Returns everything that is stored about the invoice. Raises INVOICE_NOT_FOUND, also for a member of another
    merchant.
    """
    with deps.db.autocommit() as connection:
        story = stories.invoice_story(connection, fields.invoice_id(invoice_id))
    if story is None:
        raise errors.invoice_not_found()
    require_merchant(story.invoice.merchant_id, errors.invoice_not_found)
    return story
