"""The story of one invoice: everything that the service stored about it, in the order of time."""

import uuid
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from console.words.acts import author_of
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from kit.audit import approval_lists
from kit.base.actors import Actor
from kit.base.proto import datetime_from
from kit.rpc.errors import Refused
from services.invoices import rpc
from services.invoices.operations import cases, checkout, desk, reading
from services.invoices.rpc.as_seen import story_as_seen
from services.invoices.rpc.converters import story_to_message
from tests.invoices.conftest import World
from tests.support.acting import ANN, BEN, acting
from tests.support.pictures import PNG
from tests.support.serving import connected, serving


def test_a_story_has_each_step_with_its_author_and_where_the_rate_came_from(world: World) -> None:
    new = world.create()
    started = world.clock.now()
    world.clock.advance(seconds=5)
    checkout.get_checkout(world.deps, invoice_id=str(new.id))
    world.clock.advance(seconds=5)
    checkout.get_checkout(world.deps, invoice_id=str(new.id))
    checkout.select_payment_method(world.deps, invoice_id=str(new.id), method_code="card_eur")
    world.clock.advance(seconds=5)
    deal = checkout.select_payment_method(world.deps, invoice_id=str(new.id), method_code="sepa_eur")[0].deal
    assert deal is not None
    checkout.mark_paid(world.deps, invoice_id=str(new.id), deal_id=str(deal.id), sender_name="Ann Payer")
    checkout.open_customer_appeal(world.deps, invoice_id=str(new.id), note="I paid", picture=PNG)
    acting(ANN, lambda: desk.resolve_as_paid(world.deps, deal_id=str(deal.id), note="Found it"))

    with serving(rpc.add_to, world.deps) as address, connected(address) as channel:
        story = pb_grpc.DealDeskServiceStub(channel).GetInvoiceStory(
            pb.GetInvoiceStoryRequest(invoice_id=str(new.id))
        )

    assert story.invoice.status == pb.INVOICE_STATUS_SUCCESS
    assert datetime_from(story.opened_at) == started + timedelta(seconds=5), "the first opening counts"
    replaced, paid = story.deals
    assert [step.sub_status for step in replaced.history] == ["awaiting_payment", "replaced"]
    assert [(step.sub_status, step.actor, step.note) for step in paid.history] == [
        ("awaiting_payment", "customer", ""),
        ("awaiting_confirmation", "customer", ""),
        ("opened_by_customer", "customer", "I paid"),
        ("successfully_paid", ANN.name, "Found it"),
    ]
    assert paid.requisite.method_code == "sepa_eur"
    assert [proof.kind for proof in paid.proofs] == [pb.PROOF_KIND_APPEAL]
    basis = paid.rate_basis
    assert (basis.origin, basis.source_rate, basis.markup) == (
        catalog_pb2.RATE_ORIGIN_OPERATOR,
        "0.92",
        "0",
    )
    assert [(act.act, act.actor.name) for act in story.acts] == [("deal.resolve", ANN.name)]
    with pytest.raises(Refused, match="INVOICE_NOT_FOUND"):
        reading.get_invoice_story(world.deps, invoice_id=str(deal.id))


@pytest.mark.parametrize("by", ["member", "operator", "program"])
def test_members_read_which_member_canceled_an_unpaid_deal_and_of_operators_no_name(
    world: World, by: str
) -> None:
    member = Actor(
        kind="person",
        name="ida@example.com",
        surface="dashboard",
        person_id=uuid.uuid4(),
        roles=frozenset({"owner"}),
        merchant_id=UUID(world.merchant.merchant_id),
    )
    program = Actor(kind="api", name="gateway", surface="api")
    author = {"member": member, "operator": ANN, "program": program}[by]
    told = {"member": member.name, "operator": ANN.name, "program": "API key"}[by]
    deal = world.with_deal()
    acting(author, lambda: desk.cancel_invoice(world.deps, invoice_id=str(deal.invoice_id)))
    whole = reading.get_invoice_story(world.deps, invoice_id=str(deal.invoice_id))

    def last_step(reader: Actor) -> tuple[str, str]:
        seen = acting(reader, lambda: story_as_seen(story_to_message(whole, "invoices", world.clock.now())))
        return seen.deals[0].history[-1].sub_status, seen.deals[0].history[-1].actor

    assert last_step(BEN) == ("canceled_by_operator", told)
    assert last_step(member) == ("canceled_by_operator", "the operator" if by == "operator" else told)
    (act,) = acting(
        member, lambda: story_as_seen(story_to_message(whole, "invoices", world.clock.now()))
    ).acts
    assert author_of(act) == ("the operator" if by == "operator" else told)


def test_late_money_is_part_of_the_story(world: World) -> None:
    deal = world.with_deal()
    checkout.cancel_checkout(world.deps, invoice_id=str(deal.invoice_id))
    cases.open_case(world.deps, invoice_id=str(deal.invoice_id), note="I paid late", picture=None)
    story = reading.get_invoice_story(world.deps, invoice_id=str(deal.invoice_id))
    assert story.case is not None
    number = story.case.number
    acting(ANN, lambda: cases.resolve_case(world.deps, number=number, outcome="Sent back", ended_as="return"))
    story = reading.get_invoice_story(world.deps, invoice_id=str(deal.invoice_id))
    assert story.case is not None
    assert (story.case.outcome, story.opened_at) == ("Sent back", None)
    assert [act.act for act in story.acts] == ["case.resolve"]


def test_an_opening_is_noted_once_and_for_ever_and_a_page_with_a_deal_notes_none(world: World) -> None:
    deal = world.with_deal()
    checkout.get_checkout(world.deps, invoice_id=str(deal.invoice_id))
    opened = world.create()
    checkout.get_checkout(world.deps, invoice_id=str(opened.id))
    with world.deps.db.autocommit() as connection:
        noted = connection.execute(text("SELECT invoice_id FROM page_openings")).scalars().all()
    assert noted == [opened.id]
    for change in ("UPDATE page_openings SET at = now()", "DELETE FROM page_openings"):
        with (
            pytest.raises(Exception, match=r"permission denied|is refused"),
            world.deps.db.transaction() as tx,
        ):
            tx.execute(text(change))


def test_the_requests_and_decisions_of_two_people_are_acts_of_the_story_and_requests_are_found(
    world: World,
) -> None:
    deal = world.with_deal()
    checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id="")
    checkout.open_customer_appeal(world.deps, invoice_id=str(deal.invoice_id), note="I paid less")
    world.adjust(deal, "50", note="50 came")
    story = reading.get_invoice_story(world.deps, invoice_id=str(deal.invoice_id))
    acts = [(act.act, act.actor_name) for act in story.acts]
    assert acts[0] == ("approval.request", ANN.name)
    assert sorted(acts[1:]) == [("approval.approve", BEN.name), ("deal.adjust", BEN.name)]
    with world.deps.db.autocommit() as connection:
        id = connection.execute(
            text("SELECT id FROM approvals WHERE object = :o"), {"o": f"deal:{deal.id}"}
        ).scalar_one()
        assert [each.id for each in approval_lists.by_id(connection, str(id)[:13], 10)] == [str(id)]
        assert approval_lists.by_id(connection, "1234", 10) == ()
