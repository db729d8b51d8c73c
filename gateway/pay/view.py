"""Derives the content of the page from an answer of invoices. Pure: messages in, plain values for the templates out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from gateway.links import Links
from gateway.pay.accounts import Code, code_of, reference_in_groups
from gateway.pay.brand import stylesheet_name
from gateway.pay.notices import NOTHING_TO_CHOOSE, NOTICES
from gateway.pay.refunds import Refund
from gateway.pay.until import Until
from kit.base.groups import account_in_groups
from kit.base.money import fiat_text
from kit.base.proto import datetime_from, optional, optional_datetime

PAY_REFRESH_SECONDS: Final = 60
WAIT_REFRESH_SECONDS: Final = 8
RETURN_SECONDS: Final = 6
RETURN_UNTIL: Final = timedelta(minutes=10)  # the customer opens the page later for the receipt
LONG_AMOUNT_CHARACTERS: Final = 8  # of 12345.67
# Further methods have their initial instead: a first load stays under 60 KB with any number of methods.
METHOD_LOGOS_MAX: Final = 12


class Screen(Enum):
    """The value is the template's name."""

    CHOOSE = "choose"
    PAY = "pay"
    WAITING = "waiting"
    REVIEW = "review"
    OUTCOME = "outcome"


@dataclass(frozen=True)
class Method:
    """A method of the choice. `is_taken`: no account has a place now; `free_from`: when one may become free."""

    code: str
    name: str
    logo: str | None
    minutes: int
    amount: str
    fee: str | None
    is_current: bool
    is_taken: bool
    free_from: Until | None


@dataclass(frozen=True)
class Requisite:
    """`account` is in groups for reading; joined without spaces it is the text for copying."""

    holder: str
    account: Sequence[str]
    bank: str | None
    code: Code

    @property
    def account_text(self) -> str:
        return "".join(self.account)


@dataclass(frozen=True)
class Refresh:
    """The address that the browser loads by itself after a while."""

    seconds: int
    url: str


@dataclass(frozen=True)
class LateMoney:
    """The case that the customer opened; `answer` is the operator's, null until it is given."""

    number: int
    answer: str | None


@dataclass(frozen=True)
class PartPayment:
    """An adjustment: the invoice's amount, and what the customer was asked to send for it."""

    ordered: str
    asked: str


@dataclass(frozen=True)
class Brand:
    """The merchant's settings of the page; `frame_origins` are the sites whose pages may show it."""

    stylesheet: str | None
    logo: str | None
    frame_origins: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything a template may show.

    amount     of the invoice; after an adjustment the final one
    to_pay     the amount that the customer sends, or that came; null before a method is chosen
    part       null unless less came than was asked for, and it was accepted
    choose_until  the end of the time for choosing, which a choice does not extend
    pay_until  the end of the time for paying; null before a method is chosen
    marked_at  the time at which the customer marked it as paid; null before
    reference  the deal's payment reference in its two groups; empty before a method is chosen
    takes_reference  whether the customer is asked to write it into the transfer
    sender_name  the name that the customer gave with the mark; null when none was given
    order_number  the shop's own number of the order
    usual_minutes  the usual time of the chosen method, as its operator set it; null before a choice
    outcome    the invoice's final status: success, fail, expired, canceled; null before
    finished_at  the time of the outcome; null before
    late_money  the case of this invoice; null when none was opened
    return_url  the merchant's page for this outcome, http or https only
    refunds    newest first
    account_kind  the form of account that a refund needs; empty: the customer chooses one
    """

    screen: Screen
    invoice_id: str
    brand: Brand
    merchant_name: str
    amount: str
    currency: str
    purpose: str | None = None
    methods: Sequence[Method]
    nothing_to_choose: str | None
    deal_id: str | None
    method_name: str | None
    to_pay: str | None
    fee: str | None = None
    part: PartPayment | None = None
    requisite: Requisite | None
    reference: Sequence[str]
    takes_reference: bool
    sender_name: str | None = None
    order_number: str
    choose_until: Until
    pay_until: Until | None
    marked_at: Until | None = None
    usual_minutes: int | None = None
    outcome: str | None = None
    finished_at: Until | None = None
    late_money: LateMoney | None = None
    return_url: str | None = None
    refresh: Refresh | None = None
    has_lost_account: bool = False
    refunds: Sequence[Refund] = ()
    account_kind: str = ""

    @property
    def can_cancel(self) -> bool:
        return self.screen in (Screen.CHOOSE, Screen.PAY)

    @property
    def can_choose(self) -> bool:
        return self.can_cancel and (bool(self.methods) or self.screen is Screen.CHOOSE)

    @property
    def can_appeal(self) -> bool:
        return self.screen is Screen.WAITING

    @property
    def can_report_late_money(self) -> bool:
        """It ended without success, and a requisite was shown to which money may have gone."""
        return self.outcome in LATE_OUTCOMES and self.deal_id is not None and self.late_money is None

    @property
    def has_open_refund(self) -> bool:
        return any(each.is_open for each in self.refunds)

    @property
    def all_are_taken(self) -> bool:
        return all(method.is_taken for method in self.methods)

    @property
    def reference_text(self) -> str:
        return "".join(self.reference)

    @property
    def is_slow(self) -> bool:
        """Whether it was marked paid longer ago than the method usually takes."""
        if self.marked_at is None or self.usual_minutes is None:
            return False
        return self.marked_at.now - self.marked_at.at > timedelta(minutes=self.usual_minutes)

    @property
    def has_long_amount(self) -> bool:
        """Whether the amount in large letters is too long for a line of the smallest phones."""
        return len(self.to_pay or self.amount) > LONG_AMOUNT_CHARACTERS

    @property
    def state(self) -> str:
        """A text that changes whenever the page's content would; a script compares it."""
        case = "" if self.late_money is None else f"{self.late_money.number}{self.late_money.answer is None}"
        choice = ""
        if self.screen is Screen.CHOOSE:
            choice = (
                ",".join(each.code for each in self.methods if each.is_taken) if self.methods else "nothing"
            )
        refunds = ",".join(each.status for each in self.refunds)
        return " ".join(filter(None, (self.screen.value, choice, self.deal_id, self.outcome, case, refunds)))


