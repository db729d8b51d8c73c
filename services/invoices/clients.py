"""The calls of invoices to catalog and identity.

The catalog itself (bounds, methods) is kept in memory, because every create needs it. The parts of a payment page are
kept for a moment, because pages are read often, and for longer while the services behind them do not answer. The quote
of a deal (rate, commissions) is queried at the moment of the choice; the merchant's answer may be used for its lease.

A service that hangs holds few threads for a short time: each kind of call has a short limit and a breaker.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from fiatgate.catalog.v1 import catalog_pb2, catalog_pb2_grpc
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.base.account_forms import AccountKind
from kit.base.clock import monotonic_seconds
from kit.base.proto import datetime_from
from kit.base.tls import Identity
from kit.events.subjects import subject_of
from kit.rpc.breaker import Breaker
from kit.rpc.client import channel
from kit.rpc.errors import Refused, database_unavailable
from kit.rpc.leases import Leases, Seconds
from kit.work.worker import Loop, Outage, Signal
from services.invoices.domain.rates import RateBasis, RateSource

CATALOG_CHANGED = subject_of(catalog_pb2.CatalogChanged)
CATALOG_RELOAD_SECONDS = 2.0
# An older copy is not used: without the catalog service no invoice is created on old terms.
CATALOG_MAX_AGE_SECONDS = 60.0

PAGE_SECONDS = 1.0
"""Longest time that a page waits for another service; then it shows an older answer, or the reason for the gap."""
CHOICE_SECONDS = 2.5
"""Longest time that a choice of a method, or the reload of the catalog, waits for another service."""

FIRST_COPY_SECONDS = 1.0
STOREFRONT_SECONDS = 2.0
# Pages show data up to this age while the services behind it do not answer.
STOREFRONT_MAX_AGE_SECONDS = 60.0
STOREFRONTS_MAX = 1000  # above this the one opened longest ago is dropped


@dataclass(frozen=True, slots=True)
class MethodTerms:
    """An active method: the bounds of an invoice's amount, its own commission, a fraction 0..1, and whether its
    transfers carry a reference.
    """

    code: str
    minimum: Decimal
    maximum: Decimal
    commission: Decimal
    takes_reference: bool


@dataclass(frozen=True, slots=True)
class CurrencyTerms:
    """An enabled currency and its active methods. `has_rate`: a deal could lock one."""

    code: str
    decimals: int
    minimum: Decimal
    maximum: Decimal
    methods: Sequence[MethodTerms]
    has_rate: bool = True


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Enabled currencies and methods; `decimals` has the disabled currencies too, `account_kinds` all methods."""

    currencies: Mapping[str, CurrencyTerms]
    decimals: Mapping[str, int]
    account_kinds: Mapping[str, AccountKind]


@dataclass(frozen=True, slots=True)
class Quote:
    """A method's terms for one merchant at this moment, which a deal locks."""

    method_code: str
    method_name: str
    currency_code: str
    decimals: int
    minimum: Decimal
    maximum: Decimal
    payment_time: timedelta
    client_percent: Decimal
    merchant_percent: Decimal
    rate: Decimal
    takes_reference: bool
    rate_basis: RateBasis


