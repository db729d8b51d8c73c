"""Downward adjustments: a second person approves them, and there is no way around it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fiatgate.approvals.v1 import approvals_pb2
from kit.base.money import fiat_text
from services.invoices.models import Deal
from services.invoices.operations import desk, reading
from services.invoices.store.finding import SEARCHES
from tests.invoices.conftest import World
from tests.invoices.test_books import checked
from tests.support.acting import ANN, BEN, CID, acting, refusal, requested

REJECTED = approvals_pb2.APPROVAL_STATE_REJECTED


def in_appeal(world: World) -> Deal:
    deal = world.with_deal(amount="100.00")
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="")
    return deal


def adjust(world: World, deal: Deal, amount: str = "46") -> Callable[[], Any]:
    return partial(desk.resolve_adjusted, world.deps, deal_id=str(deal.id), amount=amount, note="46 came")


def state(world: World, deal: Deal) -> str:
    return desk.get_deal(world.deps, deal_id=str(deal.id)).deal.sub_status


def test_an_adjustment_is_requested_and_credited_when_another_person_approves(world: World) -> None:
    deal = in_appeal(world)
    asked = requested(ANN, adjust(world, deal))
    assert state(world, deal) == "opened_by_operator"
    (listed,) = world.approvals.of(f"deal:{deal.id}")
    assert listed.note == "46 came"
    assert listed.summary == (
        "End the appeal with 46.00 EUR paid instead of 100.00, "
        f"which credits 48.750000 USDT to merchant {deal.merchant_id}"
    )
    assert refusal(lambda: world.approvals.approve(ANN, asked)).reason == "OTHER_PERSON_REQUIRED"
    world.approvals.approve(BEN, asked)
    story = desk.get_deal(world.deps, deal_id=str(deal.id))
    assert (story.deal.sub_status, str(story.deal.merchant_usdt)) == (
        "completed_with_adjustment",
        "48.750000",
    )
    assert (story.history[-1].actor, story.history[-1].note) == ("ben@example.com", "46 came")


def test_the_amount_of_the_statement_counts_as_the_part_of_the_order_that_it_pays_for(world: World) -> None:
    """The customer was told to send 102.50 for an order of 100.00. An order of 96.00 would cost 98.40."""
    deal = in_appeal(world)
    id = str(deal.id)
    ask = partial(desk.resolve_adjusted, world.deps, deal_id=id, received="98.41", note="")
    means = desk.check_adjustment(world.deps, deal_id=id, received="98.41")
    assert (str(means.part), str(means.credit)) == ("96.00", "101.739130")
    asked = requested(ANN, ask)
    (listed,) = world.approvals.of(f"deal:{id}")
    assert listed.summary == (
        "End the appeal with 98.41 EUR received of 102.50: it counts as 96.00 paid of the order's 100.00, "
        f"which credits 101.739130 USDT to merchant {deal.merchant_id}"
    )
    world.approvals.approve(BEN, asked)
    story = desk.get_deal(world.deps, deal_id=id)
    assert (story.deal.adjusted_amount, story.deal.merchant_usdt) == (means.part, means.credit)
    told = story.deal.amount_to_send
    assert (fiat_text(told), fiat_text(story.deal.amount_fiat)) == ("102.50", "98.41")
    assert [each for page in checked(world.deps.db, "deals") for each in page.problems] == []
    with world.deps.db.autocommit() as connection:
        found = {each.id for search in SEARCHES for each in search(connection, "102.50", 100)}
    assert id in found, "the customer's receipt has this amount"
    invoice_story = reading.get_invoice_story(world.deps, invoice_id=str(deal.invoice_id))
    (act,) = (each for each in invoice_story.acts if each.act == "deal.adjust")
    assert ["received_amount", "", "98.41"] in [[*each] for each in act.changes]


@pytest.mark.parametrize("received", ["102.50", "110", "0", "0.01", "50.001"])
def test_an_amount_of_the_statement_is_below_the_one_to_send_and_pays_for_something(
    world: World, received: str
) -> None:
    deal = in_appeal(world)
    check = partial(desk.check_adjustment, world.deps, deal_id=str(deal.id), received=received)
    assert refusal(check).reason == "ADJUSTMENT_INVALID"


def test_one_person_resolves_as_paid_and_that_ends_the_request(world: World) -> None:
    deal = in_appeal(world)
    asked = requested(ANN, adjust(world, deal))
    acting(CID, lambda: desk.resolve_as_paid(world.deps, deal_id=str(deal.id), note=""))
    (closed,) = world.approvals.of(f"deal:{deal.id}")
    assert (closed.state, closed.decision_note) == (REJECTED, "The deal became successfully_paid")
    assert refusal(lambda: world.approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"
    assert state(world, deal) == "successfully_paid"


def test_what_can_not_be_adjusted_is_not_requested(world: World) -> None:
    deal = world.with_deal(amount="100.00")
    assert refusal(adjust(world, deal)).reason == "DEAL_STATE_CONFLICT"
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="")
    assert refusal(adjust(world, deal, "100")).reason == "ADJUSTMENT_INVALID"
    assert world.approvals.of(f"deal:{deal.id}") == []


def test_a_deal_has_one_request_and_another_amount_is_refused(world: World) -> None:
    deal = in_appeal(world)
    asked = requested(ANN, adjust(world, deal))
    assert requested(BEN, adjust(world, deal, "46.00")) == asked
    assert refusal(adjust(world, deal, "47")).reason == "APPROVAL_STATE_CONFLICT"
    world.approvals.reject(BEN, asked)
    world.approvals.approve(BEN, requested(ANN, adjust(world, deal, "47")))
    assert state(world, deal) == "completed_with_adjustment"


def test_switched_off_one_person_is_enough(world: World) -> None:
    deal = in_appeal(world)
    off = replace(world.deps, settings=world.deps.settings.model_copy(update={"four_eyes": False}))
    assert desk.resolve_adjusted(off, deal_id=str(deal.id), amount="46", note="").adjusted_amount is not None