LATE_OUTCOMES: Final = frozenset({"fail", "expired", "canceled"})
OUTCOMES: Final = {
    pb.INVOICE_STATUS_SUCCESS: "success",
    pb.INVOICE_STATUS_FAIL: "fail",
    pb.INVOICE_STATUS_EXPIRED: "expired",
    pb.INVOICE_STATUS_CANCELED: "canceled",
}


def view_of(checkout: pb.GetCheckoutResponse, links: Links, refunds: Sequence[Refund] = ()) -> View:
    """Returns the view of a checkout, and of the refunds of its invoice."""
    invoice = checkout.invoice
    page = links.page(invoice.invoice_id)
    deal = invoice.deal if invoice.HasField("deal") else None
    screen = screen_of(invoice)
    has_lost_account = screen is Screen.PAY and not checkout.HasField("requisite")
    if has_lost_account:  # no act decided the account as it stands now
        screen = Screen.CHOOSE
    now = datetime_from(checkout.now)
    outcome = OUTCOMES.get(invoice.status)
    return_url = _return_url(invoice, outcome)
    open_deal = deal if deal is not None and screen is not Screen.CHOOSE else None
    adjusted = optional(deal, "adjusted_amount") if deal else None
    amount = adjusted or invoice.amount
    return View(
        screen=screen,
        has_lost_account=has_lost_account,
        invoice_id=invoice.invoice_id,
        brand=brand_of(checkout.branding, links),
        merchant_name=checkout.merchant_name,
        amount=amount,
        currency=invoice.currency_code,
        purpose=optional(invoice, "purpose"),
        methods=[
            _method(each, invoice, open_deal, links, now, has_logo=number < METHOD_LOGOS_MAX)
            for number, each in enumerate(checkout.methods)
        ],
        nothing_to_choose=_nothing_to_choose(checkout),
        deal_id=open_deal.deal_id if open_deal else None,
        method_name=open_deal.payment_method_name if open_deal else None,
        to_pay=open_deal.amount_fiat if open_deal else None,
        fee=_fee(open_deal.amount_fiat, amount) if open_deal else None,
        part=PartPayment(invoice.amount, deal.amount_to_send) if deal and adjusted else None,
        requisite=_requisite(checkout.requisite, open_deal)
        if open_deal is not None and checkout.HasField("requisite")
        else None,
        reference=reference_in_groups(open_deal.reference) if open_deal else (),
        takes_reference=open_deal is not None and open_deal.takes_reference and bool(open_deal.reference),
        sender_name=optional(open_deal, "sender_name") if open_deal else None,
        order_number=invoice.external_id,
        choose_until=_until(invoice.expires_at, now),
        pay_until=_until(open_deal.expires_at, now) if open_deal else None,
        marked_at=_marked_at(open_deal, now),
        usual_minutes=_usual_minutes(open_deal),
        outcome=outcome,
        finished_at=_until(invoice.finished_at, now) if invoice.HasField("finished_at") else None,
        late_money=_late_money(checkout),
        return_url=return_url,
        refresh=_refresh(
            screen,
            page,
            return_url,
            stays=bool(refunds)
            or (outcome in LATE_OUTCOMES and open_deal is not None)
            or (invoice.HasField("finished_at") and now - datetime_from(invoice.finished_at) > RETURN_UNTIL),
        ),
        refunds=refunds,
        account_kind=checkout.account_kind,
    )


