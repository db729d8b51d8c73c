"""The operator's desk: deals, and cancellation (members cancel too)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.audit import acts
from kit.audit.approvals import Approval, Terms, close
from kit.base import actors
from kit.base.money import fiat_text, has_decimals, usdt_text
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.rpc import approvals, values
from services.invoices import errors
from services.invoices.domain import money
from services.invoices.domain.names import words_of_name
from services.invoices.domain.states import SUB_STATUSES, DealStatus, Trigger
from services.invoices.models import Deal, Invoice
from services.invoices.operations import checkout, fields, lifecycle
from services.invoices.operations.lines import pay
from services.invoices.store import cases, deal_lists, deals
from services.invoices.store.deal_lists import DealList, ListedDeal, StateOfDeal
from services.invoices.store.lines import Part
from services.invoices.store.views import (
    DealView,
    InvoiceView,
    PictureView,
    RequisiteView,
    TransitionView,
)
from services.invoices.wiring import Deps


@dataclass(frozen=True)
class DealStory:
    """A deal with its requisite and its history, oldest first. It could be mistaken for those in `near`."""

    listed: ListedDeal
    requisite: RequisiteView | None
    history: Sequence[TransitionView]
    pictures: Sequence[PictureView]
    near: Sequence[DealView]
    account_undecided: bool

    @property
    def deal(self) -> DealView:
        return self.listed.deal


@dataclass(frozen=True, kw_only=True)
class Lower:
    """The lower amount that an operator gives for an appeal, fiat: one of the two.

    part      the part of the order that counts as paid
    received  the amount that came, by the bank statement
    """

    part: Decimal | None = None
    received: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class Adjustment:
    """A lower amount: the part of the order that counts as paid, what came, and the merchant's credit in USDT."""

    part: Decimal
    received: Decimal | None
    credit: Decimal


# -- deals

ADJUST: Final = "deal.adjust"
NEAR_MOST: Final = 5
_ACTS: Final = {
    Trigger.CONFIRM: "deal.confirm",
    Trigger.REJECT: "deal.reject",
    Trigger.APPEAL_BY_OPERATOR: "deal.appeal",
    Trigger.RESOLVE_PAID: "deal.resolve",
    Trigger.RESOLVE_REJECTED: "deal.resolve",
    Trigger.RESOLVE_ADJUSTED: ADJUST,
}
_OF_DEALS: Final = ("status", "sub_status", "amount_fiat", "adjusted_amount", "merchant_usdt")


def list_deals(
    deps: Deps,
    *,
    limit: int,
    status: DealStatus | None = None,
    sub_status: str = "",
    merchant_id: str = "",
    method_code: str = "",
    created_from: datetime | None = None,
    created_before: datetime | None = None,
    after_deal_id: str = "",
    oldest_first: bool = False,
    reference: str = "",
    sender_name: str = "",
    account: str = "",
    currency_code: str = "",
    amount_from: str = "",
    amount_to: str = "",
    customer_id: str = "",
    external_id: str = "",
    marked_paid: bool = False,
    deal_ids: Sequence[str] = (),
    by_amount: bool = False,
) -> DealList:
    """Returns deals that match the filter, newest first unless `oldest_first`. An empty filter matches all.

    With `marked_paid` these are the operator's queue, in its order; status and sub_status do not count then. Open deals
    are few, so that they have an order `by_amount` too.

    Raises VALIDATION_ERROR, also for a `sub_status` that no deal can have, and DEAL_NOT_FOUND for an unknown
    `after_deal_id`.
    """
    wanted = deal_lists.DealFilter(
        status=None if marked_paid else status or SUB_STATUSES.get(sub_status),
        sub_status="" if marked_paid else fields.sub_status(sub_status),
        merchant_id=values.uuid("merchant_id", merchant_id) if merchant_id else None,
        method_code=values.text("payment_method_code", method_code, least=0, most=64),
        created_from=created_from,
        created_before=created_before,
        reference=fields.reference(reference) if reference else "",
        sender_words=words_of_name(fields.sender_name(sender_name)) if sender_name else "",
        marked_paid=marked_paid,
        account_key=fields.account_key(account) if account else "",
        currency_code=values.text("currency_code", currency_code, least=0, most=64),
        amount_from=values.decimal("amount_from", amount_from) if amount_from else None,
        amount_to=values.decimal("amount_to", amount_to) if amount_to else None,
        customer_id=_given("customer_id", customer_id),
        external_id=_given("external_id", external_id),
        ids=_ids(deal_ids),
        by_amount=by_amount,
    )
    if by_amount and not wanted.has_few:
        raise values.invalid("by_amount", "only open deals have an order by amount")
    after = fields.deal_id(after_deal_id) if after_deal_id else None
    with deps.db.autocommit() as connection:
        if after is not None:
            place = deal_lists.place_of_deal(connection, after, marked_paid=marked_paid, by_amount=by_amount)
            if place is None:
                raise errors.deal_not_found()
            wanted = replace(wanted, after=place)
        return deal_lists.deals(connection, wanted, values.rows(limit), oldest_first=oldest_first)


