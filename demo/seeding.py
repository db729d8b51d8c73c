"""Makes the invented world through the services' calls. Each function may run again: the next run completes an
interrupted one.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final

from demo.world import CURRENCIES, METHODS, DemoCurrency
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.catalog.v1.catalog_pb2_grpc import CatalogServiceStub
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import DealDeskServiceStub
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub

OWNER: Final = "owner@shop.example"
SHOP: Final = "Demo shop"
HOLDER: Final = "Alex Demo"
CATEGORY: Final = "standard"
COMMISSION: Final = "0.04"
LOGOS: Final = Path(__file__).parent / "logos"
NOWHERE: Final = "https://shop.example/webhooks"
"""A name that never resolves: set the shop's own address with `fiatgate merchants set`."""


def seed_catalog(catalog: CatalogServiceStub) -> None:
    """Makes currencies and methods, and fetches rates. Raises kit.rpc.errors.Refused, as all functions here."""
    by_code = {currency.code: currency for currency in CURRENCIES}
    for currency in by_code.values():
        catalog.SetCurrency(catalog_pb2.SetCurrencyRequest(currency=_made(currency)))
    for method in METHODS:
        currency = by_code[method.currency]
        kind = catalog_pb2.AccountKind.Value(f"ACCOUNT_KIND_{method.kind.upper()}")
        catalog.SetPaymentMethod(
            catalog_pb2.SetPaymentMethodRequest(
                method=catalog_pb2.PaymentMethod(
                    method_code=method.code,
                    currency_code=method.currency,
                    name=method.name,
                    min_sum=currency.min_amount,
                    max_sum=currency.max_amount,
                    payment_minutes=method.minutes,
                    commission=method.commission,
                    active=True,
                    takes_reference=method.takes_reference,
                    account_kind=kind,
                ),
                logo=(LOGOS / method.logo).read_bytes(),
            )
        )
    catalog.PullRates(catalog_pb2.PullRatesRequest())


def _made(currency: DemoCurrency) -> catalog_pb2.Currency:
    return catalog_pb2.Currency(
        code=currency.code,
        name=currency.name,
        symbol=currency.symbol,
        decimals=currency.decimals,
        min_amount=currency.min_amount,
        max_amount=currency.max_amount,
        markup="0.01",
        enabled=True,
    )


def seed_requisites(desk: DealDeskServiceStub) -> None:
    there = {
        (requisite.method_code, requisite.account)
        for requisite in desk.ListRequisites(invoices_pb2.ListRequisitesRequest()).requisites
    }
    for method in METHODS:
        for account in method.accounts:
            if (method.code, account) not in there:
                desk.AddRequisite(
                    invoices_pb2.AddRequisiteRequest(
                        method_code=method.code, holder=HOLDER, account=account, bank=method.bank
                    )
                )


def seed_merchant(merchants: MerchantsServiceStub, *, callback_url: str = NOWHERE) -> merchants_pb2.Merchant:
    merchants.SetCategory(merchants_pb2.SetCategoryRequest(code=CATEGORY, commission=COMMISSION))
    return merchants.CreateMerchant(
        merchants_pb2.CreateMerchantRequest(
            name=SHOP,
            owner_email=OWNER,
            category_code=CATEGORY,
            client_share="0.4",
            callback_url=callback_url,
            success_url="https://example.com/?paid",
            fail_url="https://example.com/?not-paid",
            active=True,
        )
    ).merchant


def demo_merchant(
    merchants: MerchantsServiceStub, known_id: str | None = None
) -> merchants_pb2.Merchant | None:
    """Returns the demo merchant, by its id or by its name and owner; None before it is made."""
    for merchant in merchants.ListMerchants(merchants_pb2.ListMerchantsRequest()).merchants:
        if merchant.merchant_id == known_id or (merchant.owner_email, merchant.name) == (OWNER, SHOP):
            return merchant
    return None


def new_key(
    merchants: MerchantsServiceStub, merchant: merchants_pb2.Merchant
) -> merchants_pb2.CreateApiKeyResponse:
    request = merchants_pb2.CreateApiKeyRequest(merchant_id=merchant.merchant_id, name="demo")
    return merchants.CreateApiKey(request)


def others(
    merchants: MerchantsServiceStub, catalog: CatalogServiceStub, desk: DealDeskServiceStub
) -> Iterator[str]:
    """Returns in words what is there and was not made here: merchants, categories, currencies, methods, requisites.

    Before the demo merchant is made, a currency or category with other values than the demo's is somebody else's: the
    demo would replace them. Afterwards an operator may have changed those of the demo.
    """
    listed = merchants.ListMerchants(merchants_pb2.ListMerchantsRequest()).merchants
    names = [each.name for each in listed if (each.owner_email, each.name) != (OWNER, SHOP)]
    yield from _counted("merchant", names)
    is_made = len(names) < len(listed)
    categories = merchants.ListCategories(merchants_pb2.ListCategoriesRequest()).categories
    yield from _counted(
        "category",
        [
            each.code
            for each in categories
            if each.code != CATEGORY or (not is_made and Decimal(each.commission) != Decimal(COMMISSION))
        ],
        "categories",
    )
    content = catalog.GetCatalog(catalog_pb2.GetCatalogRequest())
    made = {currency.code: _compared(_made(currency)) for currency in CURRENCIES}
    yield from _counted(
        "currency",
        [
            each.code
            for each in content.currencies
            if each.code not in made or (not is_made and _compared(each) != made[each.code])
        ],
        "currencies",
    )
    ours = {(method.code, method.name) for method in METHODS}
    yield from _counted(
        "payment method",
        [each.method_code for each in content.methods if (each.method_code, each.name) not in ours],
    )
    requisites = desk.ListRequisites(invoices_pb2.ListRequisitesRequest()).requisites
    yield from _counted("requisite", [each.method_code for each in requisites if each.holder != HOLDER])


def _compared(currency: catalog_pb2.Currency) -> tuple[object, ...]:
    numbers = (currency.min_amount, currency.max_amount, currency.markup)
    texts = (currency.name, currency.symbol, currency.decimals, currency.enabled)
    return (*texts, *(Decimal(each) for each in numbers))


def _counted(noun: str, names: list[str], several: str = "") -> Iterator[str]:
    if names:
        few = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        yield f"{len(names)} {noun if len(names) == 1 else several or f'{noun}s'} ({few})"
