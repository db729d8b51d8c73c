"""The rules of invoices and deals: states, transitions, money. Pure; the time is an argument."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from kit.base.money import PERCENT_PLACES, USDT_PLACES, round_down, round_up

DEFAULT_MAX_DEALS = 100


class InvoiceStatus(StrEnum):
    """The states of docs/api.md#invoice-status. All but `pending` are final."""

    PENDING = "pending"
    SUCCESS = "success"
    FAIL = "fail"
    EXPIRED = "expired"
    CANCELED = "canceled"


class DealStatus(StrEnum):
    """The states of docs/api.md#deal-status. `pending` and `appeal` are open: they hold a requisite."""

    PENDING = "pending"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"
    APPEAL = "appeal"
    EXPIRED = "expired"


OPEN_DEAL_STATUSES = (DealStatus.PENDING, DealStatus.APPEAL)


class Trigger(StrEnum):
    """The events that can happen to an open deal."""

    MARK_PAID = "mark_paid"
    EXPIRE = "expire"
    CANCEL_BY_CUSTOMER = "cancel_by_customer"
    CANCEL_BY_OPERATOR = "cancel_by_operator"
    REPLACE = "replace"
    CONFIRM = "confirm"
    REJECT = "reject"
    APPEAL_BY_OPERATOR = "appeal_by_operator"
    APPEAL_BY_CUSTOMER = "appeal_by_customer"
    CONFIRMATION_OVERDUE = "confirmation_overdue"
    RESOLVE_PAID = "resolve_paid"
    RESOLVE_ADJUSTED = "resolve_adjusted"
    RESOLVE_REJECTED = "resolve_rejected"


@dataclass(frozen=True)
class DealState:
    """A deal's `status` with its `sub_status`. The rules need no more."""

    status: DealStatus
    sub_status: str


@dataclass(frozen=True)
class Transition:
    """The target state of a trigger; `invoice` is the invoice's new status, None when it stays pending."""

    target: DealState
    invoice: InvoiceStatus | None = None


AWAITING_PAYMENT = DealState(DealStatus.PENDING, "awaiting_payment")
AWAITING_CONFIRMATION = DealState(DealStatus.PENDING, "awaiting_confirmation")
OPENED_BY_OPERATOR = DealState(DealStatus.APPEAL, "opened_by_operator")
OPENED_BY_CUSTOMER = DealState(DealStatus.APPEAL, "opened_by_customer")
CONFIRMATION_OVERDUE = DealState(DealStatus.APPEAL, "confirmation_overdue")
PAID = Transition(DealState(DealStatus.COMPLETED, "successfully_paid"), InvoiceStatus.SUCCESS)

_UNPAID = (AWAITING_PAYMENT,)
_MARKED = (AWAITING_CONFIRMATION,)
_PENDING = (AWAITING_PAYMENT, AWAITING_CONFIRMATION)
_APPEAL = (OPENED_BY_OPERATOR, OPENED_BY_CUSTOMER, CONFIRMATION_OVERDUE)

# The rows of docs/api.md#deal-status, which is made from them.
_RULES: Sequence[tuple[Trigger, Iterable[DealState], Transition]] = (
    (Trigger.MARK_PAID, _UNPAID, Transition(AWAITING_CONFIRMATION)),
    (
        Trigger.EXPIRE,
        _UNPAID,
        Transition(DealState(DealStatus.EXPIRED, "payment_window_expired"), InvoiceStatus.EXPIRED),
    ),
    (
        Trigger.CANCEL_BY_CUSTOMER,
        _UNPAID,
        Transition(DealState(DealStatus.CANCELED, "canceled_by_customer"), InvoiceStatus.CANCELED),
    ),
    (
        Trigger.CANCEL_BY_OPERATOR,
        _UNPAID,
        Transition(DealState(DealStatus.CANCELED, "canceled_by_operator"), InvoiceStatus.CANCELED),
    ),
    (Trigger.REPLACE, _UNPAID, Transition(DealState(DealStatus.CANCELED, "replaced"))),
    (Trigger.CONFIRM, _PENDING, PAID),
    (
        Trigger.REJECT,
        _PENDING,
        Transition(DealState(DealStatus.FAILED, "rejected_by_operator"), InvoiceStatus.FAIL),
    ),
    (Trigger.APPEAL_BY_OPERATOR, _PENDING, Transition(OPENED_BY_OPERATOR)),
    (Trigger.APPEAL_BY_CUSTOMER, _MARKED, Transition(OPENED_BY_CUSTOMER)),
    (Trigger.CONFIRMATION_OVERDUE, _MARKED, Transition(CONFIRMATION_OVERDUE)),
    (Trigger.RESOLVE_PAID, _APPEAL, PAID),
    (
        Trigger.RESOLVE_ADJUSTED,
        _APPEAL,
        Transition(DealState(DealStatus.COMPLETED, "completed_with_adjustment"), InvoiceStatus.SUCCESS),
    ),
    (
        Trigger.RESOLVE_REJECTED,
        _APPEAL,
        Transition(DealState(DealStatus.FAILED, "appeal_rejected"), InvoiceStatus.FAIL),
    ),
)

