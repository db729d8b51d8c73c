"""The operator's queue: deals marked paid in the order in which they become appeals, found by each thing that a bank
statement shows, and with the steps that others took meanwhile.
"""

from typing import Any

from services.invoices.domain.states import DealStatus
from services.invoices.models import Deal
from services.invoices.operations import cases, checkout, desk, requisites
from tests.invoices.conftest import World
from tests.support.acting import ANN, acting, refusal


def marked(world: World, *, sender: str = "", **changes: Any) -> Deal:
    """A deal that is marked paid a minute after the one before."""
    deal = world.with_deal(**changes)
    world.clock.advance(minutes=1)
    checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id=str(deal.id), sender_name=sender)
    return deal


def queue(world: World, **wanted: Any) -> list[Any]:
    found = desk.list_deals(world.deps, **{"limit": 50, "marked_paid": True} | wanted)
    return [row.deal.id for row in found.deals]


def test_the_queue_has_the_deals_marked_paid_and_the_longest_waiting_first(world: World) -> None:
    late = world.with_deal()
    first, second = marked(world), marked(world)
    world.clock.advance(minutes=1)
    checkout.mark_paid(world.deps, invoice_id=str(late.invoice_id), deal_id=str(late.id))
    world.with_deal()
    appeal = marked(world)
    desk.open_appeal(world.deps, deal_id=str(appeal.id), note="")
    assert queue(world) == [first.id, second.id, late.id]
    assert queue(world, after_deal_id=str(first.id)) == [second.id, late.id]
    desk.confirm_deal(world.deps, deal_id=str(first.id))
    assert queue(world, after_deal_id=str(first.id)) == [second.id, late.id], (
        "its place outlives its decision"
    )
    never_marked = str(world.with_deal().id)
    assert refusal(queue, world, after_deal_id=never_marked).reason == "DEAL_NOT_FOUND"


def test_a_deal_is_found_by_each_thing_on_the_bank_statement(world: World) -> None:
    deal = marked(world, amount="150.00", sender="Zoë Muster", customer_id="kim", external_id="order-kim")
    other = marked(world, amount="170.00")
    listed = desk.get_deal(world.deps, deal_id=str(deal.id)).listed
    for wanted in (
        {"account": listed.account.replace(" ", "").lower()},
        {"amount_from": "153.75", "amount_to": "153.75"},
        {"sender_name": "muster"},
        {"reference": listed.deal.reference.lower()},
        {"customer_id": "kim"},
        {"external_id": "order-kim"},
    ):
        assert queue(world, **wanted) == [deal.id], wanted
    assert queue(world, deal_ids=[str(other.id)]) == [other.id]
    assert queue(world, amount_from="153.76") == [other.id]
    assert queue(world, currency_code="EUR", method_code="card_eur") == [deal.id, other.id]
    assert queue(world, currency_code="JPY") == []


def test_open_deals_have_an_order_of_amounts_in_each_currency_and_pages_go_on_in_it(world: World) -> None:
    deals = [marked(world, amount=amount) for amount in ("150.00", "20.00", "150.00", "1000.00")]
    order = [deals[1].id, *sorted([deals[0].id, deals[2].id]), deals[3].id]
    for oldest_first, expected in ((True, order), (False, order[::-1])):
        of: dict[str, Any] = {"by_amount": True, "oldest_first": oldest_first}
        assert queue(world, **of) == expected
        seen: list[Any] = []
        while page := queue(world, limit=1, after_deal_id=str(seen[-1]) if seen else "", **of):
            seen += page
        assert seen == expected
    of_status = desk.list_deals(world.deps, limit=0, status=DealStatus.PENDING, by_amount=True).deals
    assert [row.deal.id for row in of_status] == order[::-1]
    assert refusal(desk.list_deals, world.deps, limit=0, by_amount=True).metadata["field"] == "by_amount"


def test_the_states_of_deals_name_the_author_of_the_newest_step(world: World) -> None:
    waiting, decided = marked(world), marked(world)
    acting(ANN, lambda: desk.confirm_deal(world.deps, deal_id=str(decided.id)))
    ids = [str(waiting.id), str(decided.id), "0197b0f4-0000-7000-8000-000000000000"]
    states = {row.id: row for row in desk.list_deal_states(world.deps, deal_ids=ids)}
    assert {id: row.sub_status for id, row in states.items()} == {
        waiting.id: "awaiting_confirmation",
        decided.id: "successfully_paid",
    }
    assert (states[waiting.id].actor, states[decided.id].actor) == ("customer", ANN.name)
    assert states[decided.id].at == world.clock.now()


def test_a_deal_comes_with_the_open_deals_of_its_account_nearest_amounts_first(world: World) -> None:
    for row in requisites.list_requisites(world.deps, method_code="card_eur")[1:]:
        requisites.disable_requisite(world.deps, requisite_id=str(row.id))
    deal = marked(world, amount="200.00")
    far, near, ended = (world.with_deal(amount=amount) for amount in ("120.00", "201.00", "200.50"))
    checkout.cancel_checkout(world.deps, invoice_id=str(ended.invoice_id))
    story = desk.get_deal(world.deps, deal_id=str(deal.id))
    assert [row.id for row in story.near] == [near.id, far.id]


def test_cases_come_with_their_deals_oldest_first_and_by_merchant(world: World) -> None:
    ended = [world.with_deal(), world.with_deal()]
    for deal in ended:
        checkout.cancel_checkout(world.deps, invoice_id=str(deal.invoice_id))
        cases.open_case(world.deps, invoice_id=str(deal.invoice_id), note="", picture=None)
    merchant = world.merchant.merchant_id
    rows = cases.list_cases(
        world.deps, open_only=True, limit=10, oldest_first=True, merchant_id=merchant
    ).rows
    assert [row.listed.deal.id for row in rows] == [deal.id for deal in ended]
    after = rows[0].case.number
    found = cases.list_cases(world.deps, open_only=True, limit=10, oldest_first=True, after_number=after)
    (row,) = found.rows
    assert row.listed.deal.id == ended[1].id
    other = str(world.with_deal().id)
    assert not cases.list_cases(world.deps, open_only=True, limit=10, merchant_id=other).rows
