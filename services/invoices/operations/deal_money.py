"""The money of a deal, for refunds and for money that came late."""

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.decisions import is_as_decided
from kit.base.account_forms import AccountKind
from kit.base.money import RATE_PLACES, has_decimals
from kit.rpc import values
from kit.rpc.errors import Refused, not_decided
from services.invoices import errors
from services.invoices.domain import money
from services.invoices.domain.late import ANSWERS
from services.invoices.domain.states import InvoiceStatus
from services.invoices.models import Case, Deal, Invoice
from services.invoices.operations import fields, lifecycle, verification
from services.invoices.store import cases, deals
from services.invoices.store.decisions import CASE, CASE_ANSWER, is_as_opened
from services.invoices.store.facts import invoices_with_deals
from services.invoices.store.views import InvoiceView
from services.invoices.wiring import Deps

BELOW: Final = Decimal(10) ** 18
"""More than columns of fiat amounts and rates hold."""


@dataclass(frozen=True, kw_only=True)
class Received:
    """The equivalents of an amount: `order_amount` in fiat, `credit_usdt` in USDT."""

    order_amount: Decimal
    credit_usdt: Decimal


@dataclass(frozen=True, kw_only=True)
class DealMoney:
    """A deal of which every value is proven. `received` is None when no amount was given.

    refunds_return_commission  as the merchant's category says now; false and not asked for when an amount was given,
                               which is about a credit: so a credit does not wait for identity
    case                       the invoice's case of late money
    """

    invoice: Invoice
    deal: Deal
    refunds_return_commission: bool
    received: Received | None
    case: Case | None

    @property
    def case_decided(self) -> str:
        """How the case ended, or what the merchant has answered; empty for neither, so for a policy alone."""
        if self.case is None:
            return ""
        return self.case.ended_as if self.case.ended_as in ANSWERS else self.case.merchant_answer or ""


def get_deal_money(
    deps: Deps,
    *,
    invoice_id: str | None = None,
    deal_id: str | None = None,
    received_amount: str | None = None,
    conversion_rate: str | None = None,
) -> DealMoney:
    """Returns the money of the invoice's newest deal, which one of the two ids names.

    Raises INVOICE_NOT_FOUND, DEAL_NOT_FOUND, VALIDATION_ERROR, NOT_DECIDED.
    """
    rate = None if conversion_rate is None else _rate(conversion_rate)
    with deps.db.transaction() as tx:
        invoice, deal = _found(tx, invoice_id, deal_id)
        _require_proven(deps, tx, invoice, deal)
        case = _case(deps, tx, invoice)
    used = deal.conversion_rate if rate is None else rate
    return DealMoney(
        invoice=invoice,
        deal=deal,
        refunds_return_commission=received_amount is None
        and deps.identity.merchant(invoice.merchant_id).refunds_return_commission,
        received=None if received_amount is None else _received(deal, received_amount, used),
        case=case,
    )


def form_of_accounts(deps: Deps, invoice: InvoiceView) -> AccountKind | None:
    """Returns the form of the accounts of a finished invoice's method; None for any form, and while catalog is away."""
    kind = None
    if invoice.status != InvoiceStatus.PENDING and invoice.deal is not None:
        with suppress(Refused):
            kind = deps.catalog.catalog().account_kinds.get(invoice.deal.method_code)
    return None if kind is AccountKind.FREE else kind


def _found(tx: Session, invoice_id: str | None, deal_id: str | None) -> tuple[Invoice, Deal]:
    named = None if deal_id is None else deals.deal_view(tx, fields.deal_id(deal_id))
    if deal_id is not None and named is None:
        raise errors.deal_not_found()
    if named is None and invoice_id is None:
        raise values.invalid("invoice_id", "Expected the id of an invoice or of its deal")
    id = fields.invoice_id(invoice_id or "") if named is None else named.invoice_id
    found = invoices_with_deals(tx, [id]).get(id)
    if found is None:
        raise errors.invoice_not_found()
    invoice, deal = found
    if deal is None or (named is not None and named.id != deal.id):
        raise errors.deal_not_found()
    return invoice, deal


def _require_proven(deps: Deps, tx: Session, invoice: Invoice, deal: Deal) -> None:
    """Refuses what SQL wrote: seals prove what was locked, the signed fact how the invoice ended, acts an open deal."""
    if not lifecycle.may_credit(deps, invoice):
        raise not_decided("invoice")
    lifecycle.require_terms(deps, deal)
    if invoice.status == InvoiceStatus.PENDING:
        lifecycle.require_as_decided(tx, deal)
    elif verification.judged(deps, tx, [(invoice, deal)])[0].unproven:
        raise not_decided("invoice")


def _case(deps: Deps, tx: Session, invoice: Invoice) -> Case | None:
    """Returns the case of the invoice. Raises NOT_DECIDED for one that SQL wrote, answered or ended."""
    case = cases.sealed_case_of_invoice(tx, invoice.id)
    if case is None:
        return None
    decided = (
        is_as_decided(tx, each, case.number, acts.values_of(case, each.fields))
        for each in (CASE, CASE_ANSWER)
    )
    if not is_as_opened(deps.seals, case) or not all(decided):
        raise not_decided("case")
    return case


def _rate(text: str) -> Decimal:
    rate = values.decimal("conversion_rate", text)
    if not 0 < rate < BELOW or not has_decimals(rate, at_most=RATE_PLACES):
        raise values.invalid("conversion_rate", "Expected fiat per USDT above zero with at most 2 decimals")
    return rate


def _received(deal: Deal, text: str, rate: Decimal) -> Received:
    amount = values.decimal("received_amount", text)
    if not 0 < amount < BELOW or not has_decimals(amount, at_most=deal.currency_decimals):
        message = f"Expected an amount above zero with at most {deal.currency_decimals} decimals"
        raise values.invalid("received_amount", message)
    part = money.order_part(amount, deal.client_percent, deal.currency_decimals)
    return Received(order_amount=part, credit_usdt=money.merchant_usdt(part, rate, deal.merchant_percent))
