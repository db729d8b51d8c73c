"""The currencies and methods that a merchant may use. Each list is one statement, because merchants read it often."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from kit.audit.decisions import UNDECIDED
from kit.observe.log import get_logger
from kit.rpc import values
from kit.rpc.errors import Refused
from services.catalog import errors
from services.catalog.domain import (
    Commission,
    Currency,
    Merchant,
    Method,
    Rate,
    RateFault,
    is_fraction,
    price,
    split_commission,
)
from services.catalog.operations.fields import is_currency_code
from services.catalog.store import entries, rates
from services.catalog.store.rates import RatedCurrency, RatedMethod
from services.catalog.wiring import Deps

_log = get_logger()


@dataclass(frozen=True, slots=True)
class CurrencyOffer:
    """`rate` is fiat per USDT after the markup, 2 decimals."""

    currency: Currency
    rate: Decimal


@dataclass(frozen=True, slots=True)
class MethodOffer:
    method: Method
    currency: Currency
    commission: Commission


@dataclass(frozen=True, slots=True)
class MethodQuote:
    """An offer with the current rate, fiat per USDT, and the accepted rate that it was made of."""

    offer: MethodOffer
    rate: Decimal
    basis: Rate


class Obstacle(StrEnum):
    """A reason why a method is not offered to a merchant's customers."""

    METHOD_INACTIVE = "method_inactive"
    CURRENCY_DISABLED = "currency_disabled"
    CURRENCY_NOT_ALLOWED = "currency_not_allowed"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CATEGORY_MISSING = "category_missing"
    CATEGORY_NOT_FOUND = "category_not_found"
    COMMISSION_INVALID = "commission_invalid"
    RATE_NOT_FOUND = "rate_not_found"
    RATE_STALE = "rate_stale"
    RATE_INVALID = "rate_invalid"


@dataclass(frozen=True, slots=True)
class MerchantMethod:
    """A method as one merchant's customers get it; it is offered if there is no obstacle."""

    method: Method
    currency: Currency
    commission: Commission | None
    rate: Decimal | None
    obstacles: Sequence[Obstacle]


def list_merchant_currencies(deps: Deps, *, merchant: Merchant) -> list[CurrencyOffer]:
    """Returns the enabled currencies that the merchant may use and that have a fresh rate, ordered by code.

    Raises RATES_INVALID when any of their stored rates is malformed, RATE_INVALID when a fresh one is no number
    above zero, RATES_UNAVAILABLE when all are stale, RATE_NOT_FOUND when there never was one.
    """
    with deps.db.autocommit() as connection:
        enabled = rates.enabled_currencies_with_rates(connection)
    now = deps.clock.now()
    usable = [each for each in enabled if merchant.may_use(each.currency.code)]
    priced = [(each.currency, _price(deps, each, now)) for each in usable]
    faults = {rate: currency.code for currency, rate in reversed(priced) if isinstance(rate, RateFault)}
    offers = [CurrencyOffer(currency, rate) for currency, rate in priced if isinstance(rate, Decimal)]
    for fault in (RateFault.SNAPSHOT_MALFORMED, RateFault.NOT_POSITIVE):
        if fault in faults:
            raise _REFUSALS[fault](faults[fault])
    if not offers:
        fault = RateFault.STALE if RateFault.STALE in faults else RateFault.NEVER_ACCEPTED
        raise _REFUSALS[fault](faults.get(fault, ""))
    return offers


def list_method_offers(
    deps: Deps, *, merchant: Merchant, currency_code: str | None, payable_now: bool = False
) -> list[MethodOffer]:
    """Returns the active methods that the merchant may use, of one currency or all, ordered by currency and name.

    Raises CURRENCY_NOT_FOUND for a code (any case) that is unknown, disabled or not allowed to the merchant, then
    the category reasons; a known currency without such methods gives an empty list. With `payable_now` it also raises
    the rate reasons that `get_quote` would raise.
    """
    code = None if currency_code is None else currency_code.upper()
    if code is not None and not (is_currency_code(code) and merchant.may_use(code)):
        raise errors.currency_not_found(code)
    with deps.db.autocommit() as connection:
        found = entries.enabled_currencies_with_methods(connection, code)
    if code is not None and not found:
        raise errors.currency_not_found(code)
    category = _category_commission(merchant)
    if payable_now and code is not None:
        _require_rate(deps, code)
    return [
        MethodOffer(method, each.currency, _commission(category, method, merchant))
        for each in found
        for method in each.methods
        if merchant.may_use(each.currency.code, method.code)
    ]


def list_merchant_methods(deps: Deps, *, merchant: Merchant) -> list[MerchantMethod]:
    """Returns every method, active or not, by currency and name, with the obstacles to its offer."""
    with deps.db.autocommit() as connection:
        currencies = {each.currency.code: each for each in rates.all_currencies_with_rates(connection)}
        methods = entries.all_methods(connection)
    now = deps.clock.now()
    return [
        _merchant_method(method, rated.currency, merchant, _price(deps, rated, now))
        for method in methods
        if (rated := currencies.get(method.currency_code)) is not None
    ]


