"""The steps of a deal and its invoice. Each is made under the invoice's row lock, by the table of transitions, with its
history row, and with the announcement when the invoice finishes. Only `batches` makes steps besides: those that time
takes, for many invoices at once, by the rules here.
"""

from datetime import datetime
from decimal import Decimal
from typing import TypeGuard
from uuid import UUID

from sqlalchemy.orm import Session

from kit.audit.acts import text_of
from kit.audit.decisions import UNDECIDED, before_by_acts
from kit.base.ids import new_id
from kit.db.database import after_commit
from kit.events.outbox import announce
from kit.observe.log import get_logger
from kit.rpc.errors import not_decided
from services.invoices import errors, events
from services.invoices.domain import money, states
from services.invoices.domain.states import DealState, DealStatus, InvoiceStatus, Transition, Trigger
from services.invoices.models import Deal, Invoice, Outbox
from services.invoices.store import deals, invoices
from services.invoices.store.decisions import DEAL, has_its_terms, is_as_created
from services.invoices.wiring import Deps

_log = get_logger()

BY_TIME = "time"
BY_CUSTOMER = "customer"


def state_of(deal: Deal) -> DealState:
    return DealState(DealStatus(deal.status), deal.sub_status)


def locked(tx: Session, invoice_id: UUID, merchant_id: UUID | None = None) -> tuple[Invoice, Deal | None]:
    """Returns the invoice, locked, with its newest deal. Raises INVOICE_NOT_FOUND, also for one of another merchant
    than `merchant_id`, if that is given.
    """
    found = invoices.locked_invoice(tx, invoice_id)
    if found is None or merchant_id not in (None, found[0].merchant_id):
        raise errors.invoice_not_found()
    return found


def locked_by_deal(tx: Session, deal_id: UUID) -> tuple[Invoice, Deal]:
    """Returns the deal with its invoice, which is locked. Raises DEAL_NOT_FOUND."""
    invoice, deal = invoices.locked_invoice_of_deal(tx, deal_id) or (None, None)
    if invoice is None or deal is None:
        raise errors.deal_not_found()
    return invoice, deal


def require_open(invoice: Invoice) -> None:
    """Raises INVOICE_FINISHED: terminal statuses have no further transitions."""
    if invoice.status != InvoiceStatus.PENDING:
        raise errors.invoice_finished(invoice.status)


def expire_if_overdue(tx: Session, deps: Deps, invoice: Invoice, deal: Deal | None, now: datetime) -> bool:
    """Expires the invoice when its time is over, as the expiry worker does; returns true when this call did it.

    Every step of a customer calls this first: a late worker never makes a step possible after its time.
    """
    if not is_overdue(invoice, deal, now):
        return False
    expire(tx, deps, invoice, deal, now, actor=BY_TIME)
    return True


def expire(
    tx: Session, deps: Deps, invoice: Invoice, deal: Deal | None, now: datetime, *, actor: str
) -> None:
    if deal is None:
        finish(tx, deps, invoice, None, InvoiceStatus.EXPIRED, now=now)
    else:
        advance(tx, deps, invoice, deal, Trigger.EXPIRE, now=now, actor=actor)


def is_overdue(invoice: Invoice, deal: Deal | None, now: datetime) -> bool:
    """Returns whether the invoice's time is over: for choosing a method, or for paying the newest deal."""
    if invoice.status != InvoiceStatus.PENDING:
        return False
    if states.invoice_overdue(has_deal=deal is not None, invoice_expires_at=invoice.expires_at, now=now):
        return True
    return deal is not None and states.deal_overdue(state_of(deal), deal.expires_at, now)


def appeal_if_overdue(tx: Session, deps: Deps, invoice: Invoice, deal: Deal | None, now: datetime) -> bool:
    """Makes an appeal of a deal that was marked paid and not confirmed in time; returns true when this call did it."""
    if not is_confirmation_overdue(deal, now):
        return False
    advance(tx, deps, invoice, deal, Trigger.CONFIRMATION_OVERDUE, now=now, actor=BY_TIME)
    return True


def is_confirmation_overdue(deal: Deal | None, now: datetime) -> TypeGuard[Deal]:
    """Returns whether a deal that was marked paid has waited too long for the operator."""
    return deal is not None and states.confirmation_overdue(state_of(deal), deal.confirm_before, now)


def step_of(deal: Deal, trigger: Trigger) -> Transition:
    """Returns the step of the table of transitions. Raises DEAL_STATE_CONFLICT when the table has no such step."""
    step = states.transition(state_of(deal), trigger)
    if step is None:
        message = f"A deal that is {deal.status} ({deal.sub_status}) does not allow this step"
        raise errors.deal_state_conflict(message, status=deal.status, sub_status=deal.sub_status)
    return step