def _given(field: str, value: str) -> str:
    return values.text(field, value, least=0, most=most_of(pb.ListDealsRequest, field))


def list_deal_states(deps: Deps, *, deal_ids: Sequence[str]) -> Sequence[StateOfDeal]:
    """Returns the present states of these deals. Unknown ones are left out."""
    with deps.db.autocommit() as connection:
        return deal_lists.deal_states(connection, _ids(deal_ids))


def _ids(deal_ids: Sequence[str]) -> Sequence[UUID]:
    values.at_most("deal_ids", deal_ids, values.LIST_MOST_ROWS)
    return [values.uuid("deal_ids", each) for each in deal_ids]


def get_deal(deps: Deps, *, deal_id: str) -> DealStory:
    id = fields.deal_id(deal_id)
    with deps.db.autocommit() as connection:
        listed = deal_lists.listed_deal(connection, id)
        if listed is None:
            raise errors.deal_not_found()
        requisite = deals.requisite(connection, listed.deal.requisite_id)
        history = deals.deal_history(connection, id)
        pictures = cases.pictures(connection, id)
        near = deal_lists.nearest_deals(connection, listed.deal, NEAR_MOST)
    undecided = requisite is not None and not deps.decided_requisites.are(requisite.id, requisite)
    return DealStory(listed, requisite, history, pictures, near, undecided)


def confirm_deal(deps: Deps, *, deal_id: str, lines: Sequence[Part] = ()) -> DealView:
    """Completes the deal because the money came; its invoice becomes a success. The customer need not have marked it
    paid. Bank lines, if given, prove the money: they also end an appeal. Raises BANK_LINE_CONFLICT.
    """
    return _step(deps, deal_id, Trigger.CONFIRM, lines=lines)


def reject_deal(deps: Deps, *, deal_id: str, note: str, expected: str = "") -> DealView:
    """Fails the deal and its invoice because no money came. `expected` is the sub_status that the operator saw."""
    return _step(deps, deal_id, Trigger.REJECT, note=note, expected=expected)


def open_appeal(deps: Deps, *, deal_id: str, note: str) -> DealView:
    """Moves the deal into appeal: it stays open and no longer ends by time."""
    return _step(deps, deal_id, Trigger.APPEAL_BY_OPERATOR, note=note)


def resolve_as_paid(deps: Deps, *, deal_id: str, note: str, expected: str = "") -> DealView:
    return _step(deps, deal_id, Trigger.RESOLVE_PAID, note=note, expected=expected)


def resolve_as_rejected(deps: Deps, *, deal_id: str, note: str, expected: str = "") -> DealView:
    return _step(deps, deal_id, Trigger.RESOLVE_REJECTED, note=note, expected=expected)


