"""Every method as one merchant's customers get it, with what keeps it from them."""

from typing import Any

import pytest

from fiatgate.catalog.v1 import catalog_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from tests.catalog.running import Catalog


def merchant(**options: Any) -> merchants_pb2.Merchant:
    values = {"category_code": "shops", "category_commission": "0.05", "client_share": "0.5"}
    return merchants_pb2.Merchant(**(values | options))


def shown(catalog: Catalog, code: str, of: merchants_pb2.Merchant) -> tuple[pb.MerchantMethod, set[str]]:
    answer = catalog.stub.ListMerchantMethods(pb.ListMerchantMethodsRequest(merchant=of))
    (found,) = (each for each in answer.methods if each.method.method_code == code)
    names = {pb.MethodObstacle.Name(each).removeprefix("METHOD_OBSTACLE_") for each in found.obstacles}
    return found, names


def test_a_method_without_obstacles_is_the_one_that_customers_are_offered(catalog: Catalog) -> None:
    currency = catalog.currency()
    code = catalog.method(currency)
    catalog.set_rate(currency, "1.25")
    found, obstacles = shown(catalog, code, merchant())
    (offer,) = catalog.offers(merchant(), currency)
    quote = catalog.quote(merchant(), code)
    assert obstacles == set()
    assert (found.method, found.currency, found.rate) == (offer.method, offer.currency, quote.rate)
    assert (found.total_percent, found.client_percent, found.merchant_percent) == ("7.00", "3.50", "3.50")


def without(*fields: str) -> merchants_pb2.Merchant:
    changed = merchant()
    for field in fields:
        changed.ClearField(field)  # type: ignore[arg-type]
    return changed


@pytest.mark.parametrize(
    ("of", "obstacle"),
    [
        (merchant(allowed_currencies=["XXX"]), "CURRENCY_NOT_ALLOWED"),
        (merchant(allowed_methods=["another"]), "METHOD_NOT_ALLOWED"),
        (without("category_code", "category_commission"), "CATEGORY_MISSING"),
        (without("category_commission"), "CATEGORY_NOT_FOUND"),
        (merchant(category_commission="0.99"), "COMMISSION_INVALID"),
    ],
)
def test_an_option_of_the_merchant_is_named(
    catalog: Catalog, of: merchants_pb2.Merchant, obstacle: str
) -> None:
    currency = catalog.currency()
    code = catalog.method(currency)
    catalog.set_rate(currency, "1.25")
    assert shown(catalog, code, of)[1] == {obstacle}


def test_all_obstacles_of_a_method_are_named_together(catalog: Catalog) -> None:
    currency = catalog.currency(enabled=False)
    code = catalog.method(currency, active=False)
    found, obstacles = shown(catalog, code, merchant())
    assert obstacles == {"METHOD_INACTIVE", "CURRENCY_DISABLED", "RATE_NOT_FOUND"}
    assert found.rate == ""


def test_a_rate_that_has_lapsed_is_named(catalog: Catalog) -> None:
    currency = catalog.currency()
    code = catalog.method(currency)
    catalog.set_rate(currency, "1.25")
    catalog.clock.advance(seconds=catalog.deps.settings.rates_max_age.total_seconds() + 1)
    assert shown(catalog, code, merchant())[1] == {"RATE_STALE"}
