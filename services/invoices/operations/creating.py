"""Creates an invoice, in one statement (docs/decisions/0001-create-invoice-in-one-statement.md). One by hand has an act
beside it (docs/decisions/0036-tools-of-members-use-the-code-of-the-api.md).
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar
from uuid import UUID

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from kit.audit import acts
from kit.base.ids import secret_id
from kit.base.money import has_decimals, parse_decimal
from kit.base.proto import most_of
from kit.egress.address import URL_MAX_CHARACTERS
from kit.rpc import values
from kit.rpc.errors import Refused, conflict
from services.invoices import errors
from services.invoices.clients import CatalogSnapshot, CurrencyTerms, MethodTerms
from services.invoices.domain import creating, money
from services.invoices.domain.creating import NO_KEY, CreationFacts, CreationRefusal, NewInvoice
from services.invoices.domain.places import Wanted
from services.invoices.operations import checkout, scarcity, simulation, timers
from services.invoices.store import invoices
from services.invoices.store.decisions import seal_of_invoice
from services.invoices.wiring import Deps

# Another create may win the race for the external id or the customer: the next attempt sees its row.
ATTEMPTS = 5

EXTERNAL_ID_MAX_CHARACTERS = most_of(pb.CreateInvoiceRequest, "external_id")
CUSTOMER_ID_MAX_CHARACTERS = most_of(pb.CreateInvoiceRequest, "customer_id")
PURPOSE_MAX_CHARACTERS = most_of(pb.CreateInvoiceRequest, "purpose")

VALID_DAYS_MOST: Final = 90
"""The longest time in which the customer of an invoice by hand can choose a method, and that of a payment link."""
URLS: Final = ("callback_url", "success_url", "fail_url")
UNADDRESSABLE: Final = (".", "..")
"""External ids that clients take out of a path; the gateway refuses them too (`gateway/json/body.py`)."""

T = TypeVar("T")


def create_invoice(
    deps: Deps,
    *,
    merchant: merchants_pb2.Merchant,
    key_id: str,
    amount: str,
    currency_code: str,
    customer_id: str,
    external_id: str,
    purpose: str | None,
    callback_url: str | None,
    success_url: str | None,
    fail_url: str | None,
    metadata: Sequence[pb.Metadata] = (),
) -> NewInvoice:
    """Creates a pending invoice. `amount` is fiat, digits with at most as many decimals as the currency has.

    Raises the reasons of InvoicesService.CreateInvoice in the order of docs/api.md#create-invoice.
    """
    simulation.refuse_magic(deps, customer_id)
    return _create(
        deps,
        merchant,
        key_id=values.uuid("key_id", key_id),
        amount=amount,
        currency_code=currency_code,
        customer_id=customer_id,
        external_id=external_id,
        purpose=purpose,
        callback_url=_url("callback_url", callback_url, merchant.callback_url),
        success_url=_url("success_url", success_url, merchant.success_url),
        fail_url=_url("fail_url", fail_url, merchant.fail_url),
        metadata=metadata,
    )


def create_invoice_by_hand(
    deps: Deps,
    *,
    merchant_id: str,
    amount: str,
    currency_code: str,
    customer_id: str,
    external_id: str,
    purpose: str | None,
    note: str,
    valid_days: int,
) -> NewInvoice:
    """Creates a pending invoice for the author of this work, who is a person, and writes the act `invoice.create`, with
    the note.

    Raises the reasons of InvoicesService.CreateInvoiceByHand.
    """
    merchant = merchant_of_people(deps, merchant_id)
    if external_id in UNADDRESSABLE:
        raise values.invalid("external_id", f"external_id: {external_id!r} can't be one")
    lifetime = timedelta(days=days_of(valid_days))
    return create_without_key(
        deps,
        merchant,
        amount=amount,
        currency_code=currency_code,
        customer_id=customer_id,
        external_id=external_id,
        purpose=purpose,
        note=values.text("note", note, least=0, most=most_of(pb.CreateInvoiceByHandRequest, "note")),
        lifetime=lifetime,
    )


def create_without_key(deps: Deps, merchant: merchants_pb2.Merchant, **terms: Any) -> NewInvoice:
    """Creates an invoice of a person or a payment link, with the merchant's default URLs."""
    return _create(
        deps,
        merchant,
        **terms,
        key_id=NO_KEY,
        callback_url=merchant.callback_url or None,
        success_url=merchant.success_url or None,
        fail_url=merchant.fail_url or None,
    )