class CatalogClient:
    """The catalog service, and the copy of its catalog that `reloading()` keeps fresh."""

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="catalog", identity=identity)
        self._stub = catalog_pb2_grpc.CatalogServiceStub(opened)
        self._page_calls = Breaker("catalog", calls="pages", seconds=PAGE_SECONDS)
        self._choice_calls = Breaker("catalog", calls="deals", seconds=CHOICE_SECONDS)
        self._desk_calls = Breaker("catalog", calls="desk", seconds=CHOICE_SECONDS)
        self._loading = threading.Lock()
        self._catalog: CatalogSnapshot | None = None
        self._loaded_at_seconds = 0.0
        self.changed = Signal()

    def catalog(self) -> CatalogSnapshot:
        """Returns the copy in memory, at most 2 s behind. Raises `Refused` DB_UNAVAILABLE when catalog is long away.

        When the copy is too old, one call at a time loads it, and the others are refused at once: every create needs
        it. Right after the start they wait for the first copy.
        """
        known = self._current()
        if known is None and self._loading.acquire(
            timeout=FIRST_COPY_SECONDS if self._catalog is None else 0
        ):
            try:
                if self._current() is None:
                    self._load()
            finally:
                self._loading.release()
            known = self._current()
        if known is None:
            raise database_unavailable()
        return known

    def _current(self) -> CatalogSnapshot | None:
        age_seconds = monotonic_seconds() - self._loaded_at_seconds
        return self._catalog if age_seconds <= CATALOG_MAX_AGE_SECONDS else None

    def account_kind(self, method_code: str) -> AccountKind | None:
        """Returns the present kind of the method's accounts, None when there is no such method. Loads the catalog: the
        method may be new.
        """
        self._load()
        return self.catalog().account_kinds.get(method_code)

    def reloading(self) -> Loop:
        """Returns the loop that every process with calls runs: it reloads every 2 s, and when `changed` is set."""
        return Loop("catalog-copy", self._reload, every_seconds=CATALOG_RELOAD_SECONDS, signal=self.changed)

    def quote(self, merchant: merchants_pb2.Merchant, method_code: str) -> Quote:
        """Returns rate and commission of a new deal. Raises `Refused` with the reasons of CatalogService.GetQuote."""
        request = catalog_pb2.GetQuoteRequest(merchant=merchant, method_code=method_code)
        answer = self._choice_calls.call(self._stub.GetQuote, request)
        method, currency = answer.offer.method, answer.offer.currency
        return Quote(
            method_code=method.method_code,
            method_name=method.name,
            currency_code=method.currency_code,
            decimals=currency.decimals,
            minimum=Decimal(method.min_sum),
            maximum=Decimal(method.max_sum),
            payment_time=timedelta(minutes=method.payment_minutes),
            client_percent=Decimal(answer.offer.client_percent),
            merchant_percent=Decimal(answer.offer.merchant_percent),
            rate=Decimal(answer.rate),
            takes_reference=method.takes_reference,
            rate_basis=rate_basis_from_message(answer.basis),
        )

    def offers(
        self, merchant: merchants_pb2.Merchant, currency_code: str
    ) -> Sequence[catalog_pb2.MethodOffer]:
        """Returns the methods that a deal could be made with now.

        Raises `Refused` with the reasons of CatalogService.ListMethodOffers, those of the rate included.
        """
        request = catalog_pb2.ListMethodOffersRequest(
            merchant=merchant, currency_code=currency_code, payable_now=True
        )
        return self._page_calls.call(self._stub.ListMethodOffers, request).offers

    def methods_of(self, merchant: merchants_pb2.Merchant) -> Sequence[catalog_pb2.MerchantMethod]:
        """Returns every method as the merchant's customers get it, for operators."""
        request = catalog_pb2.ListMerchantMethodsRequest(merchant=merchant)
        return self._desk_calls.call(self._stub.ListMerchantMethods, request).methods

    def _reload(self) -> bool:
        try:
            self._load()
        except Refused as refused:
            if refused.reason == "DB_UNAVAILABLE":  # catalog is away, which is no fault of this process
                raise Outage(f"catalog: {refused.message}") from refused
            raise
        return False

    def _load(self) -> None:
        answer = self._choice_calls.call(self._stub.GetCatalog, catalog_pb2.GetCatalogRequest())
        self._catalog = catalog_from_message(answer)
        self._loaded_at_seconds = monotonic_seconds()


_ORIGINS: Final = {
    number: name.removeprefix("RATE_ORIGIN_").lower() for name, number in catalog_pb2.RateOrigin.items()
}


def rate_basis_from_message(basis: catalog_pb2.RateBasis) -> RateBasis:
    return RateBasis(
        origin=_ORIGINS.get(basis.origin, ""),  # a newer catalog may have others
        source_rate=basis.source_rate,
        markup=basis.markup,
        taken_at=datetime_from(basis.taken_at),
        sources=[
            RateSource(each.source, each.rate if each.HasField("rate") else None, each.error)
            for each in basis.sources
        ],
    )


def catalog_from_message(answer: catalog_pb2.GetCatalogResponse) -> CatalogSnapshot:
    methods: dict[str, list[MethodTerms]] = {}
    for method in answer.methods:
        if method.active:
            terms = MethodTerms(
                code=method.method_code,
                minimum=Decimal(method.min_sum),
                maximum=Decimal(method.max_sum),
                commission=Decimal(method.commission),
                takes_reference=method.takes_reference,
            )
            methods.setdefault(method.currency_code, []).append(terms)
    currencies = {
        currency.code: CurrencyTerms(
            code=currency.code,
            decimals=currency.decimals,
            minimum=Decimal(currency.min_amount),
            maximum=Decimal(currency.max_amount),
            methods=methods.get(currency.code, ()),
            has_rate=currency.code not in answer.unpriced_codes,
        )
        for currency in answer.currencies
        if currency.enabled
    }
    return CatalogSnapshot(
        currencies=currencies,
        decimals={currency.code: currency.decimals for currency in answer.currencies},
        account_kinds={
            method.method_code: _ACCOUNT_KINDS.get(method.account_kind, AccountKind.FREE)
            for method in answer.methods
        },
    )


# A later catalog may send a kind that is not among these.
_ACCOUNT_KINDS: Mapping[int, AccountKind] = {
    catalog_pb2.AccountKind.Value(f"ACCOUNT_KIND_{kind.name}"): kind for kind in AccountKind
}


