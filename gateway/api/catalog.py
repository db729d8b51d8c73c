"""List currencies with their rates, and list payment methods (docs/api.md#list-currencies)."""

import re
from functools import partial
from typing import Any, Final

import falcon
import falcon.asgi

from fiatgate.catalog.v1 import catalog_pb2 as pb
from gateway.exchange import Request
from gateway.json.query import Query, no_query
from gateway.links import Links
from gateway.walls.shared_calls import SharedCalls
from gateway.wiring import Deps
from kit.base.proto import optional
from kit.rpc.errors import not_found
from kit.web.replies import encoded, reply, reply_encoded

_CODE: Final = re.compile(r"[A-Za-z]{3}").fullmatch
_SHOWN_CHARACTERS: Final = 32
# Between the answers to many equal requests of one merchant at a time. One request at a time never waits for it.
SHARED_PAUSE_SECONDS: Final = 0.2


class CurrencyResource:
    """GET /api/v1/currencies."""

    def __init__(self, deps: Deps) -> None:
        self._catalog = deps.catalog

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        no_query(req.query_string)
        answer = await self._catalog.ListMerchantCurrencies(
            pb.ListMerchantCurrenciesRequest(merchant=req.exchange.caller)
        )
        data = [currency_offer_to_json(offer) for offer in answer.currencies]
        reply(resp, {"successful": True, "data": data})


class PaymentMethodResource:
    """GET /api/v1/payment-methods. It is the largest of the quick answers: equal requests that wait share one.

    A `currency` without the form of a code gives CURRENCY_NOT_FOUND, like an unknown one: the endpoint documents no
    other answer. Only an empty or repeated `currency` is a bad query.
    """

    def __init__(self, deps: Deps) -> None:
        self._catalog = deps.catalog
        self._links = deps.links
        self._shared = SharedCalls[bytes, bytes](pause_seconds=SHARED_PAUSE_SECONDS)

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        query = Query(req.query_string)
        currency_code = query.text("currency")
        query.check()
        if currency_code is not None and not _CODE(currency_code):
            asked = currency_code.upper()[:_SHOWN_CHARACTERS]
            raise not_found("CURRENCY_NOT_FOUND", "The currency is unknown", currency=asked)
        request = pb.ListMethodOffersRequest(merchant=req.exchange.caller, currency_code=currency_code)
        same = request.SerializeToString(deterministic=True)
        reply_encoded(resp, await self._shared.answer(same, partial(self._offers, request)))

    async def _offers(self, request: pb.ListMethodOffersRequest) -> bytes:
        answer = await self._catalog.ListMethodOffers(request)
        data = [method_offer_to_json(offer, self._links) for offer in answer.offers]
        return encoded({"successful": True, "data": data})


def currency_offer_to_json(offer: pb.CurrencyOffer) -> dict[str, Any]:
    """Returns `Currency` of openapi.yaml."""
    currency = offer.currency
    return {
        "currency": currency.code,
        "decimal": currency.decimals,
        "symbol": currency.symbol,
        "name": currency.name,
        "rate": offer.rate,
    }


def method_offer_to_json(offer: pb.MethodOffer, links: Links) -> dict[str, Any]:
    """Returns `PaymentMethod` of openapi.yaml. `logo_url` is the one that was set, else the logo served here."""
    method, currency = offer.method, offer.currency
    own_logo_url = links.public_method_logo(method.logo) if method.logo else None
    return {
        "name": method.name,
        "method_code": method.method_code,
        "min_sum": method.min_sum,
        "max_sum": method.max_sum,
        "logo_url": optional(method, "logo_url") or own_logo_url,
        "payment_time": method.payment_minutes,
        "currency": {"code": currency.code, "name": currency.name, "symbol": currency.symbol},
        "max_commission": offer.total_percent,
        "client_commission": offer.client_percent,
        "merchant_commission": offer.merchant_percent,
    }
