"""The invoices service with the services it calls: real merchants and catalog over gRPC, real databases.

Its clock stands still until a test moves it. The bus is not started: what is announced stays in the outbox, where tests
read it; `test_workers` has the bus.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import pytest
from sqlalchemy import select, text

from fiatgate.catalog.v1 import catalog_pb2, catalog_pb2_grpc
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.audit.decisions import Known
from kit.base.ids import new_id
from kit.rpc.approvals import ApprovalsServicer
from services.catalog import rpc as catalog_rpc
from services.catalog.config import CatalogSettings
from services.catalog.wiring import wire as wire_catalog
from services.identity import rpc as merchants_rpc
from services.identity.config import IdentitySettings
from services.identity.wiring import wire as wire_merchants
from services.invoices.config import InvoicesSettings
from services.invoices.domain.creating import NewInvoice
from services.invoices.models import Deal, Outbox
from services.invoices.operations import checkout, creating, desk, requisites
from services.invoices.rpc import APPROVABLE
from services.invoices.store.decisions import LINK, REQUISITE
from services.invoices.store.views import DealView
from services.invoices.wiring import Deps, wire
from tests.support.acting import ANN, BEN, Approvals, requested
from tests.support.clock import ManualClock
from tests.support.databases import Databases, Snapshot
from tests.support.serving import TEST_MASTER_KEY, connected, serving
from tests.support.signing import SEAL_KEY, SIGNING_KEY

ACCOUNTS = 3  # requisites of each method
PAYMENT_MINUTES = 15
NO_BUS = "nats://127.0.0.1:1"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class World:
    """The service under test and what stands around it. The merchant pays half of 5 %, the client the other half."""

    deps: Deps
    clock: ManualClock
    merchants: merchants_pb2_grpc.MerchantsServiceStub
    catalog: catalog_pb2_grpc.CatalogServiceStub
    merchant: merchants_pb2.Merchant
    key_id: str

    def create(self, **changes: Any) -> NewInvoice:
        """A new invoice of a new customer: 100.00 EUR unless changed."""
        number = next(_numbers)
        values: dict[str, Any] = {
            "merchant": self.merchant,
            "key_id": self.key_id,
            "amount": f"{100 + number}.00",
            "currency_code": "EUR",
            "customer_id": f"customer-{number}",
            "external_id": f"order-{number}",
            "purpose": None,
            "callback_url": None,
            "success_url": None,
            "fail_url": None,
        }
        return creating.create_invoice(self.deps, **(values | changes))

    def with_deal(self, **changes: Any) -> Deal:
        """A new invoice with a deal that waits for the payment."""
        new = self.create(**changes)
        checkout.select_payment_method(self.deps, invoice_id=str(new.id), method_code="card_eur")
        return self.newest_deal(new.id)

    @property
    def approvals(self) -> Approvals:
        return Approvals(ApprovalsServicer("invoices", self.deps, APPROVABLE))

    def adjust(self, deal: Deal, amount: str, note: str = "") -> DealView:
        """Ends the appeal with `amount`: one person requests it, another approves."""
        resolve = partial(desk.resolve_adjusted, self.deps, deal_id=str(deal.id), amount=amount, note=note)
        self.approvals.approve(BEN, requested(ANN, resolve))
        return desk.get_deal(self.deps, deal_id=str(deal.id)).deal

    def newest_deal(self, invoice_id: Any) -> Deal:
        with self.deps.db.transaction() as tx:
            query = (
                select(Deal)
                .where(Deal.invoice_id == invoice_id)
                .order_by(Deal.created_at.desc(), Deal.id.desc())
            )
            return tx.execute(query.limit(1)).scalar_one()

    def announced(self, invoice_id: Any) -> list[pb.InvoiceFinished]:
        """What the outbox says about the invoice."""
        with self.deps.db.transaction() as tx:
            payloads = tx.execute(select(Outbox.payload).order_by(Outbox.id)).scalars().all()
        facts = [pb.InvoiceFinished.FromString(payload) for payload in payloads]
        return [fact for fact in facts if fact.invoice_id == str(invoice_id)]


@dataclass(frozen=True)
class Surroundings:
    """The databases, merchants and catalog that all modules share."""

    identity_address: str
    catalog_address: str
    merchants: merchants_pb2_grpc.MerchantsServiceStub
    catalog: catalog_pb2_grpc.CatalogServiceStub


@pytest.fixture(scope="session")
def database_url(_databases: Databases) -> Callable[[str], str]:
    """All modules share their databases."""
    return cache(_databases.fresh)


@pytest.fixture(scope="session")
def surroundings(database_url: Callable[[str], str]) -> Iterator[Surroundings]:
    with ExitStack() as stack:
        merchants_deps = wire_merchants(
            IdentitySettings(
                seal_keys=(SEAL_KEY,),
                database_url=database_url("identity"),
                bind="127.0.0.1:0",
                desk_url="http://localhost:8081",
                dashboard_url="http://localhost:8082",
                master_keys=(TEST_MASTER_KEY,),
                key_lease_milliseconds=0,
            )
        )
        identity_address = stack.enter_context(serving(merchants_rpc.add_to, merchants_deps))
        catalog_deps = wire_catalog(
            CatalogSettings(
                seal_keys=(SEAL_KEY,),
                database_url=database_url("catalog"),
                bind="127.0.0.1:0",
            )
        )
        catalog_address = stack.enter_context(serving(catalog_rpc.add_to, catalog_deps))
        merchants = merchants_pb2_grpc.MerchantsServiceStub(stack.enter_context(connected(identity_address)))
        catalog = catalog_pb2_grpc.CatalogServiceStub(stack.enter_context(connected(catalog_address)))
        _fill_catalog(catalog)
        yield Surroundings(identity_address, catalog_address, merchants, catalog)
        for each in (merchants_deps.db, catalog_deps.db):
            each.dispose()


@pytest.fixture(scope="session")
def beginning(database_url: Callable[[str], str], surroundings: Surroundings) -> Snapshot:
    """The rows that a test begins with: requisites and their acts."""
    deps = wire(_settings(database_url("invoices"), surroundings, nats_url=NO_BUS), clock=ManualClock())
    for method in ("card_eur", "sepa_eur"):
        for number in range(ACCOUNTS):
            requisites.add_requisite(
                deps,
                method_code=method,
                holder="A. Holder",
                account=f"4000 0000 0000 000{number}",
                bank="First Bank",
                max_deals=10,
            )
    deps.db.dispose()
    return Snapshot(database_url("invoices"))


def _settings(url: str, around: Surroundings, *, nats_url: str) -> InvoicesSettings:
    return InvoicesSettings(
        seal_keys=(SEAL_KEY,),
        database_url=url,
        bind="127.0.0.1:0",
        fact_signing_key=SIGNING_KEY,
        pool_size=30,
        identity_address=around.identity_address,
        catalog_address=around.catalog_address,
        nats_url=nats_url,
    )


@pytest.fixture(scope="module")
def bus_url() -> str:
    """A module that starts the bus gives `nats_url`."""
    return NO_BUS


@pytest.fixture(scope="module")
def module_world(
    database_url: Callable[[str], str], surroundings: Surroundings, beginning: Snapshot, bus_url: str
) -> Iterator[World]:
    clock = ManualClock()
    deps = wire(_settings(database_url("invoices"), surroundings, nats_url=bus_url), clock=clock)
    merchant, key_id = make_merchant(surroundings.merchants)
    yield World(deps, clock, surroundings.merchants, surroundings.catalog, merchant, key_id)
    deps.db.dispose()


@pytest.fixture
def world(module_world: World, beginning: Snapshot) -> World:
    """The module's world with free requisites, no other rows and everything switched on."""
    beginning.restore()
    module_world.clock.set(ManualClock().now())
    deps = module_world.deps
    return replace(
        module_world,
        deps=replace(deps, decided_requisites=Known(deps.db, REQUISITE), decided_links=Known(deps.db, LINK)),
    )