def _merchant_method(
    method: Method, currency: Currency, merchant: Merchant, rate: Decimal | RateFault
) -> MerchantMethod:
    category = merchant.category_commission
    commission = (
        None if category is None else split_commission(category, method.commission, merchant.client_share)
    )
    obstacles = {
        Obstacle.METHOD_INACTIVE: not method.active,
        Obstacle.CURRENCY_DISABLED: not currency.enabled,
        Obstacle.CURRENCY_NOT_ALLOWED: not merchant.may_use(currency.code),
        Obstacle.METHOD_NOT_ALLOWED: merchant.may_use(currency.code)
        and not merchant.may_use(currency.code, method.code),
        Obstacle.CATEGORY_MISSING: merchant.category_code is None,
        Obstacle.CATEGORY_NOT_FOUND: merchant.category_code is not None and category is None,
        Obstacle.COMMISSION_INVALID: category is not None and commission is None,
        Obstacle.RATE_NOT_FOUND: rate is RateFault.NEVER_ACCEPTED,
        Obstacle.RATE_STALE: rate is RateFault.STALE,
        Obstacle.RATE_INVALID: rate in (RateFault.SNAPSHOT_MALFORMED, RateFault.NOT_POSITIVE),
    }
    return MerchantMethod(
        method,
        currency,
        commission,
        rate if isinstance(rate, Decimal) else None,
        [obstacle for obstacle, stands in obstacles.items() if stands],
    )


def get_quote(deps: Deps, *, merchant: Merchant, method_code: str) -> MethodQuote:
    """Returns one method with commission split and rate, for locking into a deal.

    Raises PAYMENT_METHOD_NOT_FOUND, then the category reasons, then the rate reasons of its one currency.
    """
    if not values.is_code(method_code):
        raise errors.payment_method_not_found(method_code)
    with deps.db.autocommit() as connection:
        found = rates.active_method_with_rates(connection, method_code)
    if found is None or not merchant.may_use(found.method.currency_code, found.method.code):
        raise errors.payment_method_not_found(method_code)
    currency = found.rated.currency
    commission = _commission(_category_commission(merchant), found.method, merchant)
    now, max_age = deps.clock.now(), deps.settings.rates_max_age
    basis = found.rated.rates.in_force(now, max_age)
    if basis is None:
        raise errors.rate_not_found()
    _require_decided(deps, found, basis)
    rate = price(currency.markup, basis, now, max_age)
    if isinstance(rate, RateFault):
        raise _REFUSALS[rate](currency.code)
    return MethodQuote(MethodOffer(found.method, currency, commission), rate, basis)


def _require_decided(deps: Deps, found: RatedMethod, basis: Rate) -> None:
    """Raises PAYMENT_METHOD_NOT_FOUND or RATES_INVALID for a method, currency or rate that someone made or changed by
    SQL: a deal would lock it.
    """
    code = found.rated.currency.code
    if not deps.decided_methods.are(found.method.code, found.method):
        raise errors.payment_method_not_found(found.method.code)
    if not deps.decided_currencies.are(code, found.rated.currency):
        raise errors.rates_invalid()
    if not rates.is_rate_sealed(deps.seals, code, basis):
        UNDECIDED.labels("rate").inc()
        _log.error("value_not_decided", object=f"currency:{code}", field="rate")
        raise errors.rates_invalid()


def _require_rate(deps: Deps, code: str) -> None:
    with deps.db.autocommit() as connection:
        rated = rates.enabled_currency_with_rates(connection, code)
    if rated is None:
        raise errors.currency_not_found(code)
    rate = _price(deps, rated, deps.clock.now())
    if isinstance(rate, RateFault):
        raise _REFUSALS[rate](code)


def _price(deps: Deps, rated: RatedCurrency, now: datetime) -> Decimal | RateFault:
    max_age = deps.settings.rates_max_age
    return price(rated.currency.markup, rated.rates.in_force(now, max_age), now, max_age)


_REFUSALS: Final[Mapping[RateFault, Callable[[str], Refused]]] = {
    RateFault.SNAPSHOT_MALFORMED: lambda _code: errors.rates_invalid(),
    RateFault.NOT_POSITIVE: errors.rate_invalid,
    RateFault.STALE: lambda _code: errors.rates_unavailable(),
    RateFault.NEVER_ACCEPTED: lambda _code: errors.rate_not_found(),
}


def _category_commission(merchant: Merchant) -> Decimal:
    if merchant.category_code is None:
        raise errors.category_missing()
    if merchant.category_commission is None:
        raise errors.category_not_found()
    if not is_fraction(merchant.category_commission):
        raise errors.category_rate_invalid()
    return merchant.category_commission


def _commission(category: Decimal, method: Method, merchant: Merchant) -> Commission:
    commission = split_commission(category, method.commission, merchant.client_share)
    if commission is None:
        raise errors.category_rate_invalid()
    return commission
