"""Every reason that this service can raise, one constructor each; error_reason.proto has their meanings."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from kit.base.money import fiat_text
from kit.rpc import values
from kit.rpc.errors import (
    Refused,
    already_exists,
    denied,
    exhausted,
    invalid,
    not_found,
    precondition,
    unavailable,
)
from services.invoices.domain.creating import CreationFacts


def too_many_decimals(currency_code: str, decimals: int) -> Refused:
    message = f"An amount in {currency_code} has at most {decimals} decimal places"
    return values.query_invalid("amount", message)


def nats_unavailable() -> Refused:
    return unavailable("DB_UNAVAILABLE", "NATS does not answer, retry later")


def nats_refuses(refusal: str) -> Refused:
    message = (
        f"NATS refuses the user `invoices` a right ({refusal}). Give its server the rights of this version: "
        "docs/operations/install.md#users-of-nats"
    )
    return unavailable("DB_UNAVAILABLE", message)


def deals_system_disabled() -> Refused:
    return unavailable("DEALS_SYSTEM_DISABLED", "New payments can't be taken for the moment, retry later")


def currency_invalid(currency_code: str) -> Refused:
    return invalid(
        "CURRENCY_INVALID", f"Currency {currency_code} is unknown or disabled", currency=currency_code
    )


def missing_required_urls(fields: list[str]) -> Refused:
    names = ", ".join(fields)
    message = f"{names} must be given in the request or as the merchant's defaults"
    return invalid("MISSING_REQUIRED_URLS", message, fields=",".join(fields))


def duplicate_external_id(facts: CreationFacts) -> Refused:
    return already_exists(
        "DUPLICATE_EXTERNAL_ID",
        "An invoice with this external_id exists",
        invoice_id=str(facts.duplicate_id),
        status=str(facts.duplicate_status),
        amount=fiat_text(facts.duplicate_amount or Decimal(0)),
        currency=str(facts.duplicate_currency),
    )


def amount_below_min(currency_code: str, minimum: Decimal) -> Refused:
    message = f"The least amount in {currency_code} is {fiat_text(minimum)}"
    return invalid("AMOUNT_BELOW_MIN", message, minimum=fiat_text(minimum), currency=currency_code)


def amount_above_max(currency_code: str, maximum: Decimal) -> Refused:
    message = f"The largest amount in {currency_code} is {fiat_text(maximum)}"
    return invalid("AMOUNT_ABOVE_MAX", message, maximum=fiat_text(maximum), currency=currency_code)


def no_method_for_amount(currency_code: str) -> Refused:
    message = f"No active payment method takes this amount in {currency_code}"
    return invalid("PAYMENT_METHOD_NOT_FOUND", message, currency=currency_code)


def method_not_for_invoice(method_code: str) -> Refused:
    message = "This payment method does not fit the invoice"
    return invalid("PAYMENT_METHOD_NOT_FOUND", message, method_code=method_code)


def pending_invoice_exists(invoice_id: UUID) -> Refused:
    message = "The customer has a pending invoice; it must be paid, canceled or expire first"
    return already_exists("PENDING_INVOICE_EXISTS", message, invoice_id=str(invoice_id))


def customer_rate_limit(
    customer_id: str, *, limit: int, window_minutes: int, next_allowed_at: datetime
) -> Refused:
    return denied(
        "CUSTOMER_RATE_LIMIT",
        f"The customer has {limit} unpaid invoices within {window_minutes} minutes",
        window_minutes=str(window_minutes),
        limit=str(limit),
        next_allowed_at=next_allowed_at.isoformat(),
        customer_id=customer_id,
    )


def owner_blocked() -> Refused:
    return denied("OWNER_BLOCKED", "Merchant account owner is blocked")


def merchant_not_active() -> Refused:
    return denied("MERCHANT_NOT_ACTIVE", "Merchant account is not yet activated")


def merchant_blocked() -> Refused:
    return denied("MERCHANT_BLOCKED", "Merchant account is banned")


def no_available_requisites(causes: Mapping[str, str] | None = None) -> Refused:
    """Returns NO_AVAILABLE_REQUISITES. The `causes`, by method, are for operators: the gateway does not pass them
    on.
    """
    message = "No account is free to take this payment now, retry later"
    text = "; ".join(f"{method_code}: {cause}" for method_code, cause in (causes or {}).items())
    return unavailable("NO_AVAILABLE_REQUISITES", message, **({"causes": text} if text else {}))


def invoice_not_found() -> Refused:
    return not_found("INVOICE_NOT_FOUND", "No such invoice")


def invoices_not_found() -> Refused:
    return not_found("INVOICES_NOT_FOUND", "No invoice matches")


def invoice_finished(status: str) -> Refused:
    return precondition("INVOICE_FINISHED", f"The invoice is {status}", status=status)


def deal_not_found() -> Refused:
    return not_found("DEAL_NOT_FOUND", "No such deal")


def deal_state_conflict(message: str, *, status: str = "", sub_status: str = "") -> Refused:
    return precondition("DEAL_STATE_CONFLICT", message, status=status, sub_status=sub_status)


def link_not_found() -> Refused:
    return not_found("LINK_NOT_FOUND", "No such payment link")


def link_ended(status: str) -> Refused:
    return precondition("LINK_ENDED", f"The payment link is {status}", status=status)


def link_busy(most: int) -> Refused:
    return exhausted(
        "LINK_BUSY", f"The payment link has {most} invoices that wait for payment", most=str(most)
    )


def case_not_found() -> Refused:
    return not_found("CASE_NOT_FOUND", "No such case")


def case_state_conflict() -> Refused:
    return precondition("CASE_STATE_CONFLICT", "The case is closed; its answer was given to the customer")


def case_answered() -> Refused:
    return precondition("CASE_STATE_CONFLICT", "The merchant has answered already")


def picture_not_found() -> Refused:
    return not_found("PROOF_NOT_FOUND", "The customer sent no picture with it")


def adjustment_invalid(amount: Decimal, original_amount: Decimal) -> Refused:
    message = f"A lower amount is above zero and below {fiat_text(original_amount)}"
    return invalid(
        "ADJUSTMENT_INVALID", message, amount=f"{amount:f}", original_amount=fiat_text(original_amount)
    )


def requisite_not_found() -> Refused:
    return not_found("REQUISITE_NOT_FOUND", "No such requisite")


def lines_differ(due: Decimal) -> Refused:
    message = f"The lines do not come to the deal's {fiat_text(due)}"
    return precondition("BANK_LINE_CONFLICT", message, due=fiat_text(due))


def line_used_up() -> Refused:
    return precondition("BANK_LINE_CONFLICT", "A line has paid other deals, and not enough of it is left")


def deal_linked() -> Refused:
    return precondition("BANK_LINE_CONFLICT", "The deal is linked to bank lines already")
