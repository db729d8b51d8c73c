"""CatalogService: message -> operation -> message."""

import grpc

from fiatgate.catalog.v1 import catalog_pb2 as pb
from fiatgate.catalog.v1 import catalog_pb2_grpc
from kit.base.money import rate_text
from kit.base.proto import optional, optional_datetime, timestamp_from
from kit.rpc import audit
from services.catalog.operations import entries, history, logos, offers, rates
from services.catalog.rpc.converters import (
    accepted_rate_to_message,
    account_kind_from_message,
    basis_to_message,
    currency_from_message,
    currency_to_message,
    merchant_from_message,
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

# ruff: noqa: N802  the proto names the methods


class CatalogServicer(catalog_pb2_grpc.CatalogServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ListMerchantCurrencies(
        self, request: pb.ListMerchantCurrenciesRequest, context: grpc.ServicerContext
    ) -> pb.ListMerchantCurrenciesResponse:
        found = offers.list_merchant_currencies(self._deps, merchant=merchant_from_message(request.merchant))
        return pb.ListMerchantCurrenciesResponse(
            currencies=[
                pb.CurrencyOffer(currency=currency_to_message(offer.currency), rate=rate_text(offer.rate))
                for offer in found
            ]
        )

    def ListMethodOffers(
        self, request: pb.ListMethodOffersRequest, context: grpc.ServicerContext
    ) -> pb.ListMethodOffersResponse:
        found = offers.list_method_offers(
            self._deps,
            merchant=merchant_from_message(request.merchant),
            currency_code=optional(request, "currency_code"),
            payable_now=request.payable_now,
        )
        return pb.ListMethodOffersResponse(offers=[offer_to_message(offer) for offer in found])

    def ListMerchantMethods(
        self, request: pb.ListMerchantMethodsRequest, context: grpc.ServicerContext
    ) -> pb.ListMerchantMethodsResponse:
        found = offers.list_merchant_methods(self._deps, merchant=merchant_from_message(request.merchant))
        return pb.ListMerchantMethodsResponse(methods=[merchant_method_to_message(each) for each in found])

    def GetQuote(self, request: pb.GetQuoteRequest, context: grpc.ServicerContext) -> pb.GetQuoteResponse:
        quote = offers.get_quote(
            self._deps, merchant=merchant_from_message(request.merchant), method_code=request.method_code
        )
        return pb.GetQuoteResponse(
            offer=offer_to_message(quote.offer),
            rate=rate_text(quote.rate),
            basis=basis_to_message(quote.basis, quote.offer.currency.markup),
        )

    def GetCatalog(
        self, request: pb.GetCatalogRequest, context: grpc.ServicerContext
    ) -> pb.GetCatalogResponse:
        content = entries.get_catalog(self._deps)
        return pb.GetCatalogResponse(
            currencies=[currency_to_message(currency) for currency in content.currencies],
            methods=[method_to_message(method) for method in content.methods],
        )

    def SetCurrency(
        self, request: pb.SetCurrencyRequest, context: grpc.ServicerContext
    ) -> pb.SetCurrencyResponse:
        given = request.currency
        currency = entries.set_currency(
            self._deps,
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

    def SetPaymentMethod(
        self, request: pb.SetPaymentMethodRequest, context: grpc.ServicerContext
    ) -> pb.SetPaymentMethodResponse:
        given = request.method
        method = entries.set_payment_method(
            self._deps,
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

    def KeepLogo(self, request: pb.KeepLogoRequest, context: grpc.ServicerContext) -> pb.KeepLogoResponse:
        return pb.KeepLogoResponse(logo=logos.keep_logo(self._deps, content=request.logo))

    def GetLogo(self, request: pb.GetLogoRequest, context: grpc.ServicerContext) -> pb.GetLogoResponse:
        logo = logos.get_logo(self._deps, logo=request.logo)
        return pb.GetLogoResponse(content_type=logo.content_type, content=logo.content)

    def SetRate(self, request: pb.SetRateRequest, context: grpc.ServicerContext) -> pb.SetRateResponse:
        rate = rates.set_rate(
            self._deps, currency_code=request.currency_code, rate=request.rate, anyway=request.anyway
        )
        return pb.SetRateResponse(rate=rate_to_message(rate))

    def ListRates(self, request: pb.ListRatesRequest, context: grpc.ServicerContext) -> pb.ListRatesResponse:
        states = rates.list_rates(self._deps)
        settings = self._deps.settings
        return pb.ListRatesResponse(
            rates=[rate_state_to_message(state) for state in states],
            max_jump=plain_text(settings.rates_max_jump),
            max_age_seconds=settings.rates_max_age_seconds,
            poll_seconds=settings.rates_poll_seconds,
        )

    def GetRateHistory(
        self, request: pb.GetRateHistoryRequest, context: grpc.ServicerContext
    ) -> pb.GetRateHistoryResponse:
        found = history.get_rate_history(
            self._deps,
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
            acts=[audit.act_to_message(act, self._deps.settings.service) for act in found.acts],
        )

    def ListAcceptedRates(
        self, request: pb.ListAcceptedRatesRequest, context: grpc.ServicerContext
    ) -> pb.ListAcceptedRatesResponse:
        found = history.list_accepted_rates(
            self._deps,
            currency_code=request.currency_code,
            by_operators=request.by_operators,
            after_number=request.after_number,
            limit=request.limit,
        )
        return pb.ListAcceptedRatesResponse(rates=[accepted_rate_to_message(each) for each in found])

    def PullRates(self, request: pb.PullRatesRequest, context: grpc.ServicerContext) -> pb.PullRatesResponse:
        states = rates.pull_rates(self._deps)
        return pb.PullRatesResponse(rates=[rate_state_to_message(state) for state in states])

    def AcceptRate(
        self, request: pb.AcceptRateRequest, context: grpc.ServicerContext
    ) -> pb.AcceptRateResponse:
        rate = rates.accept_rate(
            self._deps, currency_code=request.currency_code, expected=request.expected_source_rate
        )
        return pb.AcceptRateResponse(rate=rate_to_message(rate))
