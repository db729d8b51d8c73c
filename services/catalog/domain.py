"""The rules of currencies, payment methods and rates. Pure; the time is an argument.

Rates are fiat per USDT, commissions and markups fractions 0..1, percents 0..100 (docs/api.md#commission).
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum

from kit.base.money import PERCENT_PLACES, RATE_PLACES, round_down

# A customer who may choose the method loads its logo together with a dozen others, on any network. The page with all
# of them stays under 60 KB. The logo is shown 40 pixels high.
LOGO_MAX_BYTES = 2560
LOGO_MAX_PIXELS = 512 * 512

CURRENCY_CODE = "[A-Z]{3}"
PAYMENT_MOST_MINUTES = 24 * 60
RATE_WHOLE_DIGITS = 12
SOURCE_RATE_PLACES = 8
SOURCES_REMEMBERED = timedelta(days=1)
CLOCK_SKEW = timedelta(seconds=60)
"""How far the clock of the machine that took a rate may be ahead of this machine's clock."""


@dataclass(frozen=True, slots=True)
class Currency:
    code: str
    name: str
    symbol: str
    decimals: int
    min_amount: Decimal
    max_amount: Decimal
    markup: Decimal
    enabled: bool


class AccountKind(StrEnum):
    """The form of a method's accounts. invoices checks it when an account is added."""

    FREE = "free"
    IBAN = "iban"
    CARD = "card"
    PHONE = "phone"
    UPI = "upi"


@dataclass(frozen=True, slots=True)
class Method:
    """A payment method. `takes_reference`: its transfers carry a text, the deal's payment reference."""

    code: str
    currency_code: str
    name: str
    min_sum: Decimal
    max_sum: Decimal
    payment_minutes: int
    commission: Decimal
    logo_url: str | None
    active: bool
    logo: str | None = None  # its digest
    takes_reference: bool = False
    account_kind: AccountKind = AccountKind.FREE


@dataclass(frozen=True, slots=True)
class Logo:
    content_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Merchant:
    """The part of a merchant that the catalog needs; an empty `allowed_…` allows all."""

    category_code: str | None
    category_commission: Decimal | None
    client_share: Decimal
    allowed_currencies: frozenset[str]
    allowed_methods: frozenset[str]

    def may_use(self, currency_code: str, method_code: str | None = None) -> bool:
        currency_allowed = not self.allowed_currencies or currency_code in self.allowed_currencies
        method_allowed = (
            method_code is None or not self.allowed_methods or method_code in self.allowed_methods
        )
        return currency_allowed and method_allowed


# -- commissions


@dataclass(frozen=True, slots=True)
class Commission:
    """Percents with 2 decimals; client and merchant parts add up to the total."""

    total_percent: Decimal
    client_percent: Decimal
    merchant_percent: Decimal


def is_fraction(value: Decimal) -> bool:
    return value.is_finite() and 0 <= value <= 1


def split_commission(category: Decimal, method: Decimal, client_share: Decimal) -> Commission | None:
    """Rounds the total half up and the client's part down; the merchant's part is the rest.

    None when a commission is no fraction 0..1, or the two add up to more than 1.
    """
    if not (is_fraction(category) and is_fraction(method) and is_fraction(category + method)):
        return None
    total = ((category + method) * 100).quantize(Decimal(1).scaleb(-PERCENT_PLACES), ROUND_HALF_UP)
    client = round_down(total * client_share, PERCENT_PLACES)
    return Commission(total, client, total - client)


# -- rates


class Origin(StrEnum):
    """Where a rate comes from."""

    OPERATOR = "operator"
    SOURCES = "sources"
    ACCEPTED = "accepted"  # held back by the jump guard, then accepted by an operator


class Validity(StrEnum):
    """How long a rate counts. Only one that an operator set may count for another time than polled ones do."""

    AS_POLLED = "as_polled"
    HOUR = "hour"
    DAY = "day"
    UNTIL_REPLACED = "until_replaced"


_VALID_FOR = {Validity.HOUR: timedelta(hours=1), Validity.DAY: timedelta(days=1)}
ENDS_SOON = 5
"""A rate ends soon when less than this part of its time is left, one fifth."""


def is_plausible_rate(value: Decimal) -> bool:
    """Returns whether the rate can be stored and divided by: above zero, at most 12 digits before and 8 after the
    point.
    """
    return value.is_finite() and 0 < value < Decimal(10) ** RATE_WHOLE_DIGITS


