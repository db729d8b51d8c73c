"""The customer's steps on the payment page. Each may be repeated: a reload or a second click changes nothing."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.audit import acts
from kit.base.codes import new_code
from kit.base.ids import new_id
from kit.base.pictures import Picture
from kit.db.database import Database, refusing, retry_conflicts
from kit.rpc.actors import require_merchant
from kit.rpc.errors import Refused
from kit.work.worker import Outage
from services.invoices import errors
from services.invoices.clients import Quote, Storefront
from services.invoices.domain import money, states
from services.invoices.domain.late import PictureKind, late_money_possible
from services.invoices.domain.names import words_of_name
from services.invoices.domain.places import REFERENCE_CANDIDATES, NewDeal, Wanted
from services.invoices.domain.rates import rate_basis_to_json
from services.invoices.domain.states import AWAITING_PAYMENT, DealStatus, InvoiceStatus, Trigger
from services.invoices.models import Deal, Invoice
from services.invoices.operations import cases, fields, lifecycle, scarcity, timers
from services.invoices.store import deals, invoices, opening, shares
from services.invoices.store.cases import case_of_invoice
from services.invoices.store.views import CaseView, InvoiceView, RequisiteView
from services.invoices.wiring import Deps

UNDECIDED_MOST = 10  # accounts that no act decided, which one choice passes over


@dataclass(frozen=True)
class Offer:
    """A method that may be chosen, with its price for the customer.

    taken      no account has a place for the deal now
    free_from  the earliest time at which a place may become free; None when it is unknown, or none is taken
    """

    offer: catalog_pb2.MethodOffer
    amount_fiat: Decimal
    taken: bool = False
    free_from: datetime | None = None


@dataclass(frozen=True)
class Checkout:
    """The content of the page; see GetCheckoutResponse."""

    invoice: InvoiceView
    merchant: merchants_pb2.Merchant
    offers: Sequence[Offer]
    offers_refused: str | None
    requisite: RequisiteView | None
    case: CaseView | None
    now: datetime


def get_checkout(deps: Deps, *, invoice_id: str, choosing: bool = False) -> Checkout:
    """Returns the state that the customer's page shows. Raises INVOICE_NOT_FOUND.

    choosing  the page shows the choice of methods although a deal is open
    """
    now = deps.clock.now()
    view = _fresh_view(deps, fields.invoice_id(invoice_id), now)
    if view.status == InvoiceStatus.PENDING and view.deal is None:  # the page will show the choice
        with suppress(Outage):  # the page matters more
            opening.note_opening(deps.db, view.id, now)
    requisite = None
    if view.deal is not None and view.deal.status in states.OPEN_DEAL_STATUSES:
        found = deals.requisite_to_show(deps.db, view.deal.requisite_id)
        requisite = found if found is not None and deps.decided_requisites.are(found.id, found) else None
    storefront = deps.storefronts.of(view.merchant_id)
    offers: Sequence[Offer] = ()
    refused = None
    if _may_choose(view, now):
        try:
            check_may_be_paid(storefront.merchant)
            offers = _offers(storefront, view)
            if choosing or requisite is None:
                offers = _with_openings(deps, view, offers, now)
            refused = None if offers else "PAYMENT_METHOD_NOT_FOUND"
        except Refused as refusal:  # the page shows the reason, and everything else as usual
            refused = refusal.reason
    return Checkout(view, storefront.merchant, offers, refused, requisite, _case(deps, view), now)


def find_missing_invoices(deps: Deps, *, invoice_ids: Sequence[str]) -> Sequence[UUID]:
    """Returns those that do not exist. Waits for no other service. Raises INVOICE_NOT_FOUND for text that is no id."""
    return opening.missing(deps.db, [fields.invoice_id(id) for id in invoice_ids])


def select_payment_method(
    deps: Deps, *, invoice_id: str, method_code: str
) -> tuple[InvoiceView, RequisiteView]:
    """Opens a deal with this method, in place of an unpaid one; returns the invoice and the requisite.

    Raises the reasons of CheckoutService.SelectPaymentMethod.
    """
    now = deps.clock.now()
    id = fields.invoice_id(invoice_id)
    view = _fresh_view(deps, id, now)
    if view.status != InvoiceStatus.PENDING:
        raise errors.invoice_finished(view.status)
    is_same = view.deal is not None and view.deal.method_code == method_code
    if is_same and (shown := _to_pay(deps, deps.db, id)):
        return shown
    if "\0" in method_code or len(method_code) > 64:
        raise errors.method_not_for_invoice(method_code[:64].replace("\0", ""))
    # Before the transaction: no call to another service is made while rows are locked.
    merchant = deps.identity.merchant(view.merchant_id)
    check_may_be_paid(merchant)
    quote = deps.catalog.quote(merchant, method_code)
    if quote.currency_code != view.currency_code or not quote.minimum <= view.amount <= quote.maximum:
        raise errors.method_not_for_invoice(method_code)
    try:
        for _ in range(UNDECIDED_MOST):
            try:
                return _open_deal(deps, id, quote, now)
            except _Undecided as undecided:
                with deps.db.transaction() as tx:
                    deals.set_requisite_enabled(tx, undecided.requisite_id, enabled=False)
        raise errors.no_available_requisites()
    except Refused as refused:
        if refused.reason != "NO_AVAILABLE_REQUISITES":
            raise
        amount_fiat = money.customer_amount(view.amount, quote.client_percent, quote.decimals)
        wanted = [Wanted(quote.method_code, amount_fiat, quote.takes_reference)]
        raise scarcity.no_available_requisites(deps, view.merchant_id, wanted) from None


def check_may_be_paid(merchant: merchants_pb2.Merchant) -> None:
    """Refuses a new deal of a merchant who may not create invoices. A customer who already has a requisite goes on."""
    if merchant.owner_blocked:
        raise errors.owner_blocked()
    if merchant.status == merchants_pb2.MERCHANT_STATUS_BANNED:
        raise errors.merchant_blocked()


@retry_conflicts
def mark_paid(deps: Deps, *, invoice_id: str, deal_id: str, sender_name: str = "") -> InvoiceView:
    """Records that the customer sent the money, and from whose account; from then on time does not end the deal."""
    return _customer_step(
        deps,
        invoice_id,
        deal_id,
        Trigger.MARK_PAID,
        is_done=lambda deal: deal.mark_paid_at is not None,
        sender_name=fields.sender_name(sender_name) if sender_name.strip() else "",
    )


@retry_conflicts
def open_customer_appeal(
    deps: Deps, *, invoice_id: str, note: str, picture: bytes | None = None
) -> InvoiceView:
    """Records the customer's appeal: the operator has to decide a deal that is marked paid."""
    return _customer_step(
        deps,
        invoice_id,
        "",
        Trigger.APPEAL_BY_CUSTOMER,
        is_done=lambda deal: deal.status == DealStatus.APPEAL,
        note=fields.note(note),
        picture=cases.picture_from(picture),
    )


