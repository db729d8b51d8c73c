"""The operator's and the merchant's side of gateway tests, against the whole stack."""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from typing import Any

import psycopg2
import requests

from deploy.local.waiting import wait_until
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.catalog.v1.catalog_pb2_grpc import CatalogServiceStub
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import (
    CheckoutServiceStub,
    DealDeskServiceStub,
    InvoicesServiceStub,
)
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from fiatgate.withdrawals.v1 import withdrawals_pb2
from fiatgate.withdrawals.v1.corrections_pb2_grpc import CorrectionsServiceStub
from fiatgate.withdrawals.v1.refunds_pb2_grpc import RefundsServiceStub
from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub
from kit.base.ids import new_id
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from tests.gateway.conformance import assert_documented
from tests.support.acting import second_person
from tests.support.stack import Stack

SETTLE_SECONDS = 60.0
HTTP_SECONDS = 25.0

_pairs = ["".join(pair) for pair in itertools.product(string.ascii_uppercase, repeat=2)]
_codes = iter([f"X{pair}" for pair in random.sample(_pairs, len(_pairs))])
_cents = itertools.count(1)


def unique(prefix: str = "t") -> str:
    return f"{prefix}-{new_id().hex}"


@dataclass(frozen=True)
class Shop:
    """A merchant with a key, and the currency it sells in. Every answer it gets must be a documented one."""

    url: str
    merchant_id: str
    owner_email: str
    key_id: str
    api_key: str
    secret: str
    currency: str

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"X-Api-Key": self.api_key, **options.pop("headers", {})}
        response = requests.request(method, self.url + path, headers=headers, timeout=HTTP_SECONDS, **options)
        assert_documented(response)
        return response

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> requests.Response:
        return self.request("POST", path, **options)

    def body(self, **changes: Any) -> dict[str, Any]:
        """A body of create-invoice that is accepted, with changes; one changed to None is left out.

        Every amount differs: one account never takes two open deals of one amount.
        """
        cents = next(_cents)
        body: dict[str, Any] = {
            "amount": f"{1000 + cents // 100}.{cents % 100:02}",
            "currency_code": self.currency,
            "customer_id": unique("customer"),
            "external_id": unique("order"),
            "purpose": "Two lamps",
            "callback_url": "https://shop.example/hook",
            "success_url": "https://shop.example/thanks",
            "fail_url": "https://shop.example/sorry",
        } | changes
        return {name: value for name, value in body.items() if value is not None}

    def create(self, **changes: Any) -> dict[str, Any]:
        """An invoice, created."""
        response = self.post("/api/v1/create-invoice", json=self.body(**changes))
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created


