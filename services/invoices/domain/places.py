"""The places for open deals on the requisites of a payment method, and the share of one merchant."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from services.invoices.domain.states import AWAITING_PAYMENT, DealStatus

DEFAULT_MAX_DEALS = 100

REFERENCE_RESTS = timedelta(days=180)
"""How long the payment reference of a deal that ended is given to no other: a late transfer must not name two deals."""
REFERENCE_CANDIDATES = 4
"""With a million references in use, all of the candidates are taken once in 10^18 deals."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A place that an invoice needs: on an account of this method, for this amount. `amount_fiat` is None when unknown.

    takes_reference  the customer writes a payment reference into the transfer: other deals with a reference may then
                     have the same amount on the same account
    """

    method_code: str
    amount_fiat: Decimal | None
    takes_reference: bool = False


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
    """The deal that the choice of a method makes; its requisite and its payment reference are found when the deal is
    stored: the reference is the first of `references` that is not in use.
    """

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
    takes_reference: bool
    references: Sequence[str]
    rate_basis: str  # JSON of domain.rates
    reference: str | None = None
    status: DealStatus = AWAITING_PAYMENT.status
    sub_status: str = AWAITING_PAYMENT.sub_status
