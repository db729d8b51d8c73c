"""The successful answers of the nine endpoints, field by field (docs/api.md#objects).

In the order of the converters of `gateway.api`, which write them; tests/gateway/test_openapi.py compares the two.
"""

from collections.abc import Mapping
from typing import Final

from gateway.api import invoices, webhooks, withdrawals
from gateway.json.problems import Json
from gateway.openapi.schemas import (
    choice,
    fiat,
    flag,
    list_of,
    moment,
    nullable,
    record,
    ref,
    text,
    true,
    url,
    usdt,
    uuid,
    whole,
)

INVOICE_ID: Final = "0192f0c1-2345-7abc-8def-0123456789ab"
DEAL_ID: Final = "0192f0c1-9a10-7c3e-9f00-5d2e8c7b6a19"
EVENT_UUID: Final = "0192f0c7-51d2-7e44-8a6b-f3c2d1e0b9a8"
WITHDRAWAL_ID: Final = "0192f1aa-0b5c-7d21-b3e4-a1b2c3d4e5f6"

_CREATED_AT: Final = "2026-01-15T12:00:00.120000+00:00"
_EXPIRES_AT: Final = "2026-01-15T12:30:00.120000+00:00"
_CHOSEN_UNTIL: Final = "2026-01-15T12:17:31.004000+00:00"
_PAID_AT: Final = "2026-01-15T12:06:10.511000+00:00"
_FINISHED_AT: Final = "2026-01-15T12:09:42.870000+00:00"


def _invoice(*, finished: bool) -> dict[str, Json]:
    """Returns the members that created and read invoices share; the example of a read one is paid."""
    return {
        "invoice_id": uuid(
            "The invoice's id, which Fiatgate chooses. In webhooks it is `order_id`.", INVOICE_ID
        ),
        "external_id": text("Your order id, as you sent it.", "order-1"),
        "amount": fiat("The requested amount.", "100.50"),
        "currency": text("Currency code.", "EUR", pattern="^[A-Z]{3}$"),
        "status": choice(
            "State of the invoice; all but `pending` are final.",
            invoices.STATUS_NAMES.values(),
            "success" if finished else "pending",
        ),
        "payment_link": url(
            "The hosted payment page: send your customer there.", f"https://pay.example.com/pay/{INVOICE_ID}"
        ),
        "customer_id": text("Your customer's id, as you sent it.", "alice"),
        "purpose": nullable(text("Text for the customer on the payment page.", "Two tickets")),
        "callback_url": nullable(
            url("Address for the webhook: yours, or the merchant's default.", "https://shop.example/webhooks")
        ),
        "success_url": nullable(
            url("Address for the customer after success.", "https://shop.example/thanks")
        ),
        "fail_url": nullable(
            url("Address for the customer after fail, expiry or cancel.", "https://shop.example/sorry")
        ),
        "created_at": moment("Time of creation.", _CREATED_AT),
        "expires_at": moment(
            "End of the time to choose a payment method. Once one is chosen, the deal's own expiry counts.",
            _EXPIRES_AT,
        ),
        "finished_at": nullable(
            moment("When it became final; null while pending.", _FINISHED_AT),
            example=_FINISHED_AT if finished else None,
        ),
    }


CREATED_INVOICE: Final = record("An invoice as create-invoice answers it.", _invoice(finished=False))

INVOICE: Final = record(
    "An invoice with its deal.",
    {
        **_invoice(finished=True),
        "method_selected": flag("True once the customer has chosen a payment method.", example=True),
        "deal": nullable(ref("Deal")),
    },
)

DEAL: Final = record(
    "The payment under an invoice, made when the customer chooses a method. After another choice, the newest one.",
    {
        "deal_id": uuid("The deal's id.", DEAL_ID),
        "status": choice(
            "State of the deal. Decide by the invoice's `status`, not by this one.",
            invoices.DEAL_STATUS_NAMES.values(),
            "completed",
        ),
        "sub_status": nullable(
            text(
                "Detail of `status`, such as `awaiting_confirmation`. New values may appear.",
                "successfully_paid",
            )
        ),
        "payment_method_code": nullable(text("The method's code.", "sepa")),
        "payment_method_name": nullable(text("The method's name.", "SEPA transfer")),
        "amount_fiat": nullable(fiat("Amount that the customer has to send, commission included.", "103.02")),
        "conversion_rate": nullable(fiat("Fiat per USDT, locked when the method was chosen.", "0.92")),
        "merchant_usdt": nullable(
            usdt("USDT credited to you; null until the deal is completed.", "106.508152")
        ),
        "expires_at": nullable(
            moment('End of the time in which the customer can press "I have paid".', _CHOSEN_UNTIL)
        ),
        "finished_at": nullable(moment("When the deal ended.", _FINISHED_AT)),
        "mark_paid_at": nullable(moment('When the customer pressed "I have paid".', _PAID_AT)),
    },
)

