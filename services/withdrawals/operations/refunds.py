"""Refunds: what may go back to a customer, and the requests for it. `refund_steps` has what follows a request."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.audit import acts
from kit.audit.approvals import pending_of
from kit.audit.listing import Act, newest_acts_on
from kit.base import actors
from kit.base.ids import new_id
from kit.base.money import FIAT_PLACES, fiat_text, has_decimals, usdt_text
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.rpc import values
from kit.rpc.actors import require_merchant
from kit.rpc.errors import Refused, database_unavailable, edit_conflict, not_decided
from services.withdrawals import errors
from services.withdrawals.clients import DealMoney
from services.withdrawals.domain import (
    MAX_AMOUNT,
    UNPAID,
    RefundOrigin,
    RefundStatus,
    refund_affordable,
    refund_movements,
    refund_takes,
    refund_takes_part,
)
from services.withdrawals.operations import fields
from services.withdrawals.operations.bans import refusal_of_member
from services.withdrawals.operations.fields import Account
from services.withdrawals.operations.reading import ACTS_MOST
from services.withdrawals.store import corrections, ledger, refunds
from services.withdrawals.store.corrections import InvoiceMoney
from services.withdrawals.store.decisions import REFUND
from services.withdrawals.store.refunds import Filter
from services.withdrawals.store.views import RefundView
from services.withdrawals.wiring import Deps

REQUEST: Final = "refund.request"
OF_PAGE_MOST: Final = 20
"""Refunds on the page of one invoice."""
EXTERNAL_ID_MAX_CHARACTERS: Final = most_of(pb.RequestRefundRequest, "external_id")
REASON_MAX_CHARACTERS: Final = most_of(pb.RequestRefundRequest, "reason")
_NO_ACCOUNT: Final = Account(None, None, None, None)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The money of a request: `refund_amount` is fiat as text, empty for all that may be refunded."""

    merchant_id: str
    invoice_id: str
    origin: RefundOrigin
    refund_amount: str
    case_number: int


@dataclass(frozen=True)
class Quote:
    """The price of a refund: `amount` in USDT, `rate` the lowest at which the money was credited. `refundable` is the
    most in fiat, None for money never credited.
    """

    deal: DealMoney
    amount: Decimal
    refund_amount: Decimal
    refundable: Decimal | None
    rate: Decimal

    def affordable(self, available: Decimal) -> Decimal:
        """Returns the fiat that can be refunded with the available USDT, at most what is asked for."""
        return refund_affordable(
            available, fiat=self.refund_amount, takes=self.amount, places=self.deal.currency_decimals
        )


def request_refund(
    deps: Deps, asked: Asked, *, external_id: str, account: Account | None, reason: str, expected_amount: str
) -> RefundView:
    """Reserves the USDT; an `external_id` of the merchant that was used before returns the refund that it made, also
    when the merchant was banned since.

    Raises INVOICE_NOT_FOUND, REFUND_INVALID, REFUND_EXISTS, INSUFFICIENT_BALANCE, EDIT_CONFLICT, NOT_DECIDED, and the
    reasons of `refusal_of_member`.
    """
    key = values.label("external_id", external_id, most=EXTERNAL_ID_MAX_CHARACTERS)
    text = values.text("reason", reason.strip(), least=0, most=REASON_MAX_CHARACTERS)
    expected = fields.amount("expected_amount", expected_amount) if expected_amount else None
    _require_origin_of_author(asked.origin)
    deal, wanted = _deal(deps, asked), _amount(asked)
    new = RefundView(
        id=new_id(),
        merchant_id=deal.merchant_id,
        invoice_id=deal.invoice_id,
        external_id=key,
        origin=asked.origin,
        case_number=values.whole_number("case_number", asked.case_number, least=0) or None,
        refund_amount=wanted or Decimal(0),
        currency_code=deal.currency_code,
        amount=Decimal(0),
        conversion_rate=deal.conversion_rate,
        reason=text,
        status=RefundStatus.WAITING_FOR_ACCOUNT if account is None else RefundStatus.READY,
        **(account or _NO_ACCOUNT).columns(),
        account_by_customer=False,
        bank_reference=None,
        failure=None,
        created_at=deps.clock.now(),
        updated_at=deps.clock.now(),
        finished_at=None,
    )
    refusal = refusal_of_member(deps, deal.merchant_id)
    made = _made_before(deps, new)
    if made is not None:
        return made
    if refusal is not None:
        raise refusal
    return _make(deps, asked, new, deal, expected)


def check_refund(deps: Deps, asked: Asked) -> tuple[Quote, Decimal]:
    """Returns what the refund would take, and the merchant's available money. Changes nothing. Raises what
    `request_refund` raises.
    """
    deal = _deal(deps, asked)
    with deps.db.transaction() as tx:
        quote = _quoted(tx, asked, deal)
    with deps.db.autocommit() as connection:
        return quote, ledger.balance(connection, quote.deal.merchant_id).available


