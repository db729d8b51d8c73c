"""What invoices announces carries its signature. What someone else writes into its database does not, and is not
announced.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import psycopg2
import pytest
from sqlalchemy import text

from kit.base.ids import new_id
from kit.events.bus.messages import Outgoing
from kit.events.proof import Unproven, Verifier
from kit.events.relay import Relay
from kit.events.signing import Signer, new_private_key
from services.invoices.models import BusState, Deal, Outbox
from services.invoices.operations import checkout, desk, verification
from tests.invoices.conftest import World
from tests.support.acting import ANN, BEN, refusal, requested
from tests.support.databases import past_all_rules
from tests.support.signing import SIGNER, delivered, verifier

COMPLETED = """
WITH step AS (
  INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
  VALUES (:deal, now(), 'completed', 'successfully_paid', 'operator', '')
), done AS (
  UPDATE deals SET status = 'completed', sub_status = 'successfully_paid', finished_at = now(),
    merchant_usdt = 100 WHERE id = :deal
)
UPDATE invoices SET status = 'success', finished_at = now(), event_id = gen_random_uuid() WHERE id = :invoice
"""


def outbox(world: World) -> dict[UUID, Outgoing]:
    """What the relay would publish."""
    deps = world.deps
    return {
        fact.event_id: fact
        for fact in Relay(deps.db, deps.bus, Outbox, BusState, deps.clock, deps.announced)._waiting()
    }


def test_a_finished_invoice_is_announced_with_a_signature_each_time(world: World) -> None:
    new = world.create()
    before = outbox(world).keys()
    checkout.cancel_checkout(world.deps, invoice_id=str(new.id))
    verification.reannounce_invoices(world.deps, invoice_ids=[str(new.id)])
    facts = [fact for event_id, fact in outbox(world).items() if event_id not in before]
    assert len(facts) == 2
    for fact in facts:
        verifier().proven(delivered(fact))
    kept = "SELECT event_id FROM facts WHERE event_id = ANY(:ids)"
    with world.deps.db.transaction() as tx:
        found = tx.scalars(text(kept), {"ids": [fact.event_id for fact in facts]}).all()
        assert found == [tx.scalar(text("SELECT event_id FROM invoices WHERE id = :id"), {"id": new.id})]


def test_a_row_that_someone_inserts_into_the_outbox_is_published_without_a_signature(world: World) -> None:
    forged = new_id()
    with world.deps.db.transaction() as tx:
        insert = "INSERT INTO outbox (id, subject, payload, request_id, created_at) VALUES (:id, 's', 'x', '', :at)"
        tx.execute(text(insert), {"id": forged, "at": datetime(2026, 1, 15).astimezone()})
    with pytest.raises(Unproven):
        verifier().proven(delivered(outbox(world)[forged]))
    with world.deps.db.transaction() as tx:
        tx.execute(text("DELETE FROM outbox WHERE id = :id"), {"id": forged})


# -- facts that are kept


def by_sql(world: World, statement: str, **values: Any) -> None:
    """With the rights of the service's own role."""
    with world.deps.db.transaction() as tx:
        tx.execute(text(statement), values)


def completed_by_sql(world: World) -> Deal:
    deal = world.with_deal()
    by_sql(world, COMPLETED, deal=deal.id, invoice=deal.invoice_id)
    return deal


def unproven(world: World) -> dict[UUID, str]:
    finished = verification.list_finished_invoices(world.deps, after_invoice_id="", limit=100).finished
    return {each.invoice.id: each.unproven for each in finished}


def test_a_deal_that_someone_completed_in_the_database_is_never_announced(world: World) -> None:
    forged = completed_by_sql(world)
    done = verification.reannounce_invoices(world.deps, invoice_ids=[str(forged.invoice_id)])
    assert (done.announced, done.refused) == ([], [forged.invoice_id])
    assert world.announced(forged.invoice_id) == []
    assert unproven(world) == {forged.invoice_id: verification.NO_FACT}


def test_a_signature_that_someone_else_made_proves_nothing_and_takes_no_place(world: World) -> None:
    forged = completed_by_sql(world)
    by_sql(
        world,
        "INSERT INTO facts SELECT event_id, 'AAAA.BBBB', 'x' FROM invoices WHERE id = :invoice",
        invoice=forged.invoice_id,
    )
    assert unproven(world) == {forged.invoice_id: verification.NO_FACT}


def test_two_operators_who_have_looked_have_it_announced_and_it_is_proven_from_then_on(world: World) -> None:
    forged = completed_by_sql(world)
    accept = partial(
        verification.reannounce_invoices, world.deps, invoice_ids=[str(forged.invoice_id)], accept=True
    )
    asked = requested(ANN, accept)
    assert world.announced(forged.invoice_id) == []
    (listed,) = world.approvals.of(f"invoice:{forged.invoice_id}")
    assert "which credits 100.000000 USDT, although it has no signed fact" in listed.summary
    world.approvals.approve(BEN, asked)
    (fact,) = world.announced(forged.invoice_id)
    assert fact.merchant_usdt == "100.000000"
    assert unproven(world) == {forged.invoice_id: ""}


def test_an_invoice_that_was_changed_after_the_request_is_not_signed(world: World) -> None:
    forged = completed_by_sql(world)
    accept = partial(
        verification.reannounce_invoices, world.deps, invoice_ids=[str(forged.invoice_id)], accept=True
    )
    asked = requested(ANN, accept)
    url = past_all_rules(world.deps.settings.database_url)
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE deals SET merchant_usdt = 900 WHERE invoice_id = %s", (str(forged.invoice_id),)
        )
    connection.close()
    assert refusal(world.approvals.approve, BEN, asked).reason == "APPROVAL_STATE_CONFLICT"
    assert world.announced(forged.invoice_id) == []


def test_the_desk_role_adjusts_and_only_admins_accept(world: World) -> None:
    clerk = replace(BEN, roles=frozenset({"desk"}))
    forged, deal = completed_by_sql(world), world.with_deal()
    accept = partial(
        verification.reannounce_invoices, world.deps, invoice_ids=[str(forged.invoice_id)], accept=True
    )
    asked = requested(ANN, accept)
    for decide in (world.approvals.approve, world.approvals.reject):
        assert refusal(decide, clerk, asked).reason == "NOT_PERMITTED"
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="")
    adjust = partial(desk.resolve_adjusted, world.deps, deal_id=str(deal.id), amount="90", note="")
    world.approvals.approve(clerk, requested(ANN, adjust))


def test_an_invoice_that_was_changed_after_it_finished_is_not_what_its_fact_says(world: World) -> None:
    new = world.create()
    checkout.cancel_checkout(world.deps, invoice_id=str(new.id))
    url = past_all_rules(world.deps.settings.database_url)
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE invoices SET amount = 3 WHERE id = %s", (str(new.id),))
    connection.close()
    assert unproven(world) == {new.id: verification.OTHER_FACT}
    assert verification.reannounce_invoices(world.deps, invoice_ids=[str(new.id)]).refused == [new.id]


def test_a_fact_of_a_key_before_counts_as_long_as_its_public_key_is_listed(world: World) -> None:
    new = world.create()
    checkout.cancel_checkout(world.deps, invoice_id=str(new.id))
    newer = Signer(new_private_key()).public_key
    for keys, why in (((newer, SIGNER.public_key), ""), ((newer,), verification.NO_FACT)):
        rotated = replace(world.deps, verifier=Verifier(keys))
        (finished,) = verification.list_finished_invoices(rotated, after_invoice_id="", limit=10).finished
        assert finished.unproven == why