class IdentityClient:
    def __init__(
        self, address: str, *, identity: Identity | None = None, now_seconds: Seconds = monotonic_seconds
    ) -> None:
        opened = channel(address, name="identity", identity=identity)
        self._stub = merchants_pb2_grpc.MerchantsServiceStub(opened)
        self._page_calls = Breaker("identity", calls="pages", seconds=PAGE_SECONDS)
        self._choice_calls = Breaker("identity", calls="deals", seconds=CHOICE_SECONDS)
        self._leases = Leases[UUID, merchants_pb2.Merchant](now_seconds)

    def merchant(self, merchant_id: UUID) -> merchants_pb2.Merchant:
        """Returns the merchant for a deal: the present one, or one whose lease lasts. Raises as `merchant_to_show`."""

        def call() -> tuple[merchants_pb2.Merchant, int]:
            answer = self._answer(self._choice_calls, merchant_id)
            return answer.merchant, answer.lease_milliseconds

        return self._leases.answer(merchant_id, call)

    def merchant_to_show(self, merchant_id: UUID) -> merchants_pb2.Merchant:
        """Returns the merchant for a page. Waits less than `merchant`. Raises `Refused` MERCHANT_NOT_FOUND."""
        return self._answer(self._page_calls, merchant_id).merchant

    def _answer(self, breaker: Breaker, merchant_id: UUID) -> merchants_pb2.GetMerchantResponse:
        request = merchants_pb2.GetMerchantRequest(merchant_id=str(merchant_id))
        return breaker.call(self._stub.GetMerchant, request)


@dataclass(frozen=True, slots=True)
class _Offers:
    """An answer of catalog, and the time of its request."""

    offers: Sequence[catalog_pb2.MethodOffer]
    requested_seconds: float


class Storefront:
    """One merchant's data for payment pages; each part is loaded when it is first needed.

    before  the storefront that this one replaces: its offers are shown while catalog does not answer
    """

    def __init__(
        self,
        merchant: merchants_pb2.Merchant,
        catalog: CatalogClient,
        *,
        opened_seconds: float,
        before: "Storefront | None" = None,
    ) -> None:
        self.merchant = merchant
        self.opened_seconds = opened_seconds
        # Held by the one thread that loads, while the others return older data.
        self.loading = threading.Lock()
        self._catalog = catalog
        self._offers: dict[str, _Offers] = {} if before is None else dict(before._offers)

    def offers(self, currency_code: str) -> Sequence[catalog_pb2.MethodOffer]:
        """Returns the methods of a currency with their prices.

        Raises `Refused` with the reasons of CatalogService.ListMethodOffers; a refusal is not kept.
        """
        known = self._offers.get(currency_code)
        if known is not None and known.requested_seconds >= self.opened_seconds:
            return known.offers
        older = known if known is not None and _may_be_shown(known.requested_seconds) else None
        if older is None:
            return self._load(currency_code)
        if not self.loading.acquire(blocking=False):
            return older.offers
        try:
            return self._load(currency_code)
        except Refused as refused:
            if refused.reason != "DB_UNAVAILABLE":
                raise
            return older.offers
        finally:
            self.loading.release()

    def _load(self, currency_code: str) -> Sequence[catalog_pb2.MethodOffer]:
        now_seconds = monotonic_seconds()
        offers = self._catalog.offers(self.merchant, currency_code)
        self._offers[currency_code] = _Offers(offers, now_seconds)
        return offers


class Storefronts:
    """Name, appearance and offers of merchants, at most 2 s old; older while a service behind them does not answer, up
    to `STOREFRONT_MAX_AGE_SECONDS`. For display only: no decision depends on them.
    """

    def __init__(self, identity: IdentityClient, catalog: CatalogClient) -> None:
        self._identity = identity
        self._catalog = catalog
        self._open: dict[UUID, Storefront] = {}
        self._fresh_from_seconds = 0.0
        self._lock = threading.Lock()

    def of(self, merchant_id: UUID) -> Storefront:
        """Returns the merchant's name, appearance and offers.

        Raises `Refused` MERCHANT_NOT_FOUND, and DB_UNAVAILABLE when there is no data young enough to show.
        """
        known = self._open.get(merchant_id)
        if known is not None and self._is_fresh(known):
            return known
        if known is None or not _may_be_shown(known.opened_seconds):
            return self._opened(merchant_id, None)
        if not known.loading.acquire(blocking=False):
            return known
        try:
            return self._opened(merchant_id, known)
        except Refused as refused:
            if refused.reason != "DB_UNAVAILABLE":
                raise
            return known
        finally:
            known.loading.release()

    def _opened(self, merchant_id: UUID, before: Storefront | None) -> Storefront:
        now_seconds = monotonic_seconds()
        merchant = self._identity.merchant_to_show(merchant_id)
        opened = Storefront(merchant, self._catalog, opened_seconds=now_seconds, before=before)
        with self._lock:
            self._open.pop(merchant_id, None)
            self._open[merchant_id] = opened
            if len(self._open) > STOREFRONTS_MAX:
                del self._open[next(iter(self._open))]
        return opened

    def _is_fresh(self, known: Storefront) -> bool:
        fresh_from_seconds = max(self._fresh_from_seconds, monotonic_seconds() - STOREFRONT_SECONDS)
        return known.opened_seconds > fresh_from_seconds

    def close_all(self) -> None:
        """Makes each storefront load again on its next use: something has changed."""
        self._fresh_from_seconds = monotonic_seconds()


def _may_be_shown(requested_seconds: float) -> bool:
    return monotonic_seconds() - requested_seconds <= STOREFRONT_MAX_AGE_SECONDS