def with_settings(world: World, **changes: Any) -> World:
    """The same world with other settings of invoices."""
    settings = world.deps.settings.model_copy(update=changes)
    return replace(world, deps=replace(world.deps, settings=settings))


def waiting_for_a_lock(world: World) -> int:
    query = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with world.deps.db.autocommit() as connection:
        return int(connection.execute(query).scalar_one())


def make_merchant(merchants: merchants_pb2_grpc.MerchantsServiceStub) -> tuple[merchants_pb2.Merchant, str]:
    merchants.SetCategory(merchants_pb2.SetCategoryRequest(code="shops", commission="0.03"))
    created = merchants.CreateMerchant(
        merchants_pb2.CreateMerchantRequest(
            name="Corner Shop",
            owner_email=f"{new_id()}@example.com",
            category_code="shops",
            client_share="0.5",
            callback_url="https://shop.example/hook",
            success_url="https://shop.example/thanks",
            fail_url="https://shop.example/sorry",
            active=True,
        )
    ).merchant
    key = merchants.CreateApiKey(
        merchants_pb2.CreateApiKeyRequest(merchant_id=created.merchant_id, name="main")
    )
    return created, key.key_id


def _fill_catalog(catalog: catalog_pb2_grpc.CatalogServiceStub) -> None:
    for code, decimals, enabled in (("EUR", 2, True), ("JPY", 0, True), ("GBP", 2, False)):
        catalog.SetCurrency(
            catalog_pb2.SetCurrencyRequest(
                currency=catalog_pb2.Currency(
                    code=code,
                    name=code,
                    symbol=code,
                    decimals=decimals,
                    min_amount="10",
                    max_amount="100000",
                    markup="0",
                    enabled=enabled,
                )
            )
        )
    for code, currency, most in (
        ("card_eur", "EUR", "5000"),
        ("sepa_eur", "EUR", "4000"),
        ("bank_jpy", "JPY", "50000"),
    ):
        catalog.SetPaymentMethod(
            catalog_pb2.SetPaymentMethodRequest(
                method=catalog_pb2.PaymentMethod(
                    method_code=code,
                    currency_code=currency,
                    name=code,
                    min_sum="20",
                    max_sum=most,
                    payment_minutes=PAYMENT_MINUTES,
                    commission="0.02",
                    active=True,
                )
            )
        )
    catalog.SetRate(catalog_pb2.SetRateRequest(currency_code="EUR", rate="0.92"))
    catalog.SetRate(catalog_pb2.SetRateRequest(currency_code="JPY", rate="150"))
