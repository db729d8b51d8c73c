"""What an operator does next when a call was refused: the command that shows what there is."""

from collections.abc import Mapping
from typing import Final

NEXT_STEPS: Final[Mapping[str, str]] = {
    "DB_UNAVAILABLE": "What is away: fiatgate status",
    "DEAL_NOT_FOUND": "The deals there are: fiatgate deals list",
    "DEAL_STATE_CONFLICT": "How it came to be so: fiatgate deals show ID",
    "CASE_NOT_FOUND": "The cases there are: fiatgate cases list",
    "MERCHANT_NOT_FOUND": "The merchants there are: fiatgate merchants list",
    "OWNER_NOT_FOUND": "The merchants with their owners: fiatgate merchants list",
    "API_KEY_NOT_FOUND": "The keys of a merchant, with their ids: fiatgate keys list MERCHANT",
    "CURRENCY_NOT_FOUND": "The currencies there are: fiatgate currencies list",
    "PAYMENT_METHOD_NOT_FOUND": "The methods there are: fiatgate methods list",
    "REQUISITE_NOT_FOUND": "The requisites there are: fiatgate requisites list",
    "NO_AVAILABLE_REQUISITES": "What is open on each account: fiatgate requisites list",
    "DEALS_SYSTEM_DISABLED": "New deals again: fiatgate deals system on",
    "RATE_JUMPS": "If it is right: fiatgate rates set CODE RATE --anyway",
    "RATE_NOT_HELD": "The rates, those that are held too: fiatgate rates list",
    "RATE_NOT_FOUND": "The rates there are: fiatgate rates list",
    "RATES_UNAVAILABLE": "How old they are: fiatgate rates list",
    "MERCHANT_CATEGORY_MISSING": "Give it one: fiatgate merchants set ID --category CODE",
    "MERCHANT_CATEGORY_NOT_FOUND": "The categories there are: fiatgate categories list",
    "WITHDRAWAL_NOT_FOUND": "The withdrawals there are: fiatgate withdrawals list",
    "WITHDRAWAL_STATE_CONFLICT": "How they stand: fiatgate withdrawals list",
    "WITHDRAWAL_METHOD_NOT_FOUND": "The methods there are: fiatgate withdrawals methods",
    "WITHDRAWAL_AMOUNT_INVALID": "The bounds of each method: fiatgate withdrawals methods",
    "INSUFFICIENT_BALANCE": "What is held for others: fiatgate withdrawals list --merchant ID --status pending",
    "WEBHOOK_EVENT_NOT_FOUND": "The events of an invoice: fiatgate webhooks list INVOICE_ID",
}