TRANSITIONS: Mapping[tuple[DealState, Trigger], Transition] = {
    (source, trigger): transition for trigger, sources, transition in _RULES for source in sources
}


def transition(state: DealState, trigger: Trigger) -> Transition | None:
    """Returns the transition of `trigger` from `state`; None when it is not allowed there. Terminal states have
    none.
    """
    return TRANSITIONS.get((state, trigger))


# -- money (docs/api.md#commission): amounts are fiat, rates fiat per USDT, percents 0..100


def customer_amount(amount: Decimal, client_percent: Decimal, decimals: int) -> Decimal:
    """Returns the amount that the customer sends: the invoice's and the client's part of the commission, rounded up."""
    return round_up(amount * (100 + client_percent) / 100, decimals)


def client_percent(category: Decimal, method: Decimal, client_share: Decimal) -> Decimal | None:
    """Returns the client's part of both commissions, as the catalog will quote it; None when the catalog will refuse.

    Commissions and share are fractions 0..1. The quote decides; this function only predicts its amount.
    """
    if not all(value.is_finite() and 0 <= value <= 1 for value in (category, method, category + method)):
        return None
    total = ((category + method) * 100).quantize(Decimal(1).scaleb(-PERCENT_PLACES), ROUND_HALF_UP)
    return round_down(total * client_share, PERCENT_PLACES)


def merchant_usdt(amount: Decimal, rate: Decimal, merchant_percent: Decimal) -> Decimal:
    """Returns the merchant's credit, USDT with 6 decimals, rounded down: never more than was paid for."""
    with localcontext(prec=60):  # one division, exact far below the sixth decimal
        return round_down(amount * (100 - merchant_percent) / (rate * 100), USDT_PLACES)


def adjustment_allowed(requested: Decimal, adjusted: Decimal) -> bool:
    """Returns whether the amount may be adjusted to `adjusted`: only down, and above zero."""
    return 0 < adjusted < requested


# -- time


def invoice_overdue(*, has_deal: bool, invoice_expires_at: datetime, now: datetime) -> bool:
    """Returns whether the time for choosing a method is over; with a deal, the deal's own time counts instead."""
    return not has_deal and now >= invoice_expires_at


def deal_overdue(state: DealState, deal_expires_at: datetime, now: datetime) -> bool:
    """Returns whether an unpaid deal's payment window is over. Once marked paid, time does not end a deal."""
    return state == AWAITING_PAYMENT and now >= deal_expires_at


def confirmation_overdue(state: DealState, confirm_before: datetime | None, now: datetime) -> bool:
    """Returns whether a deal marked paid has waited too long for the operator."""
    return state == AWAITING_CONFIRMATION and confirm_before is not None and now >= confirm_before


# -- late money, and pictures


class PictureKind(StrEnum):
    """The use of a picture: an open deal's appeal, or a finished invoice's case."""

    APPEAL = "appeal"
    CASE = "case"


PICTURE_MAX_BYTES = 5 * 1024 * 1024
PICTURE_MAX_PIXELS = 64 * 1024 * 1024  # enough for a phone's camera; an operator's browser has to decode them