@retry_conflicts
def cancel_checkout(deps: Deps, *, invoice_id: str) -> InvoiceView:
    """Cancels the invoice, with or without a deal, before it is marked paid."""
    id = fields.invoice_id(invoice_id)
    return cancel_invoice(deps, id, Trigger.CANCEL_BY_CUSTOMER, actor=lifecycle.BY_CUSTOMER)


def cancel_invoice(
    deps: Deps, invoice_id: UUID, trigger: Trigger, *, actor: str, merchant_id: UUID | None = None
) -> InvoiceView:
    """Cancels the invoice for the customer, the operator, a member or a program of its merchant; all call this."""
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, invoice_id, merchant_id)
        if trigger is Trigger.CANCEL_BY_OPERATOR:
            require_merchant(invoice.merchant_id, errors.invoice_not_found)
        overdue = lifecycle.expire_if_overdue(tx, deps, invoice, deal, now)
        if not overdue and invoice.status != InvoiceStatus.CANCELED:
            lifecycle.require_open(invoice)
            if deal is None:
                lifecycle.finish(tx, deps, invoice, None, InvoiceStatus.CANCELED, now=now)
            else:
                lifecycle.advance(tx, deps, invoice, deal, trigger, now=now, actor=actor)
            if trigger is Trigger.CANCEL_BY_OPERATOR:
                of, changed = f"invoice:{invoice_id}", {"status": invoice.status}
                acts.record(tx, "invoice.cancel", of, merchant_id=invoice.merchant_id, after=changed)
        view = _flushed_view(tx, invoice)
    if overdue:
        raise errors.invoice_finished(InvoiceStatus.EXPIRED)
    return view