def screen_of(invoice: pb.Invoice) -> Screen:
    """Returns the screen that fits the state of the invoice and its deal (docs/api.md#deal-status)."""
    if invoice.status != pb.INVOICE_STATUS_PENDING:
        return Screen.OUTCOME
    if not invoice.HasField("deal"):
        return Screen.CHOOSE
    if invoice.deal.status == pb.DEAL_STATUS_APPEAL:
        return Screen.REVIEW
    if invoice.deal.status == pb.DEAL_STATUS_PENDING:
        paid = optional_datetime(invoice.deal, "mark_paid_at") is not None
        return Screen.WAITING if paid else Screen.PAY
    return Screen.CHOOSE


def web_url(text: str | None) -> str | None:
    """Returns the address if a browser may open it, else None: `javascript:` and the like never become a link."""
    if not text or any(ord(character) <= 0x20 for character in text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in ("http", "https") and parts.netloc else None


def _method(
    choice: pb.CheckoutMethod,
    invoice: pb.Invoice,
    open_deal: pb.Deal | None,
    links: Links,
    now: datetime,
    *,
    has_logo: bool,
) -> Method:
    method = choice.offer.method
    return Method(
        code=method.method_code,
        name=method.name,
        logo=links.method_logo(method.logo) if method.logo and has_logo else None,
        minutes=method.payment_minutes,
        amount=choice.amount_fiat,
        fee=_fee(choice.amount_fiat, invoice.amount),
        is_current=open_deal is not None and open_deal.payment_method_code == method.method_code,
        is_taken=choice.taken,
        free_from=_until(choice.free_from, now) if choice.HasField("free_from") else None,
    )


def _fee(to_pay: str, amount: str) -> str | None:
    fee = Decimal(to_pay) - Decimal(amount)
    return fiat_text(fee) if fee > 0 else None


def _requisite(requisite: pb.Requisite, deal: pb.Deal) -> Requisite:
    account = account_in_groups(requisite.account)
    code = code_of(
        account="".join(account),
        holder=requisite.holder,
        amount=deal.amount_fiat,
        currency=deal.currency_code,
        reference=deal.reference if deal.takes_reference else "",
    )
    return Requisite(holder=requisite.holder, account=account, bank=optional(requisite, "bank"), code=code)


def _nothing_to_choose(checkout: pb.GetCheckoutResponse) -> str | None:
    if checkout.methods:
        return None
    return NOTICES.get(checkout.methods_refused) or NOTHING_TO_CHOOSE


def _marked_at(open_deal: pb.Deal | None, now: datetime) -> Until | None:
    if open_deal is None or not open_deal.HasField("mark_paid_at"):
        return None
    return _until(open_deal.mark_paid_at, now)


def _usual_minutes(open_deal: pb.Deal | None) -> int | None:
    """Returns the minutes of the method when it was chosen: the deal was opened for this time."""
    if open_deal is None:
        return None
    window = datetime_from(open_deal.expires_at) - datetime_from(open_deal.created_at)
    return max(window // timedelta(minutes=1), 1)


def _until(stamp: object, now: datetime) -> Until:
    return Until(at=datetime_from(stamp), now=now)  # type: ignore[arg-type]  # a protobuf Timestamp


def brand_of(branding: merchants_pb2.Branding, links: Links) -> Brand:
    colour = optional(branding, "colour")
    return Brand(
        stylesheet=stylesheet_name(colour) if colour else None,
        logo=links.merchant_logo(branding.logo) if branding.logo else None,
        frame_origins=list(branding.frame_origins),
    )


def _late_money(checkout: pb.GetCheckoutResponse) -> LateMoney | None:
    if not checkout.HasField("case"):
        return None
    return LateMoney(checkout.case.number, optional(checkout.case, "outcome"))


def _return_url(invoice: pb.Invoice, outcome: str | None) -> str | None:
    if outcome is None:
        return None
    return web_url(optional(invoice, "success_url" if outcome == "success" else "fail_url"))


def _refresh(screen: Screen, page: str, return_url: str | None, *, stays: bool) -> Refresh | None:
    """stays  the page does not lead away, because of a refund, of a report of late money there, or of the receipt"""
    if screen is Screen.OUTCOME:
        return Refresh(RETURN_SECONDS, return_url) if return_url and not stays else None
    if screen in (Screen.WAITING, Screen.REVIEW):
        return Refresh(WAIT_REFRESH_SECONDS, page)
    return Refresh(PAY_REFRESH_SECONDS, page)