def _lower(amount: str, received: str | None) -> Lower:
    if received is not None:
        return Lower(received=values.decimal("received_amount", received))
    return Lower(part=values.decimal("adjusted_amount", amount))


def check_adjustment(
    deps: Deps, *, deal_id: str, amount: str = "", received: str | None = None
) -> Adjustment:
    """Returns what `resolve_adjusted` would count and credit, and changes nothing."""
    id, given = fields.deal_id(deal_id), _lower(amount, received)
    with deps.db.transaction() as tx:
        deal = deals.deal(tx, id)
        if deal is None:
            raise errors.deal_not_found()
        return _adjustment(deal, given)


def resolve_adjusted(
    deps: Deps,
    *,
    deal_id: str,
    amount: str = "",
    received: str | None = None,
    note: str,
    expected: str = "",
) -> DealView:
    """Ends the appeal with a lower amount, a success: the part of the order that counts as paid, or the amount that was
    received in its place. Once per deal. Raises APPROVAL_REQUIRED, APPROVAL_STATE_CONFLICT.
    """
    id, given = fields.deal_id(deal_id), _lower(amount, received)
    if not deps.settings.four_eyes:
        return _step(deps, deal_id, Trigger.RESOLVE_ADJUSTED, note=note, expected=expected, given=given)
    return approvals.done(_requested(deps, id, given, note=fields.note(note), expected=expected))


@retry_conflicts
def _requested(deps: Deps, id: UUID, given: Lower, *, note: str, expected: str) -> Approval:
    with deps.db.transaction() as tx:
        _, deal = lifecycle.locked_by_deal(tx, id)
        _require_expected(deal, expected)
        lifecycle.step_of(deal, Trigger.RESOLVE_ADJUSTED)
        return approvals.request(tx, _adjusting(deal, _adjustment(deal, given)), deps, note=note)


def adjust_approved(deps: Deps, tx: Session, asked: Approval) -> None:
    """Ends the appeal with the requested amount. Raises DEAL_STATE_CONFLICT, APPROVAL_STATE_CONFLICT."""
    request = asked.request
    given = _lower(request["adjusted_amount"], request.get("received_amount"))
    invoice, deal = lifecycle.locked_by_deal(tx, UUID(request["deal_id"]))
    lifecycle.step_of(deal, Trigger.RESOLVE_ADJUSTED)
    adjustment = _adjustment(deal, given)
    if not asked.asks_for(_adjusting(deal, adjustment)):
        raise approvals.changed_since()
    take(tx, deps, invoice, deal, Trigger.RESOLVE_ADJUSTED, note=asked.note, adjustment=adjustment)


def _adjusting(deal: Deal, adjustment: Adjustment) -> Terms:
    received = adjustment.received
    of_statement = {} if received is None else {"received_amount": fiat_text(received)}
    return adjust_terms(
        {
            "deal_id": str(deal.id),
            "merchant_id": str(deal.merchant_id),
            "currency_code": deal.currency_code,
            "adjusted_amount": fiat_text(adjustment.part),
            "invoice_amount": fiat_text(deal.invoice_amount),
            "merchant_usdt": usdt_text(adjustment.credit),
        }
        | (of_statement and of_statement | {"amount_fiat": fiat_text(deal.amount_fiat)})
    )


def adjust_terms(request: Mapping[str, Any]) -> Terms:
    paid, currency = request["adjusted_amount"], request["currency_code"]
    ends = f"{paid} {currency} paid instead of {request['invoice_amount']}"
    if "received_amount" in request:
        ends = (
            f"{request['received_amount']} {currency} received of {request['amount_fiat']}: it counts as {paid} paid "
            f"of the order's {request['invoice_amount']}"
        )
    return Terms(
        act=ADJUST,
        object=f"deal:{request['deal_id']}",
        request=request,
        summary=f"End the appeal with {ends}, "
        f"which credits {request['merchant_usdt']} USDT to merchant {request['merchant_id']}",
        merchant_id=UUID(request["merchant_id"]),
    )