def _customer_step(
    deps: Deps,
    invoice_id: str,
    deal_id: str,
    trigger: Trigger,
    *,
    is_done: Callable[[Deal], bool],
    note: str = "",
    picture: Picture | None = None,
    sender_name: str = "",
) -> InvoiceView:
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, fields.invoice_id(invoice_id))
        overdue = lifecycle.expire_if_overdue(tx, deps, invoice, deal, now)
        if not overdue:
            lifecycle.require_open(invoice)
            if deal is None:
                raise errors.deal_state_conflict("No payment method is chosen yet")
            if deal_id and deal_id != str(deal.id):
                message = "The payment method was changed meanwhile; this was about the earlier one"
                raise errors.deal_state_conflict(message, status=deal.status, sub_status=deal.sub_status)
            if not is_done(deal):
                lifecycle.advance(
                    tx, deps, invoice, deal, trigger, now=now, actor=lifecycle.BY_CUSTOMER, note=note
                )
                if sender_name:
                    deals.set_sender(tx, deal.id, name=sender_name, words=words_of_name(sender_name))
                if picture is not None:
                    cases.keep_picture(tx, deal, PictureKind.APPEAL, picture, now)
        view = _flushed_view(tx, invoice)
    if overdue:
        raise errors.invoice_finished(InvoiceStatus.EXPIRED)
    return view


@dataclass
class _Undecided(Exception):
    """No act decided the account that the statement chose. It goes out of use, so that the others are found."""

    requisite_id: UUID


@retry_conflicts
def _open_deal(
    deps: Deps, invoice_id: UUID, quote: Quote, now: datetime
) -> tuple[InvoiceView, RequisiteView]:
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, invoice_id)
        overdue = lifecycle.expire_if_overdue(tx, deps, invoice, deal, now)
        if not overdue:
            lifecycle.require_open(invoice)
            chosen_meanwhile = deal is not None and deal.method_code == quote.method_code
            if chosen_meanwhile and (shown := _to_pay(deps, tx, invoice_id)):
                return shown
            if deal is not None:
                _require_replaceable(invoice, deal, now)
            if not lifecycle.may_credit(deps, invoice):
                raise errors.no_available_requisites()
            opening.queue_for_requisites(tx, {quote.method_code} | ({deal.method_code} if deal else set()))
            if deal is not None:
                lifecycle.advance(
                    tx, deps, invoice, deal, Trigger.REPLACE, now=now, actor=lifecycle.BY_CUSTOMER
                )
            new, share = _new_deal(invoice, quote, now), deps.settings.method_share_percent
            with refusing({"uq_deals_open_amount": errors.no_available_requisites}):
                opened = opening.open_deal(tx, new, actor=lifecycle.BY_CUSTOMER, share_percent=share)
            if opened is None:
                enabled = deals.deals_enabled(tx)
                raise errors.no_available_requisites() if enabled else errors.deals_system_disabled()
            _, requisite = opened
            if not deps.decided_requisites.are(requisite.id, requisite, tx):
                raise _Undecided(requisite.id)
            lifecycle.send_hint(tx, deps, invoice.id)
            return opened
    raise errors.invoice_finished(InvoiceStatus.EXPIRED)


def _require_replaceable(invoice: Invoice, deal: Deal, now: datetime) -> None:
    """Raises unless another method may be chosen: only until the invoice's own expiry, because a choice must not extend
    the time.
    """
    if lifecycle.state_of(deal) != AWAITING_PAYMENT:
        message = "The payment is marked as sent; the method can't be changed any more"
        raise errors.deal_state_conflict(message, status=deal.status, sub_status=deal.sub_status)
    if now >= invoice.expires_at:
        message = "The time for choosing another method is over; this one can still be paid"
        raise errors.deal_state_conflict(message, status=deal.status, sub_status=deal.sub_status)


