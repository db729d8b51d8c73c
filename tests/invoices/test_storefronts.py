"""What customers are shown of a merchant may be two seconds old; what becomes of it never is."""

from decimal import Decimal
from uuid import UUID

import pytest

from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.ids import new_id
from services.invoices import clients
from services.invoices.clients import STOREFRONT_SECONDS
from services.invoices.operations import checkout
from services.invoices.operations.checkout import Checkout
from tests.invoices.conftest import World


def merchant(world: World) -> pb.Merchant:
    """A new one; its customers pay the whole commission of 5 %."""
    return world.merchants.CreateMerchant(
        pb.CreateMerchantRequest(
            name="Old name",
            owner_email=f"{new_id()}@example.com",
            category_code="shops",
            client_share="1",
            callback_url="https://shop.example/hook",
            success_url="https://shop.example/thanks",
            fail_url="https://shop.example/sorry",
            active=True,
        )
    ).merchant


def test_a_change_is_shown_soon_and_holds_at_once(world: World) -> None:
    shop = merchant(world)
    invoice_id = str(world.create(merchant=shop, amount="100.00").id)

    def page() -> Checkout:
        return checkout.get_checkout(world.deps, invoice_id=invoice_id)

    assert {offer.amount_fiat for offer in page().offers} == {Decimal("105.00")}
    change = pb.ConfigureMerchantRequest(merchant_id=shop.merchant_id, name="New name", client_share="0")
    world.merchants.ConfigureMerchant(change)
    checkout.select_payment_method(world.deps, invoice_id=invoice_id, method_code="card_eur")
    deal = page().invoice.deal
    assert deal is not None and deal.amount_fiat == Decimal("100.00")
    wait_until(lambda: page().merchant.name == "New name", "the name", timeout_seconds=STOREFRONT_SECONDS + 3)
    assert {offer.amount_fiat for offer in page().offers} == {Decimal("100.00")}


def test_no_more_storefronts_are_kept_than_allowed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "STOREFRONTS_MAX", 2)
    storefronts = clients.Storefronts(world.deps.identity, world.deps.catalog)
    first, *others = (storefronts.of(UUID(merchant(world).merchant_id)) for _ in range(3))
    assert storefronts.of(UUID(others[1].merchant.merchant_id)) is others[1]
    assert storefronts.of(UUID(first.merchant.merchant_id)) is not first
    storefronts.close_all()
    assert storefronts.of(UUID(others[1].merchant.merchant_id)) is not others[1]
