"""What invoices announces carries its signature; what someone else writes into its outbox does not."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import pytest
from sqlalchemy import text

from kit.bus import Outgoing
from kit.ids import new_id
from kit.proof import Unproven
from kit.relay import Relay
from services.invoices.models import BusState, Outbox
from services.invoices.operations import checkout, proofs
from tests.invoices.conftest import World
from tests.support.signing import delivered, verifier


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
    checkout.cancel(world.deps, invoice_id=str(new.id))
    proofs.reannounce(world.deps, invoice_ids=[str(new.id)])
    facts = [fact for event_id, fact in outbox(world).items() if event_id not in before]
    assert len(facts) == 2
    for fact in facts:
        verifier().proven(delivered(fact))


def test_a_row_that_someone_inserts_into_the_outbox_is_published_without_a_signature(world: World) -> None:
    forged = new_id()
    with world.deps.db.transaction() as tx:
        insert = "INSERT INTO outbox (id, subject, payload, request_id, created_at) VALUES (:id, 's', 'x', '', :at)"
        tx.execute(text(insert), {"id": forged, "at": datetime(2026, 1, 15).astimezone()})
    with pytest.raises(Unproven):
        verifier().proven(delivered(outbox(world)[forged]))
    with world.deps.db.transaction() as tx:
        tx.execute(text("DELETE FROM outbox WHERE id = :id"), {"id": forged})