CURRENCY: Final = record(
    "A currency you can create invoices in.",
    {
        "currency": text("Currency code.", "EUR", pattern="^[A-Z]{3}$"),
        "decimal": whole("Number of decimal places of the currency.", 2, minimum=0),
        "symbol": text("The currency's sign.", "€"),
        "name": text("The currency's name.", "Euro"),
        "rate": fiat("Fiat per USDT, rounded down to 2 decimals.", "0.92"),
    },
)

PAYMENT_METHOD: Final = record(
    "A way to pay that your customers can choose.",
    {
        "name": text("The method's name.", "SEPA transfer"),
        "method_code": text("The method's code.", "sepa"),
        "min_sum": fiat("The smallest amount of an invoice.", "10.00"),
        "max_sum": fiat("The largest amount of an invoice.", "5000.00"),
        "logo_url": nullable(text("Address of the method's logo.", "https://pay.example.com/logos/sepa.svg")),
        "payment_time": whole("Minutes that the customer has to pay.", 15, minimum=1),
        "currency": record(
            "The method's currency.",
            {
                "code": text("Currency code.", "EUR", pattern="^[A-Z]{3}$"),
                "name": text("The currency's name.", "Euro"),
                "symbol": text("The currency's sign.", "€"),
            },
        ),
        "max_commission": fiat("The whole commission, percent.", "5.00"),
        "client_commission": fiat("The customer's part of the commission, percent.", "2.50"),
        "merchant_commission": fiat(
            "Your part of the commission, percent. Both parts add up to the whole.", "2.50"
        ),
    },
)

WITHDRAWAL: Final = record(
    "USDT on its way to your wallet.",
    {
        "withdraw_uuid": uuid("The withdrawal's id.", WITHDRAWAL_ID),
        "withdrawal_method_id": whole("Number of the withdrawal method: token and network.", 1),
        "address": text("Address of the wallet.", "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"),
        "address_memo": nullable(text("Memo or tag, on networks that need one.", ""), example=None),
        "amount": usdt("Amount that leaves your balance.", "25.000000"),
        "network_fee": usdt("Fee of the network, which is taken from `amount`.", "1.000000"),
        "amount_to_receive": usdt("Amount that arrives at the wallet.", "24.000000"),
        "status": choice(
            "State of the withdrawal; all but `pending` are final.",
            withdrawals.STATUS_NAMES.values(),
            "success",
        ),
        "substatus": nullable(
            text(
                "Detail of `status`: `processing`, `cancelled_by_user`, `cancelled_by_admin`, `failed`, "
                "`invalid_address`, `unknown`.",
                "",
            ),
            example=None,
        ),
        "external_tx_id": nullable(
            text("Hash of the blockchain's transaction, once the money is sent.", "9f2c61a4")
        ),
        "created_at": moment("Time of creation.", _CREATED_AT),
        "updated_at": moment("Time of the last change.", _FINISHED_AT),
        "processed_at": nullable(moment("When it ended.", _FINISHED_AT)),
    },
)

WEBHOOK_ATTEMPT: Final = record(
    "One delivery attempt.",
    {
        "try_number": whole("Number of the attempt, from 1.", 1, minimum=1),
        "trigger": choice(
            "`auto`: an automatic attempt; `manual`: a resend.", webhooks.TRIGGER_NAMES.values(), "auto"
        ),
        "attempt_status": choice(
            "Whether you answered 2xx in time.", webhooks.ATTEMPT_STATUS_NAMES.values(), "success"
        ),
        "http_status": nullable(whole("Status of your answer; null when none came.", 200)),
        "response_headers": nullable(
            {
                "type": "object",
                "description": "Headers of your answer.",
                "additionalProperties": {"type": "string"},
                "examples": [{"content-length": "2"}],
            }
        ),
        "response_body": nullable(text("Beginning of the body of your answer.", "ok")),
        "error_message": nullable(
            text("Reason of the failure; null when it did not fail.", ""), example=None
        ),
        "duration_ms": nullable(whole("Duration of the attempt, milliseconds.", 48, minimum=0)),
        "created_at": nullable(moment("Start of the attempt.", _FINISHED_AT)),
    },
)

WEBHOOK_EVENT: Final = record(
    "A webhook event and its delivery.",
    {
        "event_id": whole("Number of the event in the history. It is not the payload's `event_id`.", 42),
        "event_type": text(
            "`invoice.success`, `invoice.fail`, `invoice.expired`, `invoice.canceled`, or `invoice.adjusted` in "
            "place of success when the amount was adjusted.",
            "invoice.success",
        ),
        "status": choice(
            "State of the delivery; `dead` after the eighth failed attempt.",
            webhooks.EVENT_STATUS_NAMES.values(),
            "success",
        ),
        "callback_url": text("Address that the event is sent to.", "https://shop.example/webhooks"),
        "auto_attempts": whole("Number of automatic attempts.", 1, minimum=0),
        "manual_attempts": whole("Number of resends.", 0, minimum=0),
        "total_attempts": whole("Number of all attempts.", 1, minimum=0),
        "next_retry_at": nullable(
            moment("Time of the next automatic attempt; null when there is none.", _FINISHED_AT), example=None
        ),
        "locked_at": nullable(
            moment("Start of the attempt that is under way; null when none is.", _FINISHED_AT), example=None
        ),
        "locked_by": nullable(
            text("Worker that makes this attempt; null when none is under way.", ""), example=None
        ),
        "request_payload": ref("WebhookPayload"),
        "created_at": nullable(moment("Time of creation of the event.", _FINISHED_AT)),
        "updated_at": nullable(moment("Time of the last change.", _FINISHED_AT)),
        "attempts": list_of("In the order of `try_number`.", ref("WebhookAttempt")),
    },
)

