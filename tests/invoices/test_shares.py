"""How much of a payment method one merchant may hold (services/invoices/store/shares.py)."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.invoices import workers
from services.invoices.models import Deal
from services.invoices.operations import checkout, desk, merchant_methods, requisites, switch, timers
from services.invoices.store.opening import queue_for_requisites
from tests.invoices.conftest import ACCOUNTS, World, make_merchant, waiting_for_a_lock, with_settings
from tests.invoices.test_creating import merchant_like
from tests.support.acting import acting, refusal

PLACES = ACCOUNTS * 10  # of each method
SHARE = 24  # 80 % of them


def of_another(world: World) -> World:
    """The same world as a merchant sees it that has nothing open."""
    merchant, key_id = make_merchant(world.merchants)
    return replace(world, merchant=merchant, key_id=key_id)


def take(world: World, method: str = "card_eur", **changes: Any) -> str:
    """Opens a deal of a new customer: "taken", or why not."""
    try:
        choose(world, world.create(**changes).id, method)
    except Refused as refused:
        return refused.reason
    return "taken"


def choose(world: World, invoice_id: Any, method: str = "card_eur") -> Deal:
    checkout.select_payment_method(world.deps, invoice_id=str(invoice_id), method_code=method)
    return world.newest_deal(invoice_id)


def take_until_refused(world: World, method: str = "card_eur", **changes: Any) -> int:
    """How many places the merchant gets."""
    for number in range(PLACES + 1):
        if take(world, method, **changes) != "taken":
            return number
    raise AssertionError("more places were taken than there are")


def only_account(world: World, *, max_deals: int) -> None:
    for row in requisites.list_requisites(world.deps, method_code="card_eur"):
        requisites.disable_requisite(world.deps, requisite_id=str(row.id))
    requisites.add_requisite(
        world.deps, method_code="card_eur", holder="H", account="1", bank=None, max_deals=max_deals
    )


def outcomes(world: World, invoice_ids: list[Any]) -> Counter[str]:
    """What comes of choosing a card for each of them, all at once."""

    def chosen(invoice_id: Any) -> str:
        try:
            choose(world, invoice_id)
        except Refused as refused:
            return refused.reason
        return "taken"

    with ThreadPoolExecutor(50) as threads:
        return Counter(threads.map(chosen, invoice_ids))


# -- places


def test_fifty_customers_of_one_merchant_at_once_get_its_share_and_another_merchant_the_rest(
    world: World,
) -> None:
    invoice_ids = [world.create().id for _ in range(50)]
    assert outcomes(world, invoice_ids) == {"taken": SHARE, "NO_AVAILABLE_REQUISITES": 50 - SHARE}
    assert take(of_another(world)) == "taken"


def test_overdue_deals_that_became_appeals_hold_the_share_until_they_are_rejected(world: World) -> None:
    deals = [world.with_deal() for _ in range(SHARE)]
    for deal in deals:
        checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id=str(deal.id))
    world.clock.advance(minutes=world.deps.settings.confirmation_minutes)
    while timers.open_overdue_appeals(world.deps):
        pass
    assert {world.newest_deal(deal.invoice_id).status for deal in deals} == {"appeal"}
    assert take(world) == "NO_AVAILABLE_REQUISITES"
    assert take(of_another(world)) == "taken"
    desk.resolve_as_rejected(world.deps, deal_id=str(deals[0].id), note="")
    desk.resolve_as_rejected(world.deps, deal_id=str(deals[1].id), note="")
    assert take(world) == "taken"


def test_each_further_merchant_gets_its_share_of_what_the_others_leave_and_the_first_place_in_any_case(
    world: World,
) -> None:
    got = [take_until_refused(each) for each in (world, *(of_another(world) for _ in range(4)))]
    assert got == [SHARE, 4, 1, 1, 0]
    assert sum(got) == PLACES


def test_any_merchant_may_take_the_only_place_of_a_method(world: World) -> None:
    only_account(world, max_deals=1)
    assert take(world) == "taken"
    assert take(of_another(world)) == "NO_AVAILABLE_REQUISITES"


def test_without_a_limit_one_merchant_may_hold_all_places(world: World) -> None:
    world = with_settings(world, method_share_percent=100)
    assert take_until_refused(world) == PLACES


def test_deals_on_a_disabled_account_take_nothing_of_the_share_of_the_others(world: World) -> None:
    assert take_until_refused(world) == SHARE
    only_account(world, max_deals=10)
    assert take_until_refused(world) == 8


def test_an_account_is_disabled_between_deals_and_never_while_one_is_opened(world: World) -> None:
    """The statement that opens a deal chooses one account; it would find none if that one went meanwhile."""
    (first, *_) = requisites.list_requisites(world.deps, method_code="card_eur")
    with ThreadPoolExecutor(1) as threads:
        with world.deps.db.transaction() as tx:
            queue_for_requisites(tx, ["card_eur"])
            tx.execute(text("SELECT"))  # the lock goes to the server with the next statement
            disabled = threads.submit(requisites.disable_requisite, world.deps, requisite_id=str(first.id))
            wait_until(
                lambda: disabled.done() or waiting_for_a_lock(world) > 0, "it to wait", timeout_seconds=15
            )
            assert not disabled.done()
        assert disabled.result().enabled is False


def test_changing_the_method_frees_a_place_of_the_share(world: World) -> None:
    deals = [world.with_deal() for _ in range(SHARE)]
    new = world.create()
    assert refusal(choose, world, new.id).reason == "NO_AVAILABLE_REQUISITES"
    choose(world, deals[0].invoice_id, "sepa_eur")
    choose(world, deals[1].invoice_id, "sepa_eur")
    assert choose(world, new.id).status == "pending"


def test_accounts_fill_evenly_however_a_merchant_opens_and_cancels(world: World) -> None:
    """A merchant that could fill one account after the other would leave others few accounts for one amount."""
    (first, *_) = (row.id for row in requisites.list_requisites(world.deps, method_code="card_eur"))
    for _ in range(SHARE):
        world.clock.advance(seconds=1)
        deal = world.with_deal()
        if deal.requisite_id == first:
            checkout.cancel_checkout(world.deps, invoice_id=str(deal.invoice_id))
    loads = [row.open_deals for row in requisites.list_requisites(world.deps, method_code="card_eur")]
    assert sum(loads) < SHARE
    assert max(loads) - min(loads) <= 1


# -- accounts for one amount


def test_one_merchant_can_not_block_a_price_for_the_others(world: World) -> None:
    invoice_ids = [world.create(amount="499.00").id for _ in range(50)]
    assert outcomes(world, invoice_ids) == {"taken": ACCOUNTS - 1, "NO_AVAILABLE_REQUISITES": 51 - ACCOUNTS}
    assert take(world, amount="499.01") == "taken"
    other = of_another(world)
    assert take(other, amount="499.00") == "taken"
    assert take(other, amount="499.00") == "NO_AVAILABLE_REQUISITES"


def test_the_only_account_may_take_any_amount(world: World) -> None:
    only_account(world, max_deals=10)
    assert take(world, amount="499.00") == "taken"


# -- seen by operators


def test_the_load_of_each_method_is_measured_with_the_largest_merchants_part(world: World) -> None:
    assert take_until_refused(world) == SHARE
    assert take(of_another(world)) == "taken"
    assert loads(world) == {
        ("method_places", "card_eur"): PLACES,
        ("method_places_taken", "card_eur"): SHARE + 1,
        ("method_places_of_one_merchant", "card_eur"): SHARE,
        ("method_places", "sepa_eur"): PLACES,
        ("method_places_taken", "sepa_eur"): 0,
        ("method_places_of_one_merchant", "sepa_eur"): 0,
        ("methods_crowded", ""): 1,
    }
    only_account(world, max_deals=5)
    assert loads(world)["method_places", "card_eur"] == 5
    assert loads(world)["methods_crowded", ""] == 0


@pytest.mark.parametrize(("share_percent", "got", "crowded"), [(80, 2, 1), (100, 3, 1), (50, 1, 1)])
def test_a_method_is_crowded_where_one_merchant_holds_its_share(
    world: World, share_percent: int, got: int, crowded: int
) -> None:
    world = with_settings(world, method_share_percent=share_percent)
    only_account(world, max_deals=3)
    assert loads(world)["methods_crowded", ""] == 0
    assert take_until_refused(world) == got
    assert loads(world)["methods_crowded", ""] == crowded


def test_a_method_with_room_for_its_merchant_is_not_crowded(world: World) -> None:
    only_account(world, max_deals=10)
    assert take(world) == "taken"
    assert loads(world)["methods_crowded", ""] == 0


def test_an_operator_reads_why_no_account_was_free(world: World) -> None:
    def why(each: World, **changes: Any) -> str:
        with capture_logs() as lines:
            refused = refusal(choose, each, each.create(**changes).id)
        (line,) = (line for line in lines if line["event"] == "accounts_exhausted")
        cause = line["causes"]["card_eur"]
        assert refused.metadata == {"causes": f"card_eur: {cause}"}
        return str(cause)

    setting = "FIATGATE_METHOD_SHARE_PERCENT=80"
    assert [take(world, amount="499.00") for _ in range(ACCOUNTS - 1)] == ["taken"] * (ACCOUNTS - 1)
    assert why(world, amount="499.00") == (
        f"the merchant holds its share of the accounts for this amount: {ACCOUNTS - 1} of {ACCOUNTS}, {setting}"
    )
    other = of_another(world)
    assert take(other, amount="499.00") == "taken"
    assert why(other, amount="499.00") == "every account with a free place has an open deal of this amount"
    only_account(world, max_deals=2)
    assert take(world) == "taken"
    assert why(world) == f"the merchant holds its share of the places: 1 of 2, {setting}"
    member = Actor(kind="person", name="ida@example.com", surface="dashboard", person_id=new_id())
    new = world.create()
    assert acting(member, lambda: refusal(choose, world, new.id)).metadata == {}, "causes are for operators"
    assert take(other) == "taken"
    assert why(other) == "all 2 places are taken"
    for row in requisites.list_requisites(world.deps, method_code="card_eur"):
        requisites.disable_requisite(world.deps, requisite_id=str(row.id))
    assert why(world) == "no account is in use"


def test_a_method_of_one_place_is_not_reported_because_somebody_pays(world: World) -> None:
    only_account(world, max_deals=1)
    assert take(world) == "taken"
    assert loads(world)["method_places_taken", "card_eur"] == loads(world)["method_places", "card_eur"] == 1
    assert loads(world)["methods_crowded", ""] == 0


def loads(world: World) -> dict[tuple[str, str], float]:
    gauges = workers.gauges(world.deps)
    return {(each.name, each.label[1]): each.value for each in gauges if each.name.startswith("method")}


# -- one customer


def test_one_customer_has_one_open_deal_at_a_merchant_even_in_appeal(world: World) -> None:
    deal = world.with_deal(customer_id="one")
    checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id=str(deal.id))
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="")
    assert refusal(world.create, customer_id="one").reason == "PENDING_INVOICE_EXISTS"


# -- at create


def test_no_invoice_is_made_for_an_amount_that_no_account_can_take(world: World) -> None:
    everything = with_settings(world, method_share_percent=100)
    for method in ("card_eur", "sepa_eur"):
        for _ in range(ACCOUNTS):
            assert take(everything, method, amount="499.00") == "taken"
    assert refusal(everything.create, amount="499.00").reason == "NO_AVAILABLE_REQUISITES"
    assert everything.create(amount="499.01")
    # At this merchant the customer pays no commission, so the same price is another amount.
    assert everything.create(amount="499.00", merchant=merchant_like(world, client_share="0"))


def test_no_invoice_is_made_for_a_merchant_that_holds_its_share_of_every_method(world: World) -> None:
    assert take_until_refused(world) == SHARE
    assert world.create()
    # Only a method that does not take the amount has places left for this merchant.
    assert refusal(world.create, amount="4500.00").reason == "NO_AVAILABLE_REQUISITES"
    assert of_another(world).create(amount="4500.00")


@pytest.mark.parametrize("changes", [{"category_commission": None}, {"category_commission": "1.5"}])
def test_where_the_commission_is_not_known_a_free_account_is_enough(
    world: World, changes: dict[str, Any]
) -> None:
    """The category's refusal is the quote's, as before."""
    everything = with_settings(world, method_share_percent=100)
    for _ in range(ACCOUNTS):
        assert take(everything, amount="4500.00") == "taken"
    assert refusal(everything.create, amount="4500.00").reason == "NO_AVAILABLE_REQUISITES"
    assert everything.create(amount="4500.00", merchant=merchant_like(world, **changes))


def test_an_amount_is_free_again_once_its_deal_has_ended(world: World) -> None:
    only_account(world, max_deals=10)
    deal = world.with_deal(amount="4500.00")
    assert refusal(world.create, amount="4500.00").reason == "NO_AVAILABLE_REQUISITES"
    desk.confirm_deal(world.deps, deal_id=str(deal.id))
    assert world.create(amount="4500.00")


def test_operators_are_shown_why_a_method_has_no_place_for_a_merchant(world: World) -> None:
    def shown() -> tuple[Sequence[str], dict[str, str], str]:
        found = merchant_methods.list_merchant_methods(world.deps, merchant_id=world.merchant.merchant_id)
        offered = [each.method.method_code for each in found.methods if not each.obstacles]
        return offered, dict(found.no_place), found.refused

    offered, no_place, refused = shown()
    assert "card_eur" in offered
    assert ("card_eur" in no_place, refused) == (False, "")
    only_account(world, max_deals=1)
    assert take(world) == "taken"
    assert shown()[1]["card_eur"] == "all 1 places are taken"
    switch.set_deals_system(world.deps, enabled=False)
    assert shown()[2] == "DEALS_SYSTEM_DISABLED"
    ban = merchants_pb2.BanMerchantRequest(merchant_id=world.merchant.merchant_id)
    world.merchants.BanMerchant(ban)
    assert shown()[2] == "MERCHANT_BLOCKED"
    unban = merchants_pb2.UnbanMerchantRequest(merchant_id=world.merchant.merchant_id)
    world.merchants.UnbanMerchant(unban)
    switch.set_deals_system(world.deps, enabled=True)
