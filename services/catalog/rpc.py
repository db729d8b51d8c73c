"""The servicer: message -> operation -> message. kit's interceptor translates errors."""

# ruff: noqa: N802  the proto names the methods

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import grpc

from fiatgate.catalog.v1 import catalog_pb2 as pb
from fiatgate.catalog.v1 import catalog_pb2_grpc
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.money import fiat_text, parse_fraction, percent_text, rate_text
from kit.base.proto import optional, timestamp_from
from kit.rpc import approvals, audit, books, status, values
from kit.rpc.approvals import Approvable
from kit.rpc.callers import ALL, Callers
from kit.rpc.permissions import READERS, Permissions, machine, staff
from kit.rpc.slots import Slots
from services.catalog.domain import AccountKind, Currency, Merchant, Method, Origin, Quote
from services.catalog.operations import entries, fields, logos, offers, rates
from services.catalog.operations.offers import MethodOffer
from services.catalog.operations.rates import RateInfo, RateState
from services.catalog.store.books import parts
from services.catalog.wiring import Deps

CALLERS: Final[Callers] = {
    "cli": frozenset({ALL}),
    "console-desk": frozenset({audit.LIST}),
    "console-dashboard": frozenset({audit.LIST}),
    "gateway": frozenset(
        {
            "CatalogService/GetLogo",
            "CatalogService/ListMerchantCurrencies",
            "CatalogService/ListMethodOffers",
        }
    ),
    "invoices": frozenset(
        {"CatalogService/GetCatalog", "CatalogService/GetQuote", "CatalogService/ListMethodOffers"}
    ),
}

SLOTS: Final = (
    Slots(
        name="offers",
        methods=frozenset({"CatalogService/ListMerchantCurrencies", "CatalogService/ListMethodOffers"}),
        waiting=96,
    ),
    # Creating an invoice needs the catalog, and a deal needs its quote: many readers of offers must not stop them.
    Slots(
        name="deals",
        methods=frozenset({"CatalogService/GetCatalog", "CatalogService/GetQuote"}),
        threads=2,
        waiting=64,
    ),
    Slots(name="logos", methods=frozenset({"CatalogService/GetLogo"}), threads=1),
    Slots(
        name="desk",
        methods=frozenset(
            {
                "CatalogService/AcceptRate",
                "CatalogService/ListRates",
                # Markups, commissions and rates are money.
                "CatalogService/SetCurrency",
                "CatalogService/SetPaymentMethod",
                "CatalogService/SetRate",
            }
        )
        | approvals.METHODS,
        threads=2,
    ),
    Slots(
        name="proofs",
        methods=frozenset({"BooksService/CheckPage", "BooksService/ListParts"}),
        threads=1,
        waiting=4,
    ),
    # PullRates waits for the sources of rates.
    Slots(name="sources", methods=frozenset({"CatalogService/PullRates"}), threads=1, waiting=4),
)


APPROVABLE: Final[Mapping[str, Approvable[Deps]]] = {
    rates.SET: Approvable(change=rates.set_approved, terms=rates.set_terms, role="prices"),
    rates.ACCEPT: Approvable(change=rates.accept_approved, terms=rates.accept_terms, role="prices"),
}

PERMISSIONS: Final[Permissions] = {
    **status.PERMISSIONS,
    **books.PERMISSIONS,
    **approvals.permissions(APPROVABLE),
    "CatalogService/ListMerchantCurrencies": machine(for_api=True),
    "CatalogService/ListMethodOffers": machine(for_api=True),
    "CatalogService/GetQuote": machine(),
    "CatalogService/GetLogo": machine(),
    "CatalogService/GetCatalog": machine() | staff(*READERS),
    "CatalogService/ListRates": staff(*READERS),
    "CatalogService/SetCurrency": staff("prices", changes=True, steps_up=True),
    "CatalogService/SetPaymentMethod": staff("prices", changes=True, steps_up=True),
    "CatalogService/SetRate": staff("prices", changes=True, steps_up=True),
    "CatalogService/PullRates": staff("prices", changes=True),
    "CatalogService/AcceptRate": staff("prices", changes=True),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    catalog_pb2_grpc.add_CatalogServiceServicer_to_server(CatalogServicer(deps), server)
    books.add_to(server, deps.db, parts(deps.settings.rates_max_jump, deps.settings.rates_max_age))
    approvals.add_to(server, deps.settings.service, deps, APPROVABLE)


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

    def GetQuote(self, request: pb.GetQuoteRequest, context: grpc.ServicerContext) -> pb.GetQuoteResponse:
        quote = offers.get_quote(
            self._deps, merchant=merchant_from_message(request.merchant), method_code=request.method_code
        )
        return pb.GetQuoteResponse(offer=offer_to_message(quote.offer), rate=rate_text(quote.rate))

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
        )
        return pb.SetPaymentMethodResponse(method=method_to_message(method))

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
        return pb.ListRatesResponse(rates=[rate_state_to_message(state) for state in states])

    def PullRates(self, request: pb.PullRatesRequest, context: grpc.ServicerContext) -> pb.PullRatesResponse:
        states = rates.pull_rates(self._deps)
        return pb.PullRatesResponse(rates=[rate_state_to_message(state) for state in states])

    def AcceptRate(
        self, request: pb.AcceptRateRequest, context: grpc.ServicerContext
    ) -> pb.AcceptRateResponse:
        rate = rates.accept_rate(self._deps, currency_code=request.currency_code)
        return pb.AcceptRateResponse(rate=rate_to_message(rate))


# -- messages and values


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
        total_percent=percent_text(offer.commission.total_percent),
        client_percent=percent_text(offer.commission.client_percent),
        merchant_percent=percent_text(offer.commission.merchant_percent),
    )


def rate_state_to_message(state: RateState) -> pb.RateState:
    return pb.RateState(
        currency_code=state.currency_code,
        in_force=None if state.in_force is None else rate_to_message(state.in_force),
        held=None if state.held is None else rate_to_message(state.held),
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
        sources=[quote_to_message(quote) for quote in quotes],
    )


def quote_to_message(quote: Quote) -> pb.SourceQuote:
    rate = None if quote.rate is None else plain_text(quote.rate)
    return pb.SourceQuote(source=quote.source, rate=rate, error=quote.error)


def plain_text(value: Decimal) -> str:
    """Returns all decimals without trailing zeros, no exponent: "92.5", "0.0312"."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