@dataclass(frozen=True, slots=True)
class Quote:
    """The answer of one source: a rate, or (`rate` null) the reason why it has none."""

    source: str
    rate: Decimal | None = None
    error: str = ""

    def __post_init__(self) -> None:
        if not self.source or (self.rate is None) != bool(self.error):
            raise ValueError("a quote has a source, and either a rate or an error")
        if self.rate is not None and not is_plausible_rate(self.rate):
            raise ValueError("a quoted rate is a plausible number above zero")


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate before the markup. `quotes` is null when the stored document of its sources does not parse; `seal` is
    empty before the rate is stored.
    """

    source_rate: Decimal
    origin: Origin
    taken_at: datetime
    quotes: tuple[Quote, ...] | None = ()
    validity: Validity = Validity.AS_POLLED
    seal: bytes = field(default=b"", compare=False)

    def is_well_formed(self, now: datetime) -> bool:
        if self.quotes is None or self.taken_at > now + CLOCK_SKEW:
            return False
        return self.origin is Origin.OPERATOR or any(quote.rate is not None for quote in self.quotes)

    def is_fresh(self, now: datetime, max_age: timedelta) -> bool:
        until = self.fresh_until(max_age)
        return (until is None or now <= until) and self.taken_at <= now + CLOCK_SKEW

    def fresh_until(self, max_age: timedelta) -> datetime | None:
        """Returns the end of its time; None when it counts until it is replaced."""
        if self.validity is Validity.UNTIL_REPLACED:
            return None
        return self.taken_at + _VALID_FOR.get(self.validity, max_age)

    def ends_soon(self, now: datetime, max_age: timedelta) -> bool:
        """Returns whether an operator set the rate, and less than a fifth of its time is left."""
        until = self.fresh_until(max_age)
        if until is None or self.origin is not Origin.OPERATOR:
            return False
        return timedelta() <= (until - now) * ENDS_SOON < until - self.taken_at


@dataclass(frozen=True, slots=True)
class AcceptedRates:
    """The two rates of a currency that can be in force; both null when none was ever accepted."""

    newest: Rate | None
    decided: Rate | None  # the newest of those that an operator set or accepted

    def in_force(self, now: datetime, max_age: timedelta) -> Rate | None:
        """Returns the rate in force: the operator's while it is fresh, otherwise the newest."""
        decided = self.decided
        if decided is not None and decided.origin is Origin.OPERATOR and decided.is_fresh(now, max_age):
            return decided
        return self.newest

    def to_compare_with(self, sourced: Rate | None, now: datetime, max_age: timedelta) -> list[Rate]:
        """Returns the rates that the jump guard compares a new one with: the one in force first.

        The last one of the sources (`sourced`) is among them for a day. A rate that an operator set may lapse in that
        time, and then the sources' next rate has to pass.
        """
        recent = sourced is not None and now - sourced.taken_at <= SOURCES_REMEMBERED
        candidates = (self.in_force(now, max_age), self.newest, sourced if recent else None)
        return [each for each in dict.fromkeys(candidates) if each is not None]


def with_markup(source_rate: Decimal, markup: Decimal) -> Decimal:
    """Returns the rate that deals lock, rounded down to 2 decimals. Not a number, or zero, when `source_rate` is
    unusable.
    """
    return round_down(source_rate * (1 - markup), RATE_PLACES) if source_rate.is_finite() else source_rate


class RateFault(StrEnum):
    """The reasons against a rate, the gravest first. The values are the public codes (docs/api.md#list-currencies)."""

    SNAPSHOT_MALFORMED = "RATES_INVALID"
    NOT_POSITIVE = "RATE_INVALID"
    STALE = "RATES_UNAVAILABLE"
    NEVER_ACCEPTED = "RATE_NOT_FOUND"


def price(markup: Decimal, rate: Rate | None, now: datetime, max_age: timedelta) -> Decimal | RateFault:
    """Returns a currency's rate for merchants, or the reason why there is none. Never a guess, never 1:1."""
    if rate is None:
        return RateFault.NEVER_ACCEPTED
    if not rate.is_well_formed(now):
        return RateFault.SNAPSHOT_MALFORMED
    if not rate.is_fresh(now, max_age):
        return RateFault.STALE
    value = with_markup(rate.source_rate, markup)
    return value if value.is_finite() and value > 0 else RateFault.NOT_POSITIVE


