"""The demo world of a first start, and a new key for its merchant: `python -m deploy.local.seed HOME`.

Everything goes through the services' gRPC, like an operator's commands. Safe to run again: the next start completes an
interrupted first one. Once the demo merchant exists, it only makes a key, so an operator's changes stay.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from deploy.local.demo_world import CURRENCIES, METHODS
from deploy.local.home import Home, write_private_json
from fiatgate.catalog.v1 import catalog_pb2, catalog_pb2_grpc
from fiatgate.invoices.v1 import invoices_pb2, invoices_pb2_grpc
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.base.config.processes import CliSettings
from kit.base.config.variables import load
from kit.rpc import actors
from kit.rpc.client import channel
from kit.rpc.errors import Refused

OWNER = "owner@shop.example"
SHOP = "Demo shop"
CATEGORY = "standard"
LOGOS = Path(__file__).parent / "logos"


@retry(
    retry=retry_if_exception(lambda error: isinstance(error, Refused) and error.reason == "DB_UNAVAILABLE"),
    stop=stop_after_delay(30),
    wait=wait_fixed(0.2),
    reraise=True,
)
def seed(home: Home, stack: dict[str, Any], *, migrated: bool = True) -> None:
    """Makes the demo world unless its merchant exists, and writes a new key and secret of the merchant to `demo.json`.

    Not `migrated`: the databases have the schema of the version before, so the methods do without the options that the
    newest migration adds. Raises kit.rpc.errors.Refused.
    """
    known = home.demo() or {}
    addresses = {service: place["address"] for service, place in stack["services"].items()}
    identity = load(CliSettings).identity
    with (
        channel(addresses["merchants"], name="merchants", identity=identity) as merchants,
        channel(addresses["catalog"], name="catalog", identity=identity) as catalog,
        channel(addresses["invoices"], name="invoices", identity=identity) as invoices,
    ):
        of_merchants = merchants_pb2_grpc.MerchantsServiceStub(merchants)
        merchant = _demo_merchant(of_merchants, known.get("merchant_id"))
        if merchant is None:
            _seed_catalog(catalog_pb2_grpc.CatalogServiceStub(catalog), migrated=migrated)
            _seed_requisites(invoices_pb2_grpc.DealDeskServiceStub(invoices))
            merchant = _seed_merchant(of_merchants)
        write_private_json(home.demo_file, known | _new_key(of_merchants, merchant))


def _seed_catalog(catalog: catalog_pb2_grpc.CatalogServiceStub, *, migrated: bool) -> None:
    by_code = {currency.code: currency for currency in CURRENCIES}
    for currency in by_code.values():
        catalog.SetCurrency(
            catalog_pb2.SetCurrencyRequest(
                currency=catalog_pb2.Currency(
                    code=currency.code,
                    name=currency.name,
                    symbol=currency.symbol,
                    decimals=currency.decimals,
                    min_amount=currency.min_amount,
                    max_amount=currency.max_amount,
                    markup="0.01",
                    enabled=True,
                )
            )
        )
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
                    takes_reference=method.takes_reference if migrated else None,
                    account_kind=kind if migrated else catalog_pb2.ACCOUNT_KIND_UNSPECIFIED,
                ),
                logo=(LOGOS / method.logo).read_bytes(),
            )
        )
    catalog.PullRates(catalog_pb2.PullRatesRequest())


def _seed_requisites(desk: invoices_pb2_grpc.DealDeskServiceStub) -> None:
    there = {
        (requisite.method_code, requisite.account)
        for requisite in desk.ListRequisites(invoices_pb2.ListRequisitesRequest()).requisites
    }
    for method in METHODS:
        for account in method.accounts:
            if (method.code, account) not in there:
                desk.AddRequisite(
                    invoices_pb2.AddRequisiteRequest(
                        method_code=method.code, holder="Alex Demo", account=account, bank=method.bank
                    )
                )


def _new_key(
    merchants: merchants_pb2_grpc.MerchantsServiceStub, merchant: merchants_pb2.Merchant
) -> dict[str, str]:
    key = merchants.CreateApiKey(
        merchants_pb2.CreateApiKeyRequest(merchant_id=merchant.merchant_id, name="demo")
    )
    return {
        "merchant_id": merchant.merchant_id,
        "owner_email": merchant.owner_email,
        "key_id": key.key_id,
        "api_key": key.api_key,
        "secret": key.secret,
    }


def _demo_merchant(
    merchants: merchants_pb2_grpc.MerchantsServiceStub, known_id: str | None
) -> merchants_pb2.Merchant | None:
    for merchant in merchants.ListMerchants(merchants_pb2.ListMerchantsRequest()).merchants:
        if merchant.merchant_id == known_id or (merchant.owner_email, merchant.name) == (OWNER, SHOP):
            return merchant
    return None


def _seed_merchant(merchants: merchants_pb2_grpc.MerchantsServiceStub) -> merchants_pb2.Merchant:
    merchants.SetCategory(merchants_pb2.SetCategoryRequest(code=CATEGORY, commission="0.04"))
    return merchants.CreateMerchant(
        merchants_pb2.CreateMerchantRequest(
            name=SHOP,
            owner_email=OWNER,
            category_code=CATEGORY,
            client_share="0.4",
            # A name that never resolves: set your own shop's address with `fiatgate merchants set`.
            callback_url="https://shop.example/webhooks",
            success_url="https://example.com/?paid",
            fail_url="https://example.com/?not-paid",
            active=True,
        )
    ).merchant


if __name__ == "__main__":
    _home = Home(Path(sys.argv[1]))
    actors.carry_cli(f"make-run@{socket.gethostname()}")
    seed(_home, _home.running_stack())