def _require_origin_of_author(origin: RefundOrigin) -> None:
    """Money that was credited is the merchant's to return, money that was not the operator's. The command line, which
    may act for both, names the merchant.
    """
    by_operator = actors.current().surface == "desk"
    if actors.current().surface != "cli" and by_operator == (origin is RefundOrigin.CREDITED):
        whose = "the merchant requests" if by_operator else "only an operator returns"
        raise errors.refund_invalid(f"Money of this origin is not yours to return: {whose} it")


def _deal(deps: Deps, asked: Asked) -> DealMoney:
    invoice_id = values.uuid_or(errors.invoice_not_found, asked.invoice_id)
    if deps.invoices is None:
        raise database_unavailable()
    try:
        deal = deps.invoices.deal_money(invoice_id=invoice_id)
    except Refused as refused:
        if refused.reason == "DEAL_NOT_FOUND":
            if actors.current().surface == "dashboard":  # it may be another merchant's
                raise errors.invoice_not_found() from None
            raise errors.refund_invalid("Nothing was paid: no payment method was chosen") from None
        raise
    if asked.merchant_id and values.uuid("merchant_id", asked.merchant_id) != deal.merchant_id:
        raise errors.invoice_not_found()
    return deal


def _amount(asked: Asked) -> Decimal | None:
    """Returns the fiat that is asked for; None for all of it."""
    if not asked.refund_amount and asked.origin is RefundOrigin.CREDITED:
        return None
    amount = values.decimal("refund_amount", asked.refund_amount)
    if not 0 < amount <= MAX_AMOUNT or not has_decimals(amount, at_most=FIAT_PLACES):
        raise values.invalid(
            "refund_amount", f"Expected an amount above zero with at most {FIAT_PLACES} decimals"
        )
    return amount


def _quoted(tx: Session, asked: Asked, deal: DealMoney) -> Quote:
    """Returns what the refund takes: at the rate at which the money was credited, or the part of the credit when the
    category returns the commission.
    """
    if not corrections.are_decided(tx, deal.invoice_id):
        raise not_decided("correction")
    money = corrections.money_of(tx, deal.invoice_id)
    paid = (deal.paid_amount or Decimal(0)) + money.received
    refundable = _refundable(money, asked, deal, paid)
    wanted = _amount(asked) or refundable or Decimal(0)
    if not has_decimals(wanted, at_most=deal.currency_decimals):
        message = f"{deal.currency_code} has at most {deal.currency_decimals} decimals"
        raise values.invalid("refund_amount", message)
    _require_at_most(wanted, refundable, deal)
    if asked.origin is not RefundOrigin.CREDITED:
        return Quote(deal, Decimal(0), wanted, refundable, deal.conversion_rate)
    rate = min(each for each in (deal.conversion_rate if deal.paid_amount else None, money.rate) if each)
    takes = (
        refund_takes_part(wanted, paid=paid, credited=money.credited)
        if deal.refunds_return_commission
        else refund_takes(wanted, rate=rate)
    )
    if not takes:
        raise errors.refund_invalid("Nothing was credited for this invoice")
    return Quote(deal, takes, wanted, refundable, rate)


def _refundable(money: InvoiceMoney, asked: Asked, deal: DealMoney, paid: Decimal) -> Decimal | None:
    """Returns the most that may be refunded, in fiat; None for money that was never credited, which the operator
    counts. Raises REFUND_INVALID when there can be no refund of this origin.
    """
    if asked.origin is RefundOrigin.LATE:
        if deal.invoice_status not in UNPAID:
            raise errors.refund_invalid("Money is late only for an invoice that ended without success")
        if not asked.case_number:
            raise values.invalid("case_number", "Expected the case of the money that came late")
    if asked.origin is RefundOrigin.SURPLUS and deal.invoice_status != "success":
        raise errors.refund_invalid("Only a paid invoice can be paid too much")
    if asked.origin is not RefundOrigin.CREDITED:
        if money.late if asked.origin is RefundOrigin.LATE else money.surplus:
            raise errors.refund_invalid(
                "This money is credited to the merchant, who can refund it, or returned already"
            )
        if asked.origin is RefundOrigin.LATE:
            _require_case(asked, deal)
        return None
    if money.reversed:
        raise errors.refund_invalid(
            "The credit of this invoice was taken back, in whole or in part, so it can't be refunded"
        )
    if not paid:
        raise errors.refund_invalid("Only a paid invoice can be refunded")
    return max(paid - money.refunded, Decimal(0))


def _require_case(asked: Asked, deal: DealMoney) -> None:
    if asked.case_number != deal.case_number:
        raise errors.case_of_another()
    if deal.case_decided == "credit":
        raise errors.refund_invalid("The merchant has answered, or the case ended: this money is credited")


def _require_at_most(wanted: Decimal, refundable: Decimal | None, deal: DealMoney) -> None:
    if refundable is not None and not 0 < wanted <= refundable:
        raise errors.refund_invalid(
            f"At most {fiat_text(refundable)} {deal.currency_code} of this invoice can still be refunded",
            refundable=fiat_text(refundable),
            currency=deal.currency_code,
        )


def _made_before(deps: Deps, new: RefundView) -> RefundView | None:
    with deps.db.transaction() as tx:
        return _the_same(tx, new)


