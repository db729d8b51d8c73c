"""The next command for an operator, by the code of a refusal, with values of its metadata."""

from collections.abc import Mapping
from typing import Final

NEXT_STEPS: Final[Mapping[str, str]] = {
    "APPROVAL_REQUIRED": "The other person: fiatgate approvals approve {approval_id}",
    "APPROVAL_NOT_FOUND": "All requests: fiatgate approvals list --state all",
    "APPROVAL_STATE_CONFLICT": "All requests: fiatgate approvals list --state all",
    "OTHER_PERSON_REQUIRED": "To withdraw it: fiatgate approvals reject ID",
    "DB_UNAVAILABLE": "The health of all services: fiatgate status",
    "DEAL_NOT_FOUND": "All deals: fiatgate deals list",
    "DEAL_STATE_CONFLICT": "Its history: fiatgate deals show ID",
    "CASE_NOT_FOUND": "All cases: fiatgate cases list",
    "MERCHANT_NOT_FOUND": "All merchants: fiatgate merchants list",
    "OWNER_NOT_FOUND": "All merchants with their owners: fiatgate merchants list",
    "API_KEY_NOT_FOUND": "The keys of a merchant, with their ids: fiatgate keys list MERCHANT",
    "CURRENCY_NOT_FOUND": "All currencies: fiatgate currencies list",
    "PAYMENT_METHOD_NOT_FOUND": "All methods: fiatgate methods list",
    "REQUISITE_NOT_FOUND": "All requisites: fiatgate requisites list",
    "NO_AVAILABLE_REQUISITES": "The open deals of each requisite: fiatgate requisites list",
    "DEALS_SYSTEM_DISABLED": "To switch it on: fiatgate deals system on",
    "RATE_JUMPS": "If the rate is right: fiatgate rates set CODE RATE --anyway",
    "RATE_NOT_HELD": "All rates, held ones too: fiatgate rates list",
    "RATE_NOT_FOUND": "All rates: fiatgate rates list",
    "RATES_UNAVAILABLE": "All rates with their time: fiatgate rates list",
    "MERCHANT_CATEGORY_MISSING": "To set one: fiatgate merchants set ID --category CODE",
    "MERCHANT_CATEGORY_NOT_FOUND": "All categories: fiatgate categories list",
    "WITHDRAWAL_NOT_FOUND": "All withdrawals: fiatgate withdrawals list",
    "WITHDRAWAL_STATE_CONFLICT": "Their states: fiatgate withdrawals list",
    "WITHDRAWAL_METHOD_NOT_FOUND": "All methods: fiatgate withdrawals methods",
    "WITHDRAWAL_AMOUNT_INVALID": "The bounds of each method: fiatgate withdrawals methods",
    "INSUFFICIENT_BALANCE": "The withdrawals that hold it: fiatgate withdrawals list --merchant ID --status pending",
    "WEBHOOK_EVENT_NOT_FOUND": "The events of an invoice: fiatgate webhooks list INVOICE_ID",
}
