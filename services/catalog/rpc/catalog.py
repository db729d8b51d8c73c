"""CatalogService: the methods."""

from typing import Any, Final

from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.money import rate_text
from kit.base.proto import optional, optional_datetime, timestamp_from
from kit.rpc import audit
from kit.rpc.methods import Methods, by_name
from services.catalog.operations import entries, history, logos, offers, rates
from services.catalog.rpc.converters import (
    accepted_rate_to_message,
    account_kind_from_message,
    basis_to_message,
    currency_from_message,
    currency_to_message,
    merchant_method_to_message,
    method_from_message,
    method_to_message,
    offer_to_message,
    plain_text,
    rate_state_to_message,
    rate_to_message,
    step_to_message,
)
from services.catalog.wiring import Deps


def set_currency(deps: Deps, request: pb.SetCurrencyRequest) -> pb.SetCurrencyResponse:
    given = request.currency
    currency = entries.set_currency(
        deps,
        code=given.code,
        name=given.name,
        symbol=given.symbol,
        decimals=given.decimals,
        min_amount=given.min_amount,
        max_amount=given.max_amount,
        markup=given.markup,
        enabled=given.enabled,
        was=currency_from_message(request.was) if request.HasField("was") else None,
        create=request.create,
    )
    return pb.SetCurrencyResponse(currency=currency_to_message(currency))


def set_payment_method(deps: Deps, request: pb.SetPaymentMethodRequest) -> pb.SetPaymentMethodResponse:
    given = request.method
    method = entries.set_payment_method(
        deps,
        method_code=given.method_code,
        currency_code=given.currency_code,
        name=given.name,
        min_sum=given.min_sum,
        max_sum=given.max_sum,
        payment_minutes=given.payment_minutes,
        commission=given.commission,
        logo_url=optional(given, "logo_url"),
        active=given.active,
        logo=optional(request, "logo"),
        takes_reference=optional(given, "takes_reference"),
        account_kind=account_kind_from_message(given.account_kind),
        was=method_from_message(request.was) if request.HasField("was") else None,
        create=request.create,
    )
    return pb.SetPaymentMethodResponse(method=method_to_message(method))


def list_rates(deps: Deps, request: pb.ListRatesRequest) -> pb.ListRatesResponse:
    states = rates.list_rates(deps)
    settings = deps.settings
    return pb.ListRatesResponse(
        rates=[rate_state_to_message(state) for state in states],
        max_jump=plain_text(settings.rates_max_jump),
        max_age_seconds=settings.rates_max_age_seconds,
    )


def get_rate_history(deps: Deps, request: pb.GetRateHistoryRequest) -> pb.GetRateHistoryResponse:
    found = history.get_rate_history(
        deps,
        currency_code=request.currency_code,
        since=optional_datetime(request, "since"),
        until=optional_datetime(request, "until"),
        step_seconds=request.step_seconds,
    )
    return pb.GetRateHistoryResponse(
        steps=[step_to_message(step) for step in found.steps],
        step_seconds=found.step_seconds,
        since=timestamp_from(found.since),
        until=timestamp_from(found.until),
        acts=[audit.act_to_message(act, deps.settings.service) for act in found.acts],
    )


def _quote(quote: offers.MethodQuote) -> dict[str, Any]:
    return {
        "offer": offer_to_message(quote.offer),
        "rate": rate_text(quote.rate),
        "basis": basis_to_message(quote.basis, quote.offer.currency.markup),
    }


METHODS: Final[Methods] = {
    "ListMerchantCurrencies": by_name(
        offers.list_merchant_currencies,
        lambda found: {
            "currencies": [
                pb.CurrencyOffer(currency=currency_to_message(offer.currency), rate=rate_text(offer.rate))
                for offer in found
            ]
        },
    ),
    "ListMethodOffers": by_name(
        offers.list_method_offers, lambda found: {"offers": map(offer_to_message, found)}
    ),
    "ListMerchantMethods": by_name(
        offers.list_merchant_methods, lambda found: {"methods": map(merchant_method_to_message, found)}
    ),
    "GetQuote": by_name(offers.get_quote, _quote),
    "GetCatalog": by_name(
        entries.get_catalog,
        lambda content: {
            "currencies": map(currency_to_message, content.currencies),
            "methods": map(method_to_message, content.methods),
            "unpriced_codes": content.unpriced_codes,
        },
    ),
    "SetCurrency": set_currency,
    "SetPaymentMethod": set_payment_method,
    "KeepLogo": by_name(logos.keep_logo, lambda logo: {"logo": logo}, content="logo"),
    "GetLogo": by_name(
        logos.get_logo, lambda logo: {"content_type": logo.content_type, "content": logo.content}
    ),
    "SetRate": by_name(rates.set_rate, lambda rate: {"rate": rate_to_message(rate)}),
    "ListRates": list_rates,
    "GetRateHistory": get_rate_history,
    "ListAcceptedRates": by_name(
        history.list_accepted_rates, lambda found: {"rates": map(accepted_rate_to_message, found)}
    ),
    "PullRates": by_name(rates.pull_rates, lambda states: {"rates": map(rate_state_to_message, states)}),
    "AcceptRate": by_name(
        rates.accept_rate, lambda rate: {"rate": rate_to_message(rate)}, expected="expected_source_rate"
    ),
}