def advance(
    tx: Session,
    deps: Deps,
    invoice: Invoice,
    deal: Deal,
    trigger: Trigger,
    *,
    now: datetime,
    actor: str,
    note: str = "",
    adjusted_amount: Decimal | None = None,
    received: Decimal | None = None,
    event_id: UUID | None = None,
) -> None:
    """Takes the deal one step along the table of transitions, and its invoice with it. `event_id` is that of the
    announcement if the invoice has been announced before; `received` is what came, if an adjustment names it.

    Raises DEAL_STATE_CONFLICT when the table has no such step. Raises NOT_DECIDED when it would credit by terms that no
    process of this service locked, or for an invoice that is not as it was created, or the customer was to pay another
    amount.
    """
    step = step_of(deal, trigger)
    if step.target.status is DealStatus.COMPLETED:
        if not may_credit(deps, invoice):
            raise not_decided("invoice")
        require_terms(deps, deal)
    deal.status = step.target.status
    deal.sub_status = step.target.sub_status
    if trigger is Trigger.MARK_PAID:
        deal.mark_paid_at = now
        deal.confirm_before = now + deps.settings.confirmation_time
    if adjusted_amount is not None:
        deal.adjusted_amount = adjusted_amount
        deal.amount_fiat = _amount_to_pay(deal) if received is None else received
    if step.target.status is DealStatus.COMPLETED:
        deal.merchant_usdt = money.merchant_usdt(_amount(deal), deal.conversion_rate, deal.merchant_percent)
    if step.target.status not in states.OPEN_DEAL_STATUSES:
        deal.finished_at = now
        deals.release_requisite(tx, deal.requisite_id)
    deals.save(tx, deal)
    deals.add_transition(tx, deal, now=now, actor=actor, note=note)
    send_hint(tx, deps, invoice.id)
    if step.invoice is not None:
        finish(tx, deps, invoice, deal, step.invoice, now=now, event_id=event_id)


def may_credit(deps: Deps, invoice: Invoice) -> bool:
    """Returns whether the invoice is what create-invoice was asked for. If not, logs and counts it."""
    if is_as_created(deps.seals, invoice):
        return True
    _note_undecided("invoice", invoice.id)
    return False


def require_terms(deps: Deps, deal: Deal) -> None:
    """Refuses a deal with terms that no process of this service locked, or an amount that does not follow from them."""
    adjusted_to = money.order_part(deal.amount_fiat, deal.client_percent, deal.currency_decimals)
    follows = deal.amount_fiat == _amount_to_pay(deal) or adjusted_to == deal.adjusted_amount
    if not (follows and has_its_terms(deps.seals, deal)):
        _note_undecided("deal", deal.id)
        raise not_decided("deal")


def _note_undecided(kind: str, id: UUID) -> None:
    UNDECIDED.labels(kind).inc()
    _log.error("value_not_decided", object=f"{kind}:{id}", field="terms")


def _amount(deal: Deal) -> Decimal:
    return deal.invoice_amount if deal.adjusted_amount is None else deal.adjusted_amount


def _amount_to_pay(deal: Deal) -> Decimal:
    return money.customer_amount(_amount(deal), deal.client_percent, deal.currency_decimals)


def send_hint(tx: Session, deps: Deps, invoice_id: UUID) -> None:
    """Sends a hint to the customer's page, after the commit."""
    after_commit(tx, deps.bus.hint, events.changed_subject(invoice_id))


def finish(
    tx: Session,
    deps: Deps,
    invoice: Invoice,
    deal: Deal | None,
    status: InvoiceStatus,
    *,
    now: datetime,
    event_id: UUID | None = None,
) -> None:
    """Makes the invoice terminal and announces it, once and for ever; under a new id unless one is given."""
    require_open(invoice)
    invoice.status = status
    invoice.finished_at = now
    invoice.event_id = event_id or new_id()
    send_hint(tx, deps, invoice.id)
    invoices.save(tx, invoice)
    announce(
        tx,
        Outbox,
        subject=events.FINISHED,
        message=events.invoice_finished(invoice, deal),
        at=now,
        announced=deps.announced,
        signer=deps.signer,
        event_id=invoice.event_id,
    )


def require_as_decided(tx: Session, deal: Deal) -> None:
    """Refuses a deal that SQL took back from the state that the last act gave it."""
    state = {"status": text_of(deal.status), "sub_status": text_of(deal.sub_status)}
    if before_by_acts(tx, DEAL, deal.id, *state) not in ({}, state):
        raise not_decided("deal")
