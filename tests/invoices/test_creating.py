"""Create an invoice: every refusal, in the promised order, and many requests at once."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from fiatgate.merchants.v1 import merchants_pb2
from kit.rpc.errors import Refused
from services.invoices.clients import CatalogClient
from services.invoices.operations import checkout, creating, desk, reading, requisites, switch
from services.invoices.store.merchant_lists import Page
from tests.invoices.conftest import World, with_settings
from tests.support.acting import refusal


def merchant_like(world: World, **changes: Any) -> merchants_pb2.Merchant:
    copy: Any = merchants_pb2.Merchant()
    copy.CopyFrom(world.merchant)
    for name, value in changes.items():
        if value is None:
            copy.ClearField(name)
        elif isinstance(value, list):
            copy.ClearField(name)
            getattr(copy, name).extend(value)
        else:
            setattr(copy, name, value)
    changed: merchants_pb2.Merchant = copy
    return changed


def test_a_new_invoice_is_pending_and_can_be_read_back(world: World) -> None:
    new = world.create(amount="100.5", purpose="Two books", external_id="a/b %?# ü")
    view = reading.get_invoice(world.deps, merchant_id=world.merchant.merchant_id, invoice_ref="a/b %?# ü")
    assert view.id == new.id
    assert (str(view.amount), view.status, view.purpose) == ("100.50", "pending", "Two books")
    assert view.expires_at - view.created_at == timedelta(seconds=1800)
    assert view.deal is None


def test_urls_fall_back_to_the_merchants_defaults_one_by_one(world: World) -> None:
    new = world.create(success_url="https://shop.example/other")
    assert new.callback_url == "https://shop.example/hook"
    assert new.success_url == "https://shop.example/other"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"amount": "100.555"}, "VALIDATION_ERROR"),
        ({"amount": "100.5", "currency_code": "JPY"}, "VALIDATION_ERROR"),
        ({"amount": "9" * 39}, "AMOUNT_ABOVE_MAX"),
        ({"currency_code": "XXX"}, "CURRENCY_INVALID"),
        ({"currency_code": "GBP"}, "CURRENCY_INVALID"),
        ({"amount": "0"}, "AMOUNT_BELOW_MIN"),
        ({"amount": "-5"}, "AMOUNT_BELOW_MIN"),
        ({"amount": "9.99"}, "AMOUNT_BELOW_MIN"),
        ({"amount": "100000.01"}, "AMOUNT_ABOVE_MAX"),
        ({"amount": "10"}, "PAYMENT_METHOD_NOT_FOUND"),
        ({"amount": "5000.01"}, "PAYMENT_METHOD_NOT_FOUND"),
        ({"amount": "1000", "currency_code": "JPY"}, "NO_AVAILABLE_REQUISITES"),
    ],
)
def test_each_refusal_has_its_reason_and_leaves_nothing(
    world: World, changes: dict[str, Any], reason: str
) -> None:
    assert refusal(world.create, **changes).reason == reason
    assert refusal(listed, world).reason == "INVOICES_NOT_FOUND"


def listed(world: World) -> Page:
    return reading.list_invoices(
        world.deps,
        merchant_id=world.merchant.merchant_id,
        page=1,
        per_page=20,
        status=None,
        currency_code=None,
        ascending=False,
    )


def test_the_refusals_come_in_the_promised_order(world: World) -> None:
    """Everything is wrong at first; each step mends what was named, so that the next one shows."""
    customer, external = "one-customer", "taken"
    world = with_settings(world, customer_limit=1)
    world.create(external_id=external, customer_id="another")
    world.create(external_id="theirs", customer_id=customer)
    switch.set_deals_system(world.deps, enabled=False)
    wrong: dict[str, Any] = {
        "amount": "0.5",
        "currency_code": "GBP",
        "external_id": external,
        "customer_id": customer,
        "merchant": merchant_like(world, callback_url=None),
    }
    seen = []

    def step() -> str:
        seen.append(refusal(world.create, **wrong).reason)
        return seen[-1]

    step()
    switch.set_deals_system(world.deps, enabled=True)
    step()
    wrong["currency_code"] = "EUR"
    missing = refusal(world.create, **wrong)
    assert missing.metadata["fields"] == "callback_url"
    step()
    wrong["merchant"] = world.merchant
    step()
    wrong["external_id"] = "fresh"
    step()
    wrong["amount"] = "12"
    step()
    wrong["amount"] = "100"
    step()
    pending_id = refusal(world.create, **wrong).metadata["invoice_id"]
    checkout.cancel_checkout(world.deps, invoice_id=pending_id)
    step()
    world.clock.advance(minutes=61)
    for requisite in requisites.list_requisites(world.deps, method_code=""):
        requisites.disable_requisite(world.deps, requisite_id=str(requisite.id))
    step()
    assert seen == [
        "DEALS_SYSTEM_DISABLED",
        "CURRENCY_INVALID",
        "MISSING_REQUIRED_URLS",
        "DUPLICATE_EXTERNAL_ID",
        "AMOUNT_BELOW_MIN",
        "PAYMENT_METHOD_NOT_FOUND",
        "PENDING_INVOICE_EXISTS",
        "CUSTOMER_RATE_LIMIT",
        "NO_AVAILABLE_REQUISITES",
    ]


def test_a_duplicate_tells_which_invoice_has_the_external_id(world: World) -> None:
    first = world.create(external_id="order-x")
    refused = refusal(world.create, external_id="order-x")
    assert refused.reason == "DUPLICATE_EXTERNAL_ID"
    amount = {"amount": f"{first.amount:.2f}", "currency": first.currency_code}
    assert refused.metadata == {"invoice_id": str(first.id), "status": "pending"} | amount


def test_two_merchants_may_use_the_same_external_id(world: World) -> None:
    world.create(external_id="order-x")
    other = merchant_like(world, merchant_id="0197a000-0000-7000-8000-000000000001")
    assert world.create(external_id="order-x", merchant=other)


def test_the_limit_counts_unpaid_invoices_of_the_window_and_says_when_to_come_back(world: World) -> None:
    started = world.clock.now()
    for _ in range(5):
        new = world.create(customer_id="eager")
        checkout.cancel_checkout(world.deps, invoice_id=str(new.id))
        world.clock.advance(minutes=1)
    refused = refusal(world.create, customer_id="eager")
    assert refused.reason == "CUSTOMER_RATE_LIMIT"
    assert refused.metadata == {
        "window_minutes": "60",
        "limit": "5",
        "next_allowed_at": (started + timedelta(minutes=60)).isoformat(),
        "customer_id": "eager",
    }
    world.clock.set(started + timedelta(minutes=60))
    assert world.create(customer_id="eager")


def test_paid_invoices_do_not_count_against_the_customer(world: World) -> None:
    for _ in range(6):
        deal = world.with_deal(customer_id="regular")
        desk.confirm_deal(world.deps, deal_id=str(deal.id))
    assert world.create(customer_id="regular")


def test_a_pending_invoice_whose_time_is_over_does_not_hold_its_customer_up(world: World) -> None:
    first = world.create(customer_id="slow")
    world.clock.advance(seconds=1800)
    second = world.create(customer_id="slow")
    assert second.id != first.id
    assert [fact.event_type for fact in world.announced(first.id)] == ["invoice.expired"]


def test_only_the_merchants_own_currencies_and_methods_count(world: World) -> None:
    only_jpy = merchant_like(world, allowed_currencies=["JPY"])
    assert refusal(world.create, merchant=only_jpy).reason == "CURRENCY_INVALID"
    only_bank = merchant_like(world, allowed_methods=["bank_jpy"])
    assert refusal(world.create, merchant=only_bank).reason == "PAYMENT_METHOD_NOT_FOUND"


def test_fifty_creates_with_one_external_id_at_once_make_one_invoice(world: World) -> None:
    outcomes = in_parallel(50, lambda number: world.create(external_id="same", customer_id=f"c{number}"))
    assert outcomes == {"created": 1, "DUPLICATE_EXTERNAL_ID": 49}


def test_fifty_creates_for_one_customer_at_once_leave_one_pending(world: World) -> None:
    outcomes = in_parallel(50, lambda number: world.create(customer_id="same", external_id=f"o{number}"))
    assert outcomes == {"created": 1, "PENDING_INVOICE_EXISTS": 49}
    with world.deps.db.autocommit() as connection:
        assert connection.execute(text("SELECT count(*) FROM invoices")).scalar_one() == 1


def in_parallel(count: int, call: Callable[[int], Any]) -> dict[str, int]:
    def outcome(number: int) -> str:
        try:
            call(number)
        except Refused as refused:
            return refused.reason
        return "created"

    with ThreadPoolExecutor(25) as threads:
        return dict(Counter(threads.map(outcome, range(count))))


def test_nothing_is_sold_when_the_catalog_was_never_seen(world: World) -> None:
    blind = with_settings(world)
    deps = replace(blind.deps, catalog=CatalogClient("127.0.0.1:1"))  # nobody listens there
    refused = refusal(
        creating.create_invoice,
        deps,
        merchant=world.merchant,
        key_id=world.key_id,
        amount="100",
        currency_code="EUR",
        customer_id="c",
        external_id="e",
        purpose=None,
        callback_url=None,
        success_url=None,
        fail_url=None,
    )
    assert refused.reason == "DB_UNAVAILABLE"
