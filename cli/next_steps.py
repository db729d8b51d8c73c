"""The next command for an operator, by the code of a refusal, with values of its metadata."""

from collections.abc import Mapping
from typing import Final

NEXT_STEPS: Final[Mapping[str, str]] = {
    "APPROVAL_REQUIRED": "The other person: fiatgate approvals approve {approval_id} --as THEIR_EMAIL",
    "APPROVAL_NOT_FOUND": "All requests: fiatgate approvals list --state all",
    "APPROVAL_STATE_CONFLICT": "All requests: fiatgate approvals list --state all",
    "OTHER_PERSON_REQUIRED": "The other person: … --as THEIR_EMAIL. To withdraw it: fiatgate approvals reject ID",
    "DB_UNAVAILABLE": "The health of all services: fiatgate status",
    "DEAL_NOT_FOUND": "All deals: fiatgate deals list",
    "DEAL_STATE_CONFLICT": "One in appeal ends with `deals resolve`. Its history: fiatgate deals show ID",
    "CASE_NOT_FOUND": "All cases: fiatgate cases list",
    "MERCHANT_NOT_FOUND": "All merchants: fiatgate merchants list",
    "OWNER_NOT_FOUND": "All merchants with their owners: fiatgate merchants list",
    "API_KEY_NOT_FOUND": "The keys of a merchant, with their ids: fiatgate keys list MERCHANT",
    "CURRENCY_NOT_FOUND": "All currencies: fiatgate currencies list",
    "PAYMENT_METHOD_NOT_FOUND": "All methods: fiatgate methods list",
    "REQUISITE_NOT_FOUND": "All requisites: fiatgate requisites list",
    "NO_AVAILABLE_REQUISITES": "The open deals of each requisite: fiatgate requisites list",
    "DEALS_SYSTEM_DISABLED": "To switch it on: fiatgate deals system on",
    "PERSON_NOT_FOUND": "All operators, or with --merchant ID the members of a merchant: fiatgate people list",
    "SESSION_NOT_FOUND": "The sessions of a person: fiatgate people sessions PERSON",
    "INVITATION_NOT_FOUND": "All open ones: fiatgate people invitations",
    "LAST_ADMIN": "To make another one: fiatgate people invite EMAIL --name NAME --role admin",
    "LAST_OWNER": "To make another one: fiatgate people invite EMAIL --name NAME --role owner --merchant ID",
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

APPROVE_IT: Final = "With the same --as: fiatgate approvals approve {approval_id}"
"""The next command after APPROVAL_REQUIRED for the person who can approve the request: it has `requested_by`."""


def next_step(reason: str, metadata: Mapping[str, str]) -> str | None:
    """Returns the line below a refusal."""
    step = (
        APPROVE_IT if reason == "APPROVAL_REQUIRED" and "requested_by" in metadata else NEXT_STEPS.get(reason)
    )
    return step and step.format_map(metadata)