def merchant_of_people(deps: Deps, merchant_id: str) -> merchants_pb2.Merchant:
    """Returns the merchant, for an invoice or a payment link without a key. Raises MERCHANT_NOT_FOUND, OWNER_BLOCKED,
    MERCHANT_BLOCKED, MERCHANT_NOT_ACTIVE.
    """
    merchant = deps.identity.merchant(values.uuid("merchant_id", merchant_id))
    checkout.check_may_be_paid(merchant)
    if merchant.status != merchants_pb2.MERCHANT_STATUS_ACTIVE:
        raise errors.merchant_not_active()
    return merchant


def days_of(valid_days: int) -> int:
    if not 0 <= valid_days <= VALID_DAYS_MOST:
        raise values.invalid("valid_days", f"1 to {VALID_DAYS_MOST}, or 0")
    return valid_days


def purpose_of(purpose: str | None) -> str | None:
    return None if purpose is None else values.text("purpose", purpose, most=PURPOSE_MAX_CHARACTERS)


def merchant_data_of(metadata: Sequence[pb.Metadata]) -> str | None:
    """Returns the JSON object that is stored; None for none."""
    if not metadata:
        return None
    values.at_most("metadata", metadata, most_of(pb.CreateInvoiceRequest, "metadata"))
    kept = {
        values.text("metadata", each.key, most=most_of(pb.Metadata, "key")): values.text(
            "metadata", each.value, least=0, most=most_of(pb.Metadata, "value")
        )
        for each in metadata
    }
    if len(kept) < len(metadata):
        raise values.invalid("metadata", "A key may be there once")
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def price(deps: Deps, merchant: merchants_pb2.Merchant, amount: str, currency_code: str) -> Decimal:
    """Returns the amount that invoices of a payment link ask for. Raises VALIDATION_ERROR, CURRENCY_INVALID,
    AMOUNT_BELOW_MIN, AMOUNT_ABOVE_MAX, PAYMENT_METHOD_NOT_FOUND.
    """
    catalog = deps.catalog.catalog()
    value, terms = _amount(amount, currency_code, catalog), _terms(catalog, merchant, currency_code)
    if terms is None:
        raise errors.currency_invalid(currency_code)
    if value < terms.minimum or value <= 0:
        raise errors.amount_below_min(currency_code, terms.minimum)
    if value > terms.maximum:
        raise errors.amount_above_max(currency_code, terms.maximum)
    if not _wanted(terms, merchant, value):
        raise errors.no_method_for_amount(currency_code)
    return value


def _create(
    deps: Deps,
    merchant: merchants_pb2.Merchant,
    *,
    key_id: UUID,
    amount: str,
    currency_code: str,
    customer_id: str,
    external_id: str,
    purpose: str | None,
    callback_url: str | None,
    success_url: str | None,
    fail_url: str | None,
    note: str = "",
    lifetime: timedelta | None = None,
    link_id: UUID | None = None,
    metadata: Sequence[pb.Metadata] = (),
) -> NewInvoice:
    """Creates the invoice. Only one of a program must have all three URLs."""
    if "\0" in currency_code:  # PostgreSQL can't store it
        raise errors.currency_invalid(currency_code)
    now = deps.clock.now()
    catalog = deps.catalog.catalog()
    checked = values.together(
        external_id=lambda: values.text("external_id", external_id, most=EXTERNAL_ID_MAX_CHARACTERS),
        amount=lambda: _amount(amount, currency_code, catalog),
        customer_id=lambda: values.text("customer_id", customer_id, most=CUSTOMER_ID_MAX_CHARACTERS),
        purpose=lambda: purpose_of(purpose),
        merchant_data=lambda: merchant_data_of(metadata),
    )
    new = NewInvoice(
        **checked,
        id=secret_id(now, cell=deps.settings.cell),  # the id gives access to the customer's page
        merchant_id=values.uuid("merchant_id", merchant.merchant_id),
        key_id=key_id,
        currency_code=currency_code,
        callback_url=callback_url,
        success_url=success_url,
        fail_url=fail_url,
        created_at=now,
        expires_at=now + (lifetime or deps.settings.invoice_ttl),
        link_id=link_id,
    )
    terms = _terms(catalog, merchant, currency_code)
    wanted = _wanted(terms, merchant, new.amount)
    missing_urls = [] if new.key_id == NO_KEY else [name for name in URLS if not getattr(new, name)]
    of_request = creating.refusals_of_request(new.amount, terms, missing_urls=missing_urls, wanted=wanted)
    limit = deps.settings.limit_per_customer

    for _ in range(ATTEMPTS):
        facts = _insert(
            deps,
            new,
            note,
            seal=seal_of_invoice(deps.seals, new),
            acceptable=not of_request,
            wanted=wanted,
            share_percent=deps.settings.method_share_percent,
            window_start=limit.window_start(now),
            customer_limit=limit.limit,
        )
        if facts.created:
            return new
        if facts.waiting_id is not None and facts.waiting_overdue:
            timers.expire_invoice(deps, facts.waiting_id)
            continue
        reason = creating.first_refusal(of_request | creating.refusals_of_facts(facts, limit))
        if reason is not None:
            raise _refused(deps, reason, new, facts, terms=terms, missing_urls=missing_urls, wanted=wanted)
    raise conflict("DB_UNAVAILABLE", "Too many requests for the same customer at once, retry")