def late_money_possible(status: InvoiceStatus, *, has_deal: bool) -> bool:
    """Returns whether money may have come for an invoice that ended without success: only if a requisite was ever
    shown.
    """
    return has_deal and status in (InvoiceStatus.FAIL, InvoiceStatus.EXPIRED, InvoiceStatus.CANCELED)


# -- the names of a finished invoice in webhooks

EVENT_TYPES: Mapping[InvoiceStatus, str] = {
    InvoiceStatus.SUCCESS: "invoice.success",
    InvoiceStatus.FAIL: "invoice.fail",
    InvoiceStatus.EXPIRED: "invoice.expired",
    InvoiceStatus.CANCELED: "invoice.canceled",
}
ADJUSTED_EVENT_TYPE = "invoice.adjusted"

REASONS_WITHOUT_METHOD: Mapping[InvoiceStatus, str] = {
    InvoiceStatus.EXPIRED: "ttl_expired",
    InvoiceStatus.CANCELED: "user_canceled",
}


# -- creating an invoice


@dataclass(frozen=True, slots=True)
class NewInvoice:
    """A request to create an invoice, its URLs resolved; and, once stored, the invoice itself."""

    id: UUID
    merchant_id: UUID
    key_id: UUID
    external_id: str
    amount: Decimal
    currency_code: str
    customer_id: str
    purpose: str | None
    callback_url: str | None
    success_url: str | None
    fail_url: str | None
    created_at: datetime
    expires_at: datetime
    status: InvoiceStatus = InvoiceStatus.PENDING
    finished_at: None = None
    deal: None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A place that an invoice needs: of this method, for this amount. `amount_fiat` is null while it is unknown."""

    method_code: str
    amount_fiat: Decimal | None


def may_hold_one_more(own: int, free: int, *, share_percent: int) -> bool:
    """Returns whether a merchant that holds `own` places may take one of the `free` places. Places of other merchants
    do not count.
    """
    others_percent = 100 - share_percent
    return free > 0 and (own + 1) * others_percent <= max((free - 1) * share_percent, others_percent)


PLACE_IS_FREE = "a place is free"


@dataclass(frozen=True, slots=True)
class Room:
    """The free places of a method's enabled requisites for one merchant and amount.

    taken, free        places of all of them
    own                the merchant's among the taken places
    accounts           the requisites
    free_accounts      those with a free place and no open deal of the amount
    own_accounts       those where the merchant has the open deal of the amount
    """

    method_code: str
    taken: int
    free: int
    own: int
    accounts: int
    free_accounts: int
    own_accounts: int

    def refusal(self, share_percent: int) -> str:
        """Returns the cause for which the merchant gets no place, for operators; PLACE_IS_FREE if it would get
        one now.
        """
        at_share = f"FIATGATE_METHOD_SHARE_PERCENT={share_percent}"
        if not self.accounts:
            return "no account is in use"
        if not self.free:
            return f"all {self.taken} places are taken"
        if not self.free_accounts:
            return "every account with a free place has an open deal of this amount"
        if not may_hold_one_more(self.own_accounts, self.free_accounts, share_percent=share_percent):
            held = f"{self.own_accounts} of {self.own_accounts + self.free_accounts}"
            return f"the merchant holds its share of the accounts for this amount: {held}, {at_share}"
        if not may_hold_one_more(self.own, self.free, share_percent=share_percent):
            return f"the merchant holds its share of the places: {self.own} of {self.own + self.free}, {at_share}"
        return PLACE_IS_FREE


@dataclass(frozen=True, slots=True)
class NewDeal:
    """The deal that the choice of a method makes; its requisite is found when the deal is stored."""

    id: UUID
    invoice_id: UUID
    merchant_id: UUID
    method_code: str
    method_name: str
    currency_code: str
    currency_decimals: int
    invoice_amount: Decimal
    amount_fiat: Decimal
    conversion_rate: Decimal
    client_percent: Decimal
    merchant_percent: Decimal
    created_at: datetime
    expires_at: datetime
    status: DealStatus = AWAITING_PAYMENT.status
    sub_status: str = AWAITING_PAYMENT.sub_status


class AmountBounds(Protocol):
    """The smallest and the largest amount that a currency accepts."""

    @property
    def minimum(self) -> Decimal: ...
    @property
    def maximum(self) -> Decimal: ...


@dataclass(frozen=True, slots=True)
class CreationFacts:
    """The database's state at the moment of the insert, and whether the insert took place."""

    created: bool
    system_enabled: bool
    duplicate_id: UUID | None
    duplicate_status: str | None
    waiting_id: UUID | None
    waiting_overdue: bool
    unpaid: int
    oldest_unpaid_at: datetime | None
    requisite_free: bool


