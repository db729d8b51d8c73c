"""Timers end many invoices in one transaction: the rows are those of single steps, and of two steps one wins."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import text

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.rpc.errors import Refused
from services.invoices.domain.states import Trigger
from services.invoices.models import Deal
from services.invoices.operations import batches, checkout, desk, lifecycle, timers
from services.invoices.store import invoices
from tests.invoices.conftest import PAYMENT_MINUTES, World


def _rows(world: World, query: str, **values: Any) -> Sequence[Any]:
    with world.deps.db.autocommit() as connection:
        return connection.execute(text(query), values).all()


def _status(world: World, deal: Deal) -> str:
    ((status,),) = _rows(world, "SELECT sub_status FROM deals WHERE id = :id", id=deal.id)
    return str(status)


def _open_deals(world: World) -> int:
    ((count,),) = _rows(world, "SELECT sum(open_deals) FROM requisites")
    return int(count)


def _without_ids(fact: pb.InvoiceFinished) -> pb.InvoiceFinished:
    for field in ("event_id", "invoice_id", "external_id", "amount", "finished_at", "expires_at"):
        fact.ClearField(field)
    return fact


def _left_by(world: World, deal: Deal) -> tuple[Any, ...]:
    """Returns the history and the fact of a deal and its invoice, without ids and times."""
    history = _rows(
        world,
        "SELECT status, sub_status, actor, note FROM deal_transitions WHERE deal_id = :id ORDER BY id",
        id=deal.id,
    )
    facts = [_without_ids(fact) for fact in world.announced(deal.invoice_id)]
    return history, facts


def test_a_batch_leaves_the_rows_that_single_steps_leave(world: World) -> None:
    single, *together = (world.with_deal() for _ in range(4))
    world.clock.advance(minutes=PAYMENT_MINUTES)
    timers.expire_invoice(world.deps, single.invoice_id)
    assert not timers.expire_deals(world.deps), "one batch is enough"
    assert _open_deals(world) == 0
    left = _left_by(world, single)
    assert [fact.event_type for fact in left[1]] == ["invoice.expired"]
    assert all(_left_by(world, deal) == left for deal in together)


def test_a_batch_leaves_out_a_deal_that_is_marked_paid_at_that_moment(world: World) -> None:
    marked, *others = (world.with_deal() for _ in range(3))
    with world.deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, marked.invoice_id)
        assert deal is not None
        now = world.clock.now()
        lifecycle.advance(tx, world.deps, invoice, deal, Trigger.MARK_PAID, now=now, actor="customer")
        world.clock.advance(minutes=PAYMENT_MINUTES)
        timers.expire_deals(world.deps)
        assert {_status(world, each) for each in others} == {"payment_window_expired"}
    timers.expire_deals(world.deps)
    assert _status(world, marked) == "awaiting_confirmation"
    assert _open_deals(world) == 1


def test_a_deal_that_changed_after_it_was_found_due_is_left_as_it_is(world: World) -> None:
    confirmed, marked, unpaid = (world.with_deal() for _ in range(3))
    desk.confirm_deal(world.deps, deal_id=str(confirmed.id))
    checkout.mark_paid(world.deps, invoice_id=str(marked.invoice_id), deal_id=str(marked.id))
    world.clock.advance(minutes=PAYMENT_MINUTES)
    found_before = [deal.invoice_id for deal in (confirmed, marked, unpaid)]
    with world.deps.db.transaction() as tx:
        assert batches.expire_overdue(tx, world.deps, found_before, world.clock.now()) == 1
    assert [_status(world, deal) for deal in (confirmed, marked, unpaid)] == [
        "successfully_paid",
        "awaiting_confirmation",
        "payment_window_expired",
    ]


def test_of_a_batch_and_the_steps_of_people_one_wins_for_each_deal(world: World) -> None:
    deals = [world.with_deal() for _ in range(24)]
    steps: Sequence[Callable[[Deal], object]] = (
        lambda deal: desk.confirm_deal(world.deps, deal_id=str(deal.id)),
        lambda deal: checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id=str(deal.id)),
        lambda deal: desk.reject_deal(world.deps, deal_id=str(deal.id), note=""),
    )

    def take_step(number: int) -> None:
        if number == len(deals) // 2:
            world.clock.advance(minutes=PAYMENT_MINUTES)
            while timers.expire_deals(world.deps):
                pass
        with suppress(Refused):
            steps[number % 3](deals[number])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(take_step, range(len(deals))))
    timers.expire_deals(world.deps)
    ends = [_status(world, deal) for deal in deals]
    assert set(ends) <= {
        "successfully_paid",
        "rejected_by_operator",
        "awaiting_confirmation",
        "payment_window_expired",
    }
    assert _open_deals(world) == ends.count("awaiting_confirmation")
    for deal, end in zip(deals, ends, strict=True):
        history = desk.get_deal(world.deps, deal_id=str(deal.id)).history
        assert [step.sub_status for step in history] == ["awaiting_payment", end]
        assert len(world.announced(deal.invoice_id)) == (0 if end == "awaiting_confirmation" else 1)


def test_overdue_confirmations_become_appeals_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    deals = [world.with_deal() for _ in range(5)]
    for deal in deals:
        checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id=str(deal.id))
    monkeypatch.setattr(timers, "BATCH", 3)
    world.clock.advance(minutes=60)
    with world.deps.db.transaction() as tx:
        invoices.locked_invoice(tx, deals[0].invoice_id)
        assert timers.open_overdue_appeals(world.deps), "there are more"
        timers.open_overdue_appeals(world.deps)
        assert [_status(world, deal) for deal in deals].count("confirmation_overdue") == 4
    timers.open_overdue_appeals(world.deps)
    assert {_status(world, deal) for deal in deals} == {"confirmation_overdue"}
    assert _open_deals(world) == 5
