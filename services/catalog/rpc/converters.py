"""Values to messages, and back."""

from decimal import Decimal
from typing import Final

from fiatgate.catalog.v1 import catalog_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.money import fiat_text, parse_fraction, percent_text, rate_text
from kit.base.proto import optional, timestamp_from
from kit.rpc import values
from kit.rpc.methods import Converters
from services.catalog.domain import (
    AccountKind,
    Commission,
    Currency,
    Merchant,
    Method,
    Origin,
    Quote,
    Rate,
    Validity,
)
from services.catalog.operations import fields
from services.catalog.operations.offers import MerchantMethod, MethodOffer
from services.catalog.operations.rates import RateInfo, RateState
from services.catalog.store.rates import NumberedRate, RateStep


def merchant_from_message(message: merchants_pb2.Merchant) -> Merchant:
    commission: str | None = optional(message, "category_commission")
    return Merchant(
        category_code=optional(message, "category_code"),
        category_commission=None if commission is None else fields.decimal_or_nan(commission),
        client_share=values.parsed("merchant.client_share", message.client_share, parse_fraction),
        allowed_currencies=frozenset(message.allowed_currencies),
        allowed_methods=frozenset(message.allowed_methods),
    )


def currency_to_message(currency: Currency) -> pb.Currency:
    return pb.Currency(
        code=currency.code,
        name=currency.name,
        symbol=currency.symbol,
        decimals=currency.decimals,
        min_amount=fiat_text(currency.min_amount),
        max_amount=fiat_text(currency.max_amount),
        markup=plain_text(currency.markup),
        enabled=currency.enabled,
    )


def currency_from_message(message: pb.Currency) -> Currency:
    """Returns the currency that a message of this service has, without the checks of a new one."""
    return Currency(
        code=message.code,
        name=message.name,
        symbol=message.symbol,
        decimals=message.decimals,
        min_amount=values.decimal("was.min_amount", message.min_amount),
        max_amount=values.decimal("was.max_amount", message.max_amount),
        markup=values.decimal("was.markup", message.markup),
        enabled=message.enabled,
    )


def method_to_message(method: Method) -> pb.PaymentMethod:
    return pb.PaymentMethod(
        method_code=method.code,
        currency_code=method.currency_code,
        name=method.name,
        min_sum=fiat_text(method.min_sum),
        max_sum=fiat_text(method.max_sum),
        payment_minutes=method.payment_minutes,
        commission=plain_text(method.commission),
        logo_url=method.logo_url,
        active=method.active,
        logo=method.logo,
        takes_reference=method.takes_reference,
        account_kind=_ACCOUNT_KINDS[method.account_kind],
    )


def method_from_message(message: pb.PaymentMethod) -> Method:
    """Returns the method that a message of this service has, without the checks of a new one."""
    return Method(
        code=message.method_code,
        currency_code=message.currency_code,
        name=message.name,
        min_sum=values.decimal("was.min_sum", message.min_sum),
        max_sum=values.decimal("was.max_sum", message.max_sum),
        payment_minutes=message.payment_minutes,
        commission=values.decimal("was.commission", message.commission),
        logo_url=optional(message, "logo_url"),
        active=message.active,
        logo=optional(message, "logo"),
        takes_reference=message.takes_reference,
        account_kind=account_kind_from_message(message.account_kind) or AccountKind.FREE,
    )


_ACCOUNT_KINDS: Final = {kind: pb.AccountKind.Value(f"ACCOUNT_KIND_{kind.name}") for kind in AccountKind}


def account_kind_from_message(value: int) -> AccountKind | None:
    """Returns None for UNSPECIFIED: the kind stays as it is. Raises VALIDATION_ERROR for a value from a newer proto."""
    if value == pb.ACCOUNT_KIND_UNSPECIFIED:
        return None
    for kind, number in _ACCOUNT_KINDS.items():
        if number == value:
            return kind
    raise values.invalid("method.account_kind", "unknown kind of accounts")


def offer_to_message(offer: MethodOffer) -> pb.MethodOffer:
    return pb.MethodOffer(
        method=method_to_message(offer.method),
        currency=currency_to_message(offer.currency),
        **_percents(offer.commission),
    )


def merchant_method_to_message(each: MerchantMethod) -> pb.MerchantMethod:
    return pb.MerchantMethod(
        method=method_to_message(each.method),
        currency=currency_to_message(each.currency),
        rate="" if each.rate is None else rate_text(each.rate),
        obstacles=[
            pb.MethodObstacle.Value(f"METHOD_OBSTACLE_{obstacle.name}") for obstacle in each.obstacles
        ],
        **_percents(each.commission),
    )