@dataclass(frozen=True, slots=True)
class CustomerLimit:
    """At most `limit` unpaid invoices of one customer in the last `window`."""

    limit: int
    window: timedelta

    def window_start(self, now: datetime) -> datetime:
        """Invoices of this moment and earlier do not count."""
        return now - self.window

    def next_allowed_at(self, oldest_counted_at: datetime) -> datetime:
        """Returns the time at which the oldest of the newest `limit` unpaid invoices leaves the window."""
        return oldest_counted_at + self.window


class CreationRefusal(StrEnum):
    """The reasons against a new invoice, in the order in which they are reported (docs/api.md#create-invoice)."""

    DEALS_SYSTEM_DISABLED = "DEALS_SYSTEM_DISABLED"
    CURRENCY_INVALID = "CURRENCY_INVALID"
    MISSING_REQUIRED_URLS = "MISSING_REQUIRED_URLS"
    DUPLICATE_EXTERNAL_ID = "DUPLICATE_EXTERNAL_ID"
    AMOUNT_BELOW_MIN = "AMOUNT_BELOW_MIN"
    AMOUNT_ABOVE_MAX = "AMOUNT_ABOVE_MAX"
    PAYMENT_METHOD_NOT_FOUND = "PAYMENT_METHOD_NOT_FOUND"
    PENDING_INVOICE_EXISTS = "PENDING_INVOICE_EXISTS"
    CUSTOMER_RATE_LIMIT = "CUSTOMER_RATE_LIMIT"
    NO_AVAILABLE_REQUISITES = "NO_AVAILABLE_REQUISITES"


def refusals_of_request(
    amount: Decimal, bounds: AmountBounds | None, *, missing_urls: Sequence[str], wanted: Sequence[Wanted]
) -> set[CreationRefusal]:
    """Returns the reasons that do not depend on the database.

    bounds  the currency's bounds of an amount, None when the merchant may not use the currency
    wanted  a place of each method that accepts the amount
    """
    rules = {
        CreationRefusal.CURRENCY_INVALID: bounds is None,
        CreationRefusal.MISSING_REQUIRED_URLS: bool(missing_urls),
        CreationRefusal.AMOUNT_BELOW_MIN: bounds is not None and (amount < bounds.minimum or amount <= 0),
        CreationRefusal.AMOUNT_ABOVE_MAX: bounds is not None and amount > bounds.maximum,
        CreationRefusal.PAYMENT_METHOD_NOT_FOUND: not wanted,
    }
    return {refusal for refusal, applies in rules.items() if applies}


def refusals_of_facts(facts: CreationFacts, limit: CustomerLimit) -> set[CreationRefusal]:
    """Returns the reasons that the database has. `create_if_allowed` of the store has the same rules in SQL."""
    rules = {
        CreationRefusal.DEALS_SYSTEM_DISABLED: not facts.system_enabled,
        CreationRefusal.DUPLICATE_EXTERNAL_ID: facts.duplicate_id is not None,
        CreationRefusal.PENDING_INVOICE_EXISTS: facts.waiting_id is not None,
        CreationRefusal.CUSTOMER_RATE_LIMIT: facts.unpaid >= limit.limit,
        CreationRefusal.NO_AVAILABLE_REQUISITES: not facts.requisite_free,
    }
    return {refusal for refusal, applies in rules.items() if applies}


def first_refusal(refusals: Collection[CreationRefusal]) -> CreationRefusal | None:
    """Returns the one to report; None when there is none."""
    return next((each for each in CreationRefusal if each in refusals), None)