# -- polling


def median(quotes: Iterable[Quote]) -> Decimal:
    """Returns the median of the rates among the quotes, with 8 decimals; at least one quote must have a rate."""
    return round_down(
        statistics.median(each.rate for each in quotes if each.rate is not None), SOURCE_RATE_PLACES
    )


def jumps(last: Decimal, new: Decimal, max_jump: Decimal) -> bool:
    """Returns whether `new` differs from `last` by more than the fraction `max_jump` of it; true for an implausible
    `last`.
    """
    return not is_plausible_rate(last) or abs(new - last) > last * max_jump


def change_percent(before: Decimal, after: Decimal) -> Decimal | None:
    """Returns the change from `before` to `after` in percent of `before`, with 2 decimals; None for an implausible
    `before`.
    """
    if not is_plausible_rate(before):
        return None
    return ((after - before) / before * 100).quantize(Decimal(1).scaleb(-PERCENT_PLACES), ROUND_HALF_UP)


RATE_BEFORE = "rate before"


def jumps_from_all(known: Sequence[Rate], new: Decimal, max_jump: Decimal) -> bool:
    """Returns whether `new` is too far from all `known` rates, and from the rates before those that were set past the
    guard.

    So a rate that an operator forced by mistake can be taken back. The first rate of a currency is never a jump.
    """
    numbers = [number for each in known for number in (each.source_rate, rate_before(each).rate)]
    return bool(known) and all(number is None or jumps(number, new, max_jump) for number in numbers)


def rate_before(rate: Rate) -> Quote:
    """Returns the last rate that passed the guard: `rate` itself, unless an operator set it past the guard."""
    if rate.origin is Origin.OPERATOR and rate.quotes:
        return rate.quotes[0]
    if is_plausible_rate(rate.source_rate):
        return Quote(RATE_BEFORE, rate.source_rate)
    return Quote(RATE_BEFORE, error=f"{rate.source_rate:f} is no plausible rate")


def set_by_hand(
    rate: Decimal, known: Sequence[Rate], *, at: datetime, max_jump: Decimal, validity: Validity
) -> Rate:
    """Returns an operator's rate. If it jumps, it keeps the last rate that passed the guard, as a quote named
    `RATE_BEFORE`.
    """
    jumped = jumps_from_all(known, rate, max_jump)
    return Rate(rate, Origin.OPERATOR, at, (rate_before(known[0]),) if jumped else (), validity)


@dataclass(frozen=True, slots=True)
class Accept:
    """The polled rate is in force from now on."""

    rate: Rate


@dataclass(frozen=True, slots=True)
class Hold:
    """The polled rate moved too far: it waits for an operator."""

    rate: Rate


@dataclass(frozen=True, slots=True)
class TooFewSources:
    """Too few sources answered: the rates stay as they are."""

    answered: int


def judge(
    quotes: Sequence[Quote], known: Sequence[Rate], *, taken_at: datetime, max_jump: Decimal, min_sources: int
) -> Accept | Hold | TooFewSources:
    """Decides about one currency's poll; `known` are the rates to compare it with, fresh or not."""
    answered = sum(quote.rate is not None for quote in quotes)
    if answered < min_sources:
        return TooFewSources(answered)
    rate = Rate(median(quotes), Origin.SOURCES, taken_at, tuple(quotes))
    if jumps_from_all(known, rate.source_rate, max_jump):
        return Hold(rate)
    return Accept(rate)


# -- answers of sources


def value_at(document: object, path: str) -> object:
    """Returns the value at `data.rates.EUR` or, as a JSON pointer, `/data/rates/EUR`; raises LookupError."""
    pointer = path.startswith("/")
    for step in path[1:].split("/") if pointer else path.split("."):
        key = step.replace("~1", "/").replace("~0", "~") if pointer else step
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            raise LookupError(f"nothing at {path}")
    return document


def quoted_rate(number: Decimal, *, invert: bool) -> Decimal:
    """Returns the rate that a source's number stands for, with 8 decimals; `invert` for sources that quote USDT per
    fiat.

    Raises ValueError when it is not a plausible rate.
    """
    if is_plausible_rate(number):
        rate = 1 / number if invert else number
        if is_plausible_rate(rate) and (rounded := round_down(rate, SOURCE_RATE_PLACES)) > 0:
            return rounded
    raise ValueError("not a plausible rate")