@retry_conflicts
def _step(
    deps: Deps,
    deal_id: str,
    trigger: Trigger,
    *,
    note: str = "",
    expected: str = "",
    given: Lower | None = None,
    lines: Sequence[Part] = (),
) -> DealView:
    id = fields.deal_id(deal_id)
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked_by_deal(tx, id)
        _require_expected(deal, expected)
        adjustment = None if given is None else _adjustment(deal, given)
        in_appeal, written = deal.status == DealStatus.APPEAL, fields.note(note)
        if lines and in_appeal:
            trigger = Trigger.RESOLVE_PAID
        take(tx, deps, invoice, deal, trigger, note=written, adjustment=adjustment)
        if lines:
            pay(tx, deps, deal, lines)
        if in_appeal:
            close(tx, f"deal:{id}", at=deps.clock.now(), note=f"The deal became {deal.sub_status}")
        return _found_deal(deals.deal_view(tx, id))


def take(
    tx: Session,
    deps: Deps,
    invoice: Invoice,
    deal: Deal,
    trigger: Trigger,
    *,
    note: str,
    adjustment: Adjustment | None,
) -> None:
    """Takes the step, with its act, which also has the amount that came."""
    lifecycle.require_as_decided(tx, deal)
    before, now, actor = acts.values_of(deal, _OF_DEALS), deps.clock.now(), str(actors.current())
    part, received = (adjustment.part, adjustment.received) if adjustment else (None, None)
    advance = partial(lifecycle.advance, tx, deps, invoice, deal, trigger, now=now, actor=actor, note=note)
    advance(adjusted_amount=part, received=received)
    after = acts.values_of(deal, _OF_DEALS)
    if received is not None:
        after["received_amount"] = fiat_text(received)
    object, merchant = f"deal:{deal.id}", deal.merchant_id
    acts.record(tx, _ACTS[trigger], object, merchant_id=merchant, before=before, after=after, note=note)


def _require_expected(deal: Deal, expected: str) -> None:
    if expected and deal.sub_status != expected:
        message = "The deal has changed since it was looked at"
        raise errors.deal_state_conflict(message, status=deal.status, sub_status=deal.sub_status)


def _found_deal(deal: DealView | None) -> DealView:
    if deal is None:
        raise errors.deal_not_found()
    return deal


def _adjustment(deal: Deal, given: Lower) -> Adjustment:
    """Returns what the lower amount means for the deal. Raises ADJUSTMENT_INVALID."""
    if given.received is not None:
        amount, most = given.received, deal.amount_fiat
        part = money.order_part(amount, deal.client_percent, deal.currency_decimals)
    else:
        amount, most = given.part or Decimal(0), deal.invoice_amount
        part = amount
    if (
        not has_decimals(amount, at_most=deal.currency_decimals)
        or not money.adjustment_allowed(most, amount)
        or not money.adjustment_allowed(deal.invoice_amount, part)
    ):
        raise errors.adjustment_invalid(amount, most)
    credit = money.merchant_usdt(part, deal.conversion_rate, deal.merchant_percent)
    return Adjustment(part=part, received=given.received, credit=credit)


@retry_conflicts
def cancel_invoice(deps: Deps, *, invoice_id: str, merchant_id: str = "") -> InvoiceView:
    """Cancels for an operator, a member or a program. A deal that is marked paid can only be rejected or appealed."""
    author = actors.current()
    return checkout.cancel_invoice(
        deps,
        fields.invoice_id(invoice_id),
        Trigger.CANCEL_BY_OPERATOR,
        merchant_id=values.uuid("merchant_id", merchant_id) if merchant_id else None,
        actor=actors.API_KEY if author.kind == "api" else str(author),
    )


# -- the switch
