"""Test mode: the steps of a payment that customers, operators and time take, for programs of merchants.

Each step is the operation of its owner, with its rules and acts, and `SIMULATION` as author. It needs no second person.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from kit.base.actors import Actor, acting
from kit.db.database import retry_conflicts
from kit.rpc.errors import Refused, exhausted, unavailable
from services.invoices import errors
from services.invoices.domain.states import DealStatus, InvoiceStatus
from services.invoices.operations import cases, checkout, desk, fields, lifecycle, reading
from services.invoices.store import invoices
from services.invoices.store.views import DealView, InvoiceView
from services.invoices.wiring import Deps

SIMULATION: Final = Actor(kind="process", name="simulation")

Step = Callable[[Deps, InvoiceView, str, str], object]
"""Takes the step of an invoice, given a payment method and an amount."""


def simulate(
    deps: Deps, *, merchant_id: str, invoice_ref: str, step: str, payment_method_code: str, amount: str
) -> InvoiceView:
    """Takes the step and returns the invoice after it. Raises INVOICE_NOT_FOUND and the reasons of the step."""
    take = STEPS[fields.one_of("step", step, tuple(STEPS))]
    settings = deps.settings.model_copy(update={"four_eyes": False})
    view = _view(deps, merchant_id, invoice_ref)
    with acting(SIMULATION):
        take(replace(deps, settings=settings), view, payment_method_code, amount)
    return _view(deps, merchant_id, invoice_ref)


def _view(deps: Deps, merchant_id: str, invoice_ref: str) -> InvoiceView:
    if merchant_id:
        return reading.get_invoice(deps, merchant_id=merchant_id, invoice_ref=invoice_ref)
    view = invoices.invoice_view_by_id(deps.db, fields.invoice_id(invoice_ref))
    if view is None:
        raise errors.invoice_not_found()
    return view


def _select(deps: Deps, view: InvoiceView, method_code: str, _: str) -> None:
    id = str(view.id)
    if not method_code:
        offers = checkout.get_checkout(deps, invoice_id=id, choosing=True).offers
        method_code = next((each.offer.method.method_code for each in offers if not each.taken), "")
    checkout.select_payment_method(deps, invoice_id=id, method_code=method_code)


def _confirm(deps: Deps, view: InvoiceView, *_: str) -> None:
    deal = _deal(view)
    if deal.status == DealStatus.APPEAL:
        desk.resolve_as_paid(deps, deal_id=str(deal.id), note="")
    else:
        desk.confirm_deal(deps, deal_id=str(deal.id))


def _reject(deps: Deps, view: InvoiceView, *_: str) -> None:
    deal = _deal(view)
    reject = desk.resolve_as_rejected if deal.status == DealStatus.APPEAL else desk.reject_deal
    reject(deps, deal_id=str(deal.id), note="")


def _appeal(deps: Deps, view: InvoiceView, *_: str) -> None:
    desk.open_appeal(deps, deal_id=str(_deal(view).id), note="")


def _resolve(deps: Deps, view: InvoiceView, _: str, amount: str) -> None:
    """Ends the appeal, which it opens first if there is none."""
    deal = _deal(view)
    if amount:
        desk.check_adjustment(deps, deal_id=str(deal.id), amount=amount)
    if deal.status == DealStatus.PENDING:
        _appeal(deps, view)
    if amount:
        desk.resolve_adjusted(deps, deal_id=str(deal.id), amount=amount, note="")
    else:
        desk.resolve_as_paid(deps, deal_id=str(deal.id), note="")


@retry_conflicts
def _expire(deps: Deps, view: InvoiceView, *_: str) -> None:
    """Ends the time to choose or to pay now. A deal that is marked paid has none."""
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, view.id)
        lifecycle.require_open(invoice)
        lifecycle.expire(tx, deps, invoice, deal, deps.clock.now(), actor=str(SIMULATION))


def _late(deps: Deps, view: InvoiceView, *_: str) -> None:
    """Opens the case of money that came after the end; ends the time first if it is not over."""
    if view.status == InvoiceStatus.PENDING:
        _deal(view)
        _expire(deps, view)
    cases.open_case(deps, invoice_id=str(view.id), note="", picture=None)


STEPS: Final[Mapping[str, Step]] = {
    "select": _select,
    "mark-paid": lambda deps, view, *_: checkout.mark_paid(deps, invoice_id=str(view.id), deal_id=""),
    "confirm": _confirm,
    "reject": _reject,
    "appeal": _appeal,
    "resolve": _resolve,
    "expire": _expire,
    "late": _late,
    "cancel": lambda deps, view, *_: checkout.cancel_checkout(deps, invoice_id=str(view.id)),
}


def _deal(view: InvoiceView) -> DealView:
    if view.deal is None:
        raise errors.deal_state_conflict("No payment method is chosen yet")
    return view.deal


def refuse_magic(deps: Deps, customer_id: str) -> None:
    """Raises the reason that a customer id of docs/api.md#test-mode stands for, in test mode alone."""
    if deps.settings.is_test and customer_id in REFUSALS:
        raise REFUSALS[customer_id](deps)


def _rate_limit(deps: Deps) -> Refused:
    limit = deps.settings.limit_per_customer
    minutes = limit.window // timedelta(minutes=1)
    return errors.customer_rate_limit(
        "test_rate_limit",
        limit=limit.limit,
        window_minutes=minutes,
        next_allowed_at=deps.clock.now() + limit.window,
    )


REFUSALS: Final[Mapping[str, Callable[[Deps], Refused]]] = {
    "test_no_requisites": lambda _: errors.no_available_requisites(),
    "test_rate_limit": _rate_limit,
    "test_deals_disabled": lambda _: errors.deals_system_disabled(),
    "test_unavailable": lambda _: unavailable("DB_UNAVAILABLE", "As the customer id asks for"),
    "test_rate_limited": lambda _: exhausted(
        "RATE_LIMITED", "As the customer id asks for", retry_after_seconds="5"
    ),
}
