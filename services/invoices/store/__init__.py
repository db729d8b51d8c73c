"""Every query of the invoices service, named by its result. No decisions are made here.

- `invoices`: invoices with their newest deal, and the outbox
- `deals`: deals with their history, requisites, the switch
- `shares`: the part of a payment method that one merchant may hold
- `cases`: late money and pictures
- `facts`: the signed facts of finished invoices
- `views`: the results of queries
"""

from services.invoices.store.cases import (
    case,
    case_of_invoice,
    insert_case_if_first,
    newest_cases,
    open_case_count,
    picture,
    pictures,
    resolve_case_if_open,
)
from services.invoices.store.deals import (
    DealFilter,
    MethodLoad,
    add_transition,
    deal,
    deal_history,
    deal_view,
    deals,
    deals_enabled,
    method_loads,
    open_deal,
    open_deal_counts,
    queue_for_requisites,
    release_requisite,
    requisite,
    requisite_to_show,
    requisites,
    set_deals_enabled,
    set_requisite_enabled,
)
from services.invoices.store.invoices import (
    create_if_allowed,
    finished_invoices,
    finished_invoices_after,
    invoice_count,
    invoice_page,
    invoice_view,
    invoice_view_by_id,
    invoice_view_by_ref,
    invoices_with_confirmation_due,
    invoices_with_unpaid_deal_due,
    locked_invoice,
    locked_invoice_of_deal,
    outbox_lag,
    waiting_invoices_due,
)
from services.invoices.store.shares import rooms

__all__ = [
    "DealFilter",
    "MethodLoad",
    "add_transition",
    "case",
    "case_of_invoice",
    "create_if_allowed",
    "deal",
    "deal_history",
    "deal_view",
    "deals",
    "deals_enabled",
    "finished_invoices",
    "finished_invoices_after",
    "insert_case_if_first",
    "invoice_count",
    "invoice_page",
    "invoice_view",
    "invoice_view_by_id",
    "invoice_view_by_ref",
    "invoices_with_confirmation_due",
    "invoices_with_unpaid_deal_due",
    "locked_invoice",
    "locked_invoice_of_deal",
    "method_loads",
    "newest_cases",
    "open_case_count",
    "open_deal",
    "open_deal_counts",
    "outbox_lag",
    "picture",
    "pictures",
    "queue_for_requisites",
    "release_requisite",
    "requisite",
    "requisite_to_show",
    "requisites",
    "resolve_case_if_open",
    "rooms",
    "set_deals_enabled",
    "set_requisite_enabled",
    "waiting_invoices_due",
]