def _insert(deps: Deps, new: NewInvoice, note: str, **rules: Any) -> CreationFacts:
    """Runs the statement: in a transaction of its own, or beside the act of the invoice's author."""
    if not new.is_by_hand:
        return invoices.create_if_allowed(deps.db, new, **rules)
    with deps.db.transaction() as tx:
        facts = invoices.create_if_allowed(tx, new, **rules)
        if facts.created:
            after = acts.values_of(new, ("amount", "currency_code", "external_id", "customer_id"))
            acts.record(
                tx, "invoice.create", f"invoice:{new.id}", merchant_id=new.merchant_id, after=after, note=note
            )
    return facts


def _refused(
    deps: Deps,
    reason: CreationRefusal,
    new: NewInvoice,
    facts: CreationFacts,
    *,
    terms: CurrencyTerms | None,
    missing_urls: list[str],
    wanted: Sequence[Wanted],
) -> Refused:
    """Returns the error of the reason, with its details."""
    currency, limit = new.currency_code, deps.settings.limit_per_customer
    match reason:
        case CreationRefusal.DEALS_SYSTEM_DISABLED:
            return errors.deals_system_disabled()
        case CreationRefusal.CURRENCY_INVALID:
            return errors.currency_invalid(currency)
        case CreationRefusal.MISSING_REQUIRED_URLS:
            return errors.missing_required_urls(missing_urls)
        case CreationRefusal.DUPLICATE_EXTERNAL_ID:
            return errors.duplicate_external_id(facts)
        case CreationRefusal.AMOUNT_BELOW_MIN:
            return errors.amount_below_min(currency, _known(terms).minimum)
        case CreationRefusal.AMOUNT_ABOVE_MAX:
            return errors.amount_above_max(currency, _known(terms).maximum)
        case CreationRefusal.PAYMENT_METHOD_NOT_FOUND:
            return errors.no_method_for_amount(currency)
        case CreationRefusal.PENDING_INVOICE_EXISTS:
            return errors.pending_invoice_exists(_known(facts.waiting_id))
        case CreationRefusal.CUSTOMER_RATE_LIMIT:
            return errors.customer_rate_limit(
                new.customer_id,
                limit=limit.limit,
                window_minutes=deps.settings.customer_window_minutes,
                next_allowed_at=limit.next_allowed_at(_known(facts.oldest_unpaid_at)),
            )
        case CreationRefusal.NO_AVAILABLE_REQUISITES:
            return scarcity.no_available_requisites(deps, new.merchant_id, wanted)


def _known(value: T | None) -> T:
    """Returns the detail that the rule of the reason has required."""
    assert value is not None
    return value


def _amount(amount: str, currency_code: str, catalog: CatalogSnapshot) -> Decimal:
    value = values.decimal("amount", amount)
    decimals = catalog.decimals.get(currency_code, 2)
    if not has_decimals(value, at_most=decimals):
        raise errors.too_many_decimals(currency_code, decimals)
    return value


def _terms(
    catalog: CatalogSnapshot, merchant: merchants_pb2.Merchant, currency_code: str
) -> CurrencyTerms | None:
    if merchant.allowed_currencies and currency_code not in merchant.allowed_currencies:
        return None
    return catalog.currencies.get(currency_code)


def _wanted(terms: CurrencyTerms | None, merchant: merchants_pb2.Merchant, amount: Decimal) -> list[Wanted]:
    """Returns a place of each method that accepts this amount."""
    if terms is None:
        return []
    allowed = merchant.allowed_methods
    return [
        Wanted(method.code, _amount_fiat(method, merchant, amount, terms.decimals), method.takes_reference)
        for method in terms.methods
        if method.minimum <= amount <= method.maximum and (not allowed or method.code in allowed)
    ]


def _amount_fiat(
    method: MethodTerms, merchant: merchants_pb2.Merchant, amount: Decimal, decimals: int
) -> Decimal | None:
    """Returns the amount that the customer would send with this method; None when the catalog would give no quote."""
    try:
        category, share = parse_decimal(merchant.category_commission), parse_decimal(merchant.client_share)
    except ValueError:
        return None
    percent = money.client_percent(category, method.commission, share)
    return None if percent is None else money.customer_amount(amount, percent, decimals)


def _url(field: str, given: str | None, default: str) -> str | None:
    url = default if given is None else given
    return values.text(field, url, most=URL_MAX_CHARACTERS) if url else None