def _new_deal(invoice: Invoice, quote: Quote, now: datetime) -> NewDeal:
    return NewDeal(
        id=new_id(),
        invoice_id=invoice.id,
        merchant_id=invoice.merchant_id,
        method_code=quote.method_code,
        method_name=quote.method_name,
        currency_code=quote.currency_code,
        currency_decimals=quote.decimals,
        invoice_amount=invoice.amount,
        amount_fiat=money.customer_amount(invoice.amount, quote.client_percent, quote.decimals),
        conversion_rate=quote.rate,
        client_percent=quote.client_percent,
        merchant_percent=quote.merchant_percent,
        created_at=now,
        expires_at=now + quote.payment_time,
        takes_reference=quote.takes_reference,
        references=[new_code() for _ in range(REFERENCE_CANDIDATES)],
        rate_basis=rate_basis_to_json(quote.rate_basis),
    )


def _fresh_view(deps: Deps, invoice_id: UUID, now: datetime) -> InvoiceView:
    """Returns the invoice at `now`: an overdue one is expired first, so a late expiry worker makes no difference."""
    view = _view(deps, invoice_id)
    if view.status == InvoiceStatus.PENDING and _is_overdue(view, now):
        timers.expire_invoice(deps, invoice_id)
        return _view(deps, invoice_id)
    return view


def _is_overdue(view: InvoiceView, now: datetime) -> bool:
    if view.deal is None:
        return states.invoice_overdue(has_deal=False, invoice_expires_at=view.expires_at, now=now)
    return states.deal_overdue(view.deal.state, view.deal.expires_at, now)


def _view(deps: Deps, invoice_id: UUID) -> InvoiceView:
    return _found(invoices.invoice_view_by_id(deps.db, invoice_id))


def _flushed_view(tx: Session, invoice: Invoice) -> InvoiceView:
    return _found(invoices.changed_view(tx, invoice.id))


def _found(view: InvoiceView | None) -> InvoiceView:
    if view is None:
        raise errors.invoice_not_found()
    return view


def _case(deps: Deps, view: InvoiceView) -> CaseView | None:
    if not late_money_possible(view.status, has_deal=view.deal is not None):
        return None
    with deps.db.autocommit() as connection:
        return case_of_invoice(connection, view.id)


def _to_pay(deps: Deps, of: Session | Database, invoice_id: UUID) -> tuple[InvoiceView, RequisiteView] | None:
    """Returns the invoice and the account of its deal, None if no act decided that. Raises REQUISITE_NOT_FOUND."""
    shown = invoices.view_to_pay(of, invoice_id)
    if shown is None:
        raise errors.requisite_not_found()
    tx = of if isinstance(of, Session) else None
    return shown if deps.decided_requisites.are(shown[1].id, shown[1], tx) else None


def _may_choose(view: InvoiceView, now: datetime) -> bool:
    unpaid = view.deal is None or view.deal.state == AWAITING_PAYMENT
    return view.status == InvoiceStatus.PENDING and unpaid and now < view.expires_at


def _offers(storefront: Storefront, view: InvoiceView) -> list[Offer]:
    """Returns the methods that accept the invoice's amount, each with its price for the customer."""
    return [
        Offer(
            offer,
            money.customer_amount(view.amount, Decimal(offer.client_percent), offer.currency.decimals),
        )
        for offer in storefront.offers(view.currency_code)
        if Decimal(offer.method.min_sum) <= view.amount <= Decimal(offer.method.max_sum)
    ]


def _with_openings(deps: Deps, view: InvoiceView, offers: Sequence[Offer], now: datetime) -> Sequence[Offer]:
    """Returns the offers with what is known of their free places. The method of the open deal has its place."""
    if not offers:
        return offers
    wanted = [
        Wanted(each.offer.method.method_code, each.amount_fiat, each.offer.method.takes_reference)
        for each in offers
    ]
    found = shares.openings(
        deps.db, view.merchant_id, wanted, share_percent=deps.settings.method_share_percent
    )
    chosen = None if view.deal is None else view.deal.method_code
    return [
        offer
        if free or place.method_code == chosen
        else replace(offer, taken=True, free_from=free_from and max(free_from, now))
        for offer, place, free, free_from in zip(offers, wanted, found.free, found.free_from, strict=True)
    ]
