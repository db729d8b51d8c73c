"""The nine endpoints: the parameters and the body of each, and each code it can refuse with (docs/api.md)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gateway.api import invoices, withdrawals
from gateway.api.paging import PER_PAGE_DEFAULT
from gateway.api.references import MAX_CHARACTERS
from gateway.json.problems import Json
from gateway.openapi.answers import HISTORY, INVOICE_ID, RESENT, WITHDRAWAL_ID, all_of, one, page_of
from gateway.openapi.schemas import ref
from kit.rpc.values import PAGE_MOST_ROWS


@dataclass(frozen=True, kw_only=True)
class Operation:
    """reasons         the codes that it can refuse with, besides those of any request
    invalid_fields  whether it has the 422 shape of a validation error too
    """

    method: str
    path: str
    id: str
    tag: str
    summary: str
    description: str
    answer: Json
    answered: str
    reasons: tuple[str, ...]
    parameters: tuple[Json, ...] = ()
    status: int = 200
    has_body: bool = False
    invalid_fields: bool = False


def _query(name: str, description: str, schema: Json, example: object) -> Json:
    return {"name": name, "in": "query", "description": description, "schema": schema, "example": example}


_INVOICE_REF: Final[Json] = {
    "name": "invoice_ref",
    "in": "path",
    "required": True,
    "description": "The invoice's id, or your `external_id`, percent-encoded.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_CHARACTERS},
    "example": INVOICE_ID,
}
_PAGING: Final = (
    _query("page", "Number of the page, from 1.", {"type": "integer", "minimum": 1, "default": 1}, 1),
    _query(
        "per_page",
        "Number of items on a page.",
        {"type": "integer", "minimum": 1, "maximum": PAGE_MOST_ROWS, "default": PER_PAGE_DEFAULT},
        PER_PAGE_DEFAULT,
    ),
)
_CURRENCY_CODE: Final[Json] = {"type": "string", "pattern": "^[A-Za-z]{3}$"}


def _one_of(name: str, description: str, names: Iterable[str], example: str, **more: str) -> Json:
    return _query(name, description, {"type": "string", "enum": list(names), **more}, example)


def _order(orders: Iterable[str]) -> Json:
    return _one_of("order", "By `created_at`, newest or oldest first.", orders, "desc", default="desc")


OPERATIONS: Final = (
    Operation(
        method="post",
        path="/api/v1/create-invoice",
        id="createInvoice",
        tag="Invoices",
        summary="Create an invoice",
        description="Creates a pending invoice. Send the customer to its `payment_link`.\n\n"
        "`external_id` makes it safe to repeat: a second request with the same one creates nothing and is answered "
        "with `DUPLICATE_EXTERNAL_ID`, which names the first invoice. When an answer is lost, send the request "
        "again.\n\n"
        "Each of the three URLs may be left out when the merchant has a default for it.",
        has_body=True,
        status=201,
        answered="The invoice itself, without a wrapper.",
        answer=ref("CreatedInvoice"),
        invalid_fields=True,
        reasons=(
            "DUPLICATE_EXTERNAL_ID",
            "PENDING_INVOICE_EXISTS",
            "CUSTOMER_RATE_LIMIT",
            "CURRENCY_INVALID",
            "PAYMENT_METHOD_NOT_FOUND",
            "AMOUNT_BELOW_MIN",
            "AMOUNT_ABOVE_MAX",
            "MISSING_REQUIRED_URLS",
            "NO_AVAILABLE_REQUISITES",
            "DEALS_SYSTEM_DISABLED",
        ),
    ),
    Operation(
        method="get",
        path="/api/v1/invoices/{invoice_ref}",
        id="getInvoice",
        tag="Invoices",
        summary="Get an invoice",
        description="Returns one invoice, by its id or by your `external_id`.",
        parameters=(_INVOICE_REF,),
        answered="The invoice.",
        answer=one("Invoice"),
        reasons=("INVOICE_NOT_FOUND",),
    ),
    Operation(
        method="get",
        path="/api/v1/invoices",
        id="listInvoices",
        tag="Invoices",
        summary="List invoices",
        description="Returns one page of your invoices, filtered and ordered as you request.",
        parameters=(
            *_PAGING,
            _one_of("status", "Only invoices with this status.", invoices.STATUSES, "success"),
            _query("currency", "Only invoices in this currency; upper or lower case.", _CURRENCY_CODE, "EUR"),
            _order(invoices.ORDERS),
        ),
        answered="One page.",
        answer=page_of("Invoice"),
        invalid_fields=True,
        reasons=("INVOICES_NOT_FOUND",),
    ),
    Operation(
        method="get",
        path="/api/v1/invoices/{invoice_ref}/webhooks",
        id="listInvoiceWebhooks",
        tag="Webhooks",
        summary="Webhook history of an invoice",
        description="Returns each webhook event of the invoice with its attempts.",
        parameters=(_INVOICE_REF,),
        answered="The events; none while the invoice is pending.",
        answer=HISTORY,
        reasons=("INVOICE_NOT_FOUND",),
    ),
    Operation(
        method="post",
        path="/api/v1/invoices/{invoice_ref}/webhooks/resend",
        id="resendInvoiceWebhook",
        tag="Webhooks",
        summary="Resend the latest webhook",
        description="Sends the latest event of the invoice now, whatever its status, and waits for your endpoint's "
        "answer, at most 15 seconds. The request has no body. A success sets the event to `success` and ends the "
        "automatic retries. A failure changes nothing, and the automatic retries go on.",
        parameters=(_INVOICE_REF,),
        answered="The event was sent. `resend.ok` is true when your endpoint answered 2xx in time.",
        answer=RESENT,
        reasons=(
            "INVOICE_NOT_FOUND",
            "WEBHOOK_NOT_FOUND",
            "WEBHOOK_RESEND_COOLDOWN",
            "WEBHOOK_RESEND_CONFLICT",
        ),
    ),
    Operation(
        method="get",
        path="/api/v1/currencies",
        id="listCurrencies",
        tag="Currencies and payment methods",
        summary="List currencies",
        description="Returns the currencies that you can create invoices in, with their rates.",
        answered="All currencies.",
        answer=all_of("Currency"),
        reasons=("RATES_UNAVAILABLE", "RATES_INVALID", "RATE_INVALID", "RATE_NOT_FOUND"),
    ),
    Operation(
        method="get",
        path="/api/v1/payment-methods",
        id="listPaymentMethods",
        tag="Currencies and payment methods",
        summary="List payment methods",
        description="Returns the payment methods that your customers can choose, with amounts and commissions.",
        parameters=(
            _query("currency", "Only methods of this currency; upper or lower case.", _CURRENCY_CODE, "EUR"),
        ),
        answered="All payment methods.",
        answer=all_of("PaymentMethod"),
        invalid_fields=True,
        reasons=(
            "CURRENCY_NOT_FOUND",
            "MERCHANT_CATEGORY_MISSING",
            "MERCHANT_CATEGORY_NOT_FOUND",
            "MERCHANT_CATEGORY_RATE_INVALID",
        ),
    ),
    Operation(
        method="get",
        path="/api/v1/withdrawals",
        id="listWithdrawals",
        tag="Withdrawals",
        summary="List withdrawals",
        description="Returns one page of your withdrawals, filtered and ordered as you request.",
        parameters=(
            *_PAGING,
            _one_of("status", "Only withdrawals with this status.", withdrawals.STATUSES, "success"),
            _order(withdrawals.ORDERS),
        ),
        answered="One page.",
        answer=page_of("Withdrawal"),
        invalid_fields=True,
        reasons=("WITHDRAWALS_NOT_FOUND",),
    ),
    Operation(
        method="get",
        path="/api/v1/withdrawals/{withdraw_uuid}",
        id="getWithdrawal",
        tag="Withdrawals",
        summary="Get a withdrawal",
        description="Returns one withdrawal, by its id.",
        parameters=(
            {
                "name": "withdraw_uuid",
                "in": "path",
                "required": True,
                "description": "The withdrawal's id.",
                "schema": {"type": "string", "format": "uuid"},
                "example": WITHDRAWAL_ID,
            },
        ),
        answered="The withdrawal.",
        answer=one("Withdrawal"),
        reasons=("WITHDRAWAL_NOT_FOUND",),
    ),
)