def _the_same(tx: Session, new: RefundView) -> RefundView | None:
    """Returns the refund that has the external_id. An amount or an account that the request leaves out is not compared.
    Raises REFUND_EXISTS when another value differs.
    """
    made = refunds.of_external_id(tx, new.merchant_id, new.external_id)
    if made is None:
        return None
    compared = ["invoice_id", "origin", "case_number", "reason"]
    compared += ["refund_amount"] if new.refund_amount else []
    compared += ["account_kind", "account", "holder", "bank"] if new.account is not None else []
    if any(getattr(made, each) != getattr(new, each) for each in compared):
        raise errors.refund_exists(made.id)
    return made


@retry_conflicts
def _make(deps: Deps, asked: Asked, new: RefundView, deal: DealMoney, expected: Decimal | None) -> RefundView:
    with deps.db.transaction() as tx:
        held = ledger.locked(tx, new.merchant_id)
        made = _the_same(tx, new)
        if made is not None:
            return made
        quote = _quoted(tx, asked, deal)
        if expected not in (None, quote.amount):
            raise edit_conflict("expected_amount", usdt_text(quote.amount))
        new = replace(new, refund_amount=quote.refund_amount, amount=quote.amount, conversion_rate=quote.rate)
        # Under the lock: `fiatgate verify` reads from the order of ids what was credited before.
        now = deps.clock.now()
        new = replace(new, id=new_id(), created_at=now, updated_at=now)
        if not new.amount <= held.available or not held.reserved.is_finite():
            raise errors.refund_above_balance(
                available=held.available,
                requested=new.amount,
                refundable=fiat_text(quote.affordable(held.available)),
                currency=new.currency_code,
                commission_stays=not deal.refunds_return_commission,
            )
        refunds.add(tx, new)
        reserve = refund_movements(new.id, RefundStatus.WAITING_FOR_ACCOUNT, amount=new.amount)
        if reserve:
            ledger.transfer(tx, ledger.accounts(tx, new.merchant_id), reserve, at=new.created_at)
        acts.record(
            tx,
            REQUEST,
            f"refund:{new.id}",
            merchant_id=new.merchant_id,
            after=acts.values_of(new, [each for each in REFUND.fields if each != "merchant_id"]),
        )
        return new


# -- reading


def list_refunds(
    deps: Deps,
    *,
    merchant_id: str,
    invoice_id: str,
    statuses: Sequence[RefundStatus],
    external_id: str,
    limit: int,
    after_refund_id: str,
    oldest_first: bool,
    refund_ids: Sequence[str],
) -> Sequence[RefundView]:
    """Returns refunds. Raises REFUND_NOT_FOUND for an unknown `after_refund_id`."""
    values.at_most("refund_ids", refund_ids, values.LIST_MOST_ROWS)
    filter = Filter(
        ids=[values.uuid("refund_ids", each) for each in refund_ids],
        merchant_id=values.uuid("merchant_id", merchant_id) if merchant_id else None,
        invoice_id=values.uuid("invoice_id", invoice_id) if invoice_id else None,
        statuses=statuses,
        external_id=values.text("external_id", external_id, least=0, most=EXTERNAL_ID_MAX_CHARACTERS),
    )
    rows = values.rows(limit)
    with deps.db.transaction() as tx:
        after = _refund(tx, after_refund_id) if after_refund_id else None
        return refunds.listed(tx, filter, after=after, oldest_first=oldest_first, limit=rows)


def list_refunds_of_page(deps: Deps, *, invoice_id: str) -> tuple[Sequence[RefundView], Decimal | None]:
    """Returns the newest refunds of the invoice, for the customer, and the surplus in fiat that was credited."""
    of_invoice = Filter(invoice_id=values.uuid_or(errors.invoice_not_found, invoice_id))
    with deps.db.transaction() as tx:
        surplus = corrections.surplus_of(tx, of_invoice.invoice_id)
        return refunds.listed(tx, of_invoice, limit=OF_PAGE_MOST), surplus


@dataclass(frozen=True)
class Story:
    """A refund with the acts on it, oldest first, and the requests of it and of a correction that wait for a second
    person.
    """

    refund: RefundView
    acts: Sequence[Act]
    pending_approval_id: UUID | None
    pending_correction_id: UUID | None


def get_refund(deps: Deps, *, refund_id: str) -> Story:
    """Returns one refund. Raises REFUND_NOT_FOUND, also to a member of another merchant."""
    with deps.db.transaction() as tx:
        refund = _refund(tx, refund_id)
        object = f"refund:{refund.id}"
        pending, correction = pending_of(tx, object), pending_of(tx, f"invoice:{refund.invoice_id}")
        return Story(
            refund=refund,
            acts=newest_acts_on(tx.connection(), [object], limit=ACTS_MOST)[::-1],
            pending_approval_id=None if pending is None else pending.id,
            pending_correction_id=None if correction is None else correction.id,
        )


def _refund(tx: Session, refund_id: str) -> RefundView:
    found = refunds.refund(tx, values.uuid_or(errors.refund_not_found, refund_id))
    if found is None:
        raise errors.refund_not_found()
    require_merchant(found.merchant_id, errors.refund_not_found)
    return found
