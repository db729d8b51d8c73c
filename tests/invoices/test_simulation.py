"""Test mode in the service: each step by the rules of its owner, and nothing of it in live mode."""

from typing import Any

import grpc
import pytest
from sqlalchemy import text

from fiatgate.invoices.v1 import simulation_pb2 as pb
from fiatgate.invoices.v1.simulation_pb2_grpc import SimulationServiceStub
from kit.rpc.errors import Refused
from services.invoices import rpc
from services.invoices.operations import simulation
from services.invoices.operations.reading import get_invoice_story
from services.invoices.store.views import InvoiceView
from tests.invoices.conftest import World, with_settings
from tests.support.serving import connected, serving


def steps(world: World, *taken: str, amount: str = "") -> InvoiceView:
    invoice, view = world.create(), None
    for step in taken:
        view = simulation.simulate(
            world.deps,
            merchant_id="",
            invoice_ref=str(invoice.id),
            step=step,
            payment_method_code="",
            amount=amount if step == "resolve" else "",
        )
    assert view is not None
    return view


@pytest.mark.parametrize(
    ("taken", "status", "sub_status"),
    [
        (("expire",), "expired", None),
        (("cancel",), "canceled", None),
        (("select",), "pending", "awaiting_payment"),
        (("select", "cancel"), "canceled", "canceled_by_customer"),
        (("select", "expire"), "expired", "payment_window_expired"),
        (("select", "late"), "expired", "payment_window_expired"),
        (("select", "reject", "late"), "fail", "rejected_by_operator"),
        (("select", "mark-paid", "confirm"), "success", "successfully_paid"),
        (("select", "appeal", "confirm"), "success", "successfully_paid"),
        (("select", "mark-paid", "appeal", "reject"), "fail", "appeal_rejected"),
        (("select", "mark-paid", "resolve"), "success", "successfully_paid"),
    ],
)
def test_steps_lead_where_those_of_people_and_time_do(
    world: World, taken: tuple[str, ...], status: str, sub_status: str | None
) -> None:
    view = steps(world, *taken)
    assert (view.status, view.deal and view.deal.sub_status) == (status, sub_status)
    story = get_invoice_story(world.deps, invoice_id=str(view.id))
    assert (story.case is not None) is ("late" in taken)
    assert {act.actor_name for act in story.acts} <= {"simulation"}


def test_a_lower_amount_needs_no_second_person_and_counts_as_decided(world: World) -> None:
    view = steps(world, "select", "resolve", amount="40.00")
    assert view.deal is not None and str(view.deal.adjusted_amount) == "40.00"
    (fact,) = world.announced(view.id)
    assert (fact.amount, fact.is_adjusted) == ("40.00", True)
    with world.deps.db.autocommit() as connection:
        notes = connection.execute(
            text("SELECT act, actor_name FROM acts WHERE act LIKE 'deal.%' ORDER BY id")
        ).all()
    assert {tuple(each) for each in notes[-2:]} == {
        ("deal.appeal", "simulation"),
        ("deal.adjust", "simulation"),
    }


@pytest.mark.parametrize(
    ("taken", "reason"),
    [
        (("mark-paid",), "DEAL_STATE_CONFLICT"),
        (("late",), "DEAL_STATE_CONFLICT"),
        (("select", "mark-paid", "expire"), "DEAL_STATE_CONFLICT"),
        (("select", "mark-paid", "late"), "DEAL_STATE_CONFLICT"),
        (("cancel", "late"), "INVOICE_FINISHED"),
        (("cancel", "expire"), "INVOICE_FINISHED"),
        (("win",), "VALIDATION_ERROR"),
    ],
)
def test_a_step_that_does_not_fit_is_refused(world: World, taken: tuple[str, ...], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        steps(world, *taken)
    assert refused.value.reason == reason


@pytest.mark.parametrize("mode", ["live", "test"])
def test_only_test_mode_serves_it_and_knows_customers_who_are_refused(world: World, mode: Any) -> None:
    deps = with_settings(world, mode=mode).deps
    request = pb.SimulateRequest(invoice_ref=str(world.create().id), step="cancel")
    with serving(rpc.add_to, deps) as address, connected(address) as channel:
        if mode == "test":
            assert SimulationServiceStub(channel).Simulate(request).invoice.finished_at.seconds
        else:
            with pytest.raises((grpc.RpcError, Refused)):
                SimulationServiceStub(channel).Simulate(request)
    refused = 0
    for customer_id in simulation.REFUSALS:
        try:
            with_settings(world, mode=mode).create(customer_id=customer_id)
        except Refused:
            refused += 1
    assert refused == (len(simulation.REFUSALS) if mode == "test" else 0)