def _percents(commission: Commission | None) -> dict[str, str]:
    if commission is None:
        return {}
    return {
        "total_percent": percent_text(commission.total_percent),
        "client_percent": percent_text(commission.client_percent),
        "merchant_percent": percent_text(commission.merchant_percent),
    }


def rate_state_to_message(state: RateState) -> pb.RateState:
    return pb.RateState(
        currency_code=state.currency_code,
        in_force=None if state.in_force is None else rate_to_message(state.in_force),
        held=None if state.held is None else rate_to_message(state.held),
        held_change_percent=None if state.held_change_percent is None else f"{state.held_change_percent:+f}",
        markup=plain_text(state.markup),
        enabled=state.enabled,
        source_names=state.source_names,
    )


_ORIGINS: Final = {
    Origin.OPERATOR: pb.RATE_ORIGIN_OPERATOR,
    Origin.SOURCES: pb.RATE_ORIGIN_SOURCES,
    Origin.ACCEPTED: pb.RATE_ORIGIN_ACCEPTED,
}
_UNREADABLE: Final = (Quote("?", error="the stored document of the sources is malformed"),)


def rate_to_message(rate: RateInfo) -> pb.Rate:
    quotes = _UNREADABLE if rate.quotes is None else rate.quotes
    return pb.Rate(
        currency_code=rate.currency_code,
        source_rate=plain_text(rate.source_rate),
        rate=rate_text(rate.rate),
        origin=_ORIGINS[rate.origin],
        taken_at=timestamp_from(rate.taken_at),
        fresh=rate.fresh,
        fresh_until=timestamp_from(rate.fresh_until),
        ends_soon=rate.ends_soon,
        validity=_VALIDITIES[rate.validity],
        sources=[quote_to_message(quote) for quote in quotes],
    )


_VALIDITIES: Final = {
    Validity.AS_POLLED: pb.RATE_VALIDITY_UNSPECIFIED,
    Validity.HOUR: pb.RATE_VALIDITY_HOUR,
    Validity.DAY: pb.RATE_VALIDITY_DAY,
    Validity.UNTIL_REPLACED: pb.RATE_VALIDITY_UNTIL_REPLACED,
}


def validity_from_message(value: int) -> Validity:
    """Returns the validity. Raises VALIDATION_ERROR for a value from a newer proto."""
    for validity, number in _VALIDITIES.items():
        if number == value:
            return validity
    raise values.invalid("validity", "unknown validity")


def accepted_rate_to_message(numbered: NumberedRate) -> pb.AcceptedRate:
    rate = numbered.rate
    return pb.AcceptedRate(
        number=numbered.number,
        source_rate=plain_text(rate.source_rate),
        origin=_ORIGINS[rate.origin],
        taken_at=timestamp_from(rate.taken_at),
        sources=[quote_to_message(quote) for quote in _UNREADABLE if rate.quotes is None]
        or [quote_to_message(quote) for quote in rate.quotes or ()],
    )


def step_to_message(step: RateStep) -> pb.RateStep:
    return pb.RateStep(
        at=timestamp_from(step.at),
        lowest=plain_text(step.lowest),
        highest=plain_text(step.highest),
        last=plain_text(step.last),
        accepted=step.accepted,
        by_operators=step.by_operators,
    )


def basis_to_message(rate: Rate, markup: Decimal) -> pb.RateBasis:
    return pb.RateBasis(
        origin=_ORIGINS[rate.origin],
        source_rate=plain_text(rate.source_rate),
        markup=plain_text(markup),
        taken_at=timestamp_from(rate.taken_at),
        sources=[quote_to_message(quote) for quote in rate.quotes or ()],
    )


def quote_to_message(quote: Quote) -> pb.SourceQuote:
    rate = None if quote.rate is None else plain_text(quote.rate)
    return pb.SourceQuote(source=quote.source, rate=rate, error=quote.error)


def plain_text(value: Decimal) -> str:
    """Returns all decimals without trailing zeros, no exponent: "92.5", "0.0312"."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


FROM_MESSAGE: Final[Converters] = {
    "fiatgate.merchants.v1.Merchant": merchant_from_message,
    "fiatgate.catalog.v1.RateValidity": validity_from_message,
}