class Desk:
    """What an operator does, by gRPC. Use as a context manager: currencies made here are disabled at the end."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._exit = ExitStack()
        opened = {
            name: self._exit.enter_context(channel(address, name=name))
            for name, address in stack.addresses.items()
        }
        self.merchants = MerchantsServiceStub(opened["identity"])
        self.catalog = CatalogServiceStub(opened["catalog"])
        self.invoices = InvoicesServiceStub(opened["invoices"])
        self.checkout = CheckoutServiceStub(opened["invoices"])
        self.deals = DealDeskServiceStub(opened["invoices"])
        self.withdrawals = WithdrawalsServiceStub(opened["withdrawals"])
        self.corrections = CorrectionsServiceStub(opened["withdrawals"])
        self.refunds = RefundsServiceStub(opened["withdrawals"])
        self.by_two = self._exit.enter_context(second_person(stack.addresses["invoices"]))

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    # -- the catalog

    def currency(self, *, rate: str | None = "90.00", **changes: Any) -> str:
        """A currency of its own, enabled, with a rate. Disabled at the end: other merchants may use all currencies."""
        values: dict[str, Any] = {
            "code": next(_codes),
            "name": "Test money",
            "symbol": "¤",
            "decimals": 2,
            "min_amount": "10",
            "max_amount": "100000",
            "markup": "0",
            "enabled": True,
        }
        currency = catalog_pb2.Currency(**(values | changes))
        self.catalog.SetCurrency(catalog_pb2.SetCurrencyRequest(currency=currency))
        disabled = catalog_pb2.Currency()
        disabled.CopyFrom(currency)
        disabled.enabled = False
        self._exit.callback(self.catalog.SetCurrency, catalog_pb2.SetCurrencyRequest(currency=disabled))
        if rate:
            # A rate that counts as long as a polled one would lapse within a module on a busy machine.
            lasting = catalog_pb2.RATE_VALIDITY_DAY
            self.catalog.SetRate(
                catalog_pb2.SetRateRequest(currency_code=currency.code, rate=rate, validity=lasting)
            )
        return currency.code

    def method(self, currency: str, **changes: Any) -> str:
        values: dict[str, Any] = {
            "method_code": unique("m"),
            "currency_code": currency,
            "name": "Card to card",
            "min_sum": "10",
            "max_sum": "100000",
            "payment_minutes": 15,
            "commission": "0.01",
            "active": True,
        }
        method = catalog_pb2.PaymentMethod(**(values | changes))
        self.catalog.SetPaymentMethod(catalog_pb2.SetPaymentMethodRequest(method=method))
        return method.method_code

    def requisite(
        self, method: str, *, account: str = "4000002500003155", bank: str | None = "Test Bank"
    ) -> str:
        """An account of a method, once invoices has learnt of the method, which takes a moment."""
        request = invoices_pb2.AddRequisiteRequest(
            method_code=method, holder="Alex Tester", account=account, bank=bank, max_deals=10_000
        )
        added: list[str] = []

        def add() -> bool:
            try:
                added.append(self.deals.AddRequisite(request).requisite.requisite_id)
            except Refused as refused:
                assert refused.reason == "VALIDATION_ERROR", refused
            return bool(added)

        settled(add, f"invoices to know {method}")
        return added[0]

    def catalog_database(self, statement: str, *values: object) -> None:
        """For states of the catalog that no operator can make."""
        self.database("catalog", statement, *values)

    def database(self, service: str, statement: str, *values: object) -> None:
        """For states of a service that take too long to come, or that no operator can make. Changes are recorded."""
        url = self.stack.superuser_url(service)
        with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
            guards = ("deals_keep_their_terms", "deals_are_set_once") if service == "invoices" else ()
            for guard in guards:
                cursor.execute(f"ALTER TABLE deals DISABLE TRIGGER {guard}")
            cursor.execute(statement, values)
            for guard in guards:
                cursor.execute(f"ALTER TABLE deals ENABLE TRIGGER {guard}")

    # -- merchants

    def category(self, commission: str = "0.04") -> str:
        code = unique("c")
        self.merchants.SetCategory(merchants_pb2.SetCategoryRequest(code=code, commission=commission))
        return code

    @cache  # noqa: B019  a desk lives as long as its module's tests
    def _shared_category(self) -> str:
        return self.category()

    def shop(self, currency: str, **changes: Any) -> Shop:
        """A merchant that may use this currency only."""
        values: dict[str, Any] = {
            "name": "Lamp shop",
            "owner_email": f"{unique('owner')}@shop.example",
            "category_code": None,
            "client_share": "0.5",
            "active": True,
            "allowed_currencies": [currency],
        } | changes
        if "category_code" not in changes:
            values["category_code"] = self._shared_category()
        merchant = self.merchants.CreateMerchant(merchants_pb2.CreateMerchantRequest(**values)).merchant
        key = self.merchants.CreateApiKey(
            merchants_pb2.CreateApiKeyRequest(merchant_id=merchant.merchant_id, name="test")
        )
        return Shop(
            url=self.stack.url,
            merchant_id=merchant.merchant_id,
            owner_email=merchant.owner_email,
            key_id=key.key_id,
            api_key=key.api_key,
            secret=key.secret,
            currency=currency,
        )

    def open_shop(self, currency: str, **changes: Any) -> Shop:
        """The same, once invoices has learnt of the currency and its method, which takes a moment."""
        shop = self.shop(currency, **changes)

        def sells() -> bool:
            response = shop.post("/api/v1/create-invoice", json=shop.body())
            if response.status_code == 201:
                self.cancel(response.json()["invoice_id"])
            return response.status_code == 201

        settled(sells, f"invoices in {currency}")
        return shop

    # -- invoices and what follows from them

    def cancel(self, invoice_id: str) -> None:
        self.invoices.CancelInvoice(invoices_pb2.CancelInvoiceRequest(invoice_id=invoice_id))

    def choose(self, invoice_id: str, method: str) -> invoices_pb2.Deal:
        request = invoices_pb2.SelectPaymentMethodRequest(invoice_id=invoice_id, method_code=method)
        return self.checkout.SelectPaymentMethod(request).invoice.deal

    def mark_paid(self, invoice_id: str, method: str, *, sender_name: str = "") -> invoices_pb2.Deal:
        deal = self.choose(invoice_id, method)
        request = invoices_pb2.MarkPaidRequest(
            invoice_id=invoice_id, deal_id=deal.deal_id, sender_name=sender_name
        )
        self.checkout.MarkPaid(request)
        return deal

    def confirm(self, invoice_id: str, method: str) -> None:
        deal = self.mark_paid(invoice_id, method)
        self.deals.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal.deal_id))

    def accept_part(self, deal_id: str, received: str) -> None:
        """Less came than was asked for, and two operators accept it."""
        self.deals.OpenAppeal(invoices_pb2.OpenAppealRequest(deal_id=deal_id))
        lower = invoices_pb2.ResolveAppealRequest(deal_id=deal_id, received_amount=received)
        self.by_two(lambda: self.deals.ResolveAppeal(lower))

    def available(self, shop: Shop) -> str:
        request = withdrawals_pb2.GetBalanceRequest(merchant_id=shop.merchant_id)
        return self.withdrawals.GetBalance(request).available


def settled(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, what, timeout_seconds=SETTLE_SECONDS)


def code_of(response: requests.Response) -> str:
    """`error.code`, of an envelope that has all it must have."""
    body = response.json()
    assert body["successful"] is False
    assert body["request_id"] == response.headers["X-Request-Id"]
    assert set(body) == {"successful", "request_id", "error"}
    assert body["error"]["message"]
    assert isinstance(body["error"]["details"], dict | list)
    code: str = body["error"]["code"]
    return code