WEBHOOK_PAYLOAD: Final = record(
    "Payload of a webhook: the same bytes at every attempt.",
    {
        "event_id": uuid("Deduplicate by this: an event may come more than once.", EVENT_UUID),
        "order_id": uuid("The invoice's id.", INVOICE_ID),
        "external_id": text("Your order id.", "order-1"),
        "status": choice(
            "How the invoice ended.",
            [name for name in invoices.STATUS_NAMES.values() if name != "pending"],
            "success",
        ),
        "sub_status": nullable(
            text("Detail of `status`; null when no method was chosen.", "successfully_paid")
        ),
        "finished_at": nullable(moment("When it ended.", _FINISHED_AT)),
        "expires_at": nullable(moment("The invoice's original expiry.", _EXPIRES_AT)),
        "amount": fiat("The final amount: use this one.", "100.50"),
        "currency": text("Currency code.", "EUR", pattern="^[A-Z]{3}$"),
        "rate_usd": nullable(fiat("Fiat per USDT, locked; null when no method was chosen.", "0.92")),
        "success_url": nullable(url("As in the invoice.", "https://shop.example/thanks")),
        "fail_url": nullable(url("As in the invoice.", "https://shop.example/sorry")),
        "is_adjusted": flag("True when the amount was lowered in a dispute; at most once.", example=False),
        "original_amount": nullable(fiat("The amount before the adjustment.", "100.50"), example=None),
        "adjusted_amount": nullable(
            fiat("The amount after it, the same as `amount`.", "90.00"), example=None
        ),
        "reason": nullable(
            choice(
                "Set when the invoice ended before a method was chosen, else null.",
                ["ttl_expired", "user_canceled"],
                "ttl_expired",
            ),
            example=None,
        ),
    },
)

RESEND: Final = record(
    "The result of the resend.",
    {
        "ok": flag("Whether you answered 2xx in time.", example=True),
        "http_status": nullable(whole("Status of your answer; null when none came.", 200)),
        "duration_ms": whole("Duration of the attempt, milliseconds.", 48, minimum=0),
        "attempt_id": whole("The attempt's number.", 7),
    },
)

COMPONENTS: Final[Mapping[str, Json]] = {
    "CreatedInvoice": CREATED_INVOICE,
    "Invoice": INVOICE,
    "Deal": DEAL,
    "Currency": CURRENCY,
    "PaymentMethod": PAYMENT_METHOD,
    "Withdrawal": WITHDRAWAL,
    "WebhookEvent": WEBHOOK_EVENT,
    "WebhookAttempt": WEBHOOK_ATTEMPT,
    "WebhookPayload": WEBHOOK_PAYLOAD,
}


def one(name: str) -> Json:
    """Returns the schema of `{successful, data}` with one object."""
    return record("", {"successful": true(), "data": ref(name)})


def all_of(name: str) -> Json:
    """Returns the schema of `{successful, data}` with a list of all objects."""
    return record("", {"successful": true(), "data": list_of("All of them.", ref(name))})


def page_of(name: str) -> Json:
    """Returns the answer of a paged list (docs/api.md#list-invoices)."""
    return record(
        "",
        {
            "successful": true(),
            "page": whole("The requested page.", 1, minimum=1),
            "per_page": whole("Items on a page, as requested.", 20, minimum=1),
            "total": whole("Number of matches on all pages.", 1, minimum=0),
            "total_pages": whole("Pages in all.", 1, minimum=0),
            "data": list_of("This page; empty past the last.", ref(name)),
        },
    )


HISTORY: Final = record(
    "",
    {
        "successful": true(),
        "invoice_id": uuid("The invoice's id.", INVOICE_ID),
        "external_id": nullable(text("Your order id.", "order-1")),
        "events_count": whole("Number of events; 0 while the invoice is pending.", 1, minimum=0),
        "events": list_of("Newest first.", ref("WebhookEvent")),
    },
)

RESENT: Final = record(
    "",
    {
        "successful": true(),
        "invoice_id": uuid("The invoice's id.", INVOICE_ID),
        "event_id": whole("The event that was resent, as in the history.", 42),
        "resend": RESEND,
    },
)
