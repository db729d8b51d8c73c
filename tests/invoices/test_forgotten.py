"""Facts that NATS has and the database has lost: named, and the invoice ends as its merchant was told."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cli import restoring
from cli.verifying import Findings, Repairs
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.events.bus.messages import Outgoing
from kit.events.signing import Signer, new_private_key
from kit.rpc.errors import Refused
from services.invoices import events
from services.invoices import rpc as invoices_rpc
from services.invoices.domain.states import InvoiceStatus, Trigger
from services.invoices.models import Deal, Invoice, Requisite
from services.invoices.operations import checkout, desk, forgotten, lifecycle, verification
from services.invoices.operations.forgotten import Forgotten
from tests.invoices.conftest import World
from tests.support.serving import serving
from tests.support.signing import SIGNER, signed


@pytest.fixture(scope="module")
def bus_url(nats_url: str) -> str:
    return nats_url


@pytest.fixture
def connected(world: World) -> Iterator[World]:
    with closing(world.deps.bus):
        world.deps.bus.start()
        assert world.deps.bus.wait_ready(15)
        yield world


class _Undone(Exception):
    pass


def lost_end(world: World, deal: Deal, *triggers: Trigger, signer: Signer = SIGNER) -> pb.InvoiceFinished:
    """Ends the deal, publishes the fact, and has the database lose the end, as a restore does."""
    with pytest.raises(_Undone), world.deps.db.transaction() as tx:
        fact = _ended(world, tx, deal, triggers)
        raise _Undone
    publish(world, fact, signer)
    return fact


def _ended(world: World, tx: Session, deal: Deal, triggers: tuple[Trigger, ...]) -> pb.InvoiceFinished:
    invoice, locked = lifecycle.locked_by_deal(tx, deal.id)
    for trigger in triggers:
        lifecycle.advance(tx, world.deps, invoice, locked, trigger, now=world.clock.now(), actor="operator")
    return events.invoice_finished(invoice, locked)


def publish(world: World, fact: pb.InvoiceFinished, signer: Signer = SIGNER) -> None:
    out = Outgoing(UUID(fact.event_id), events.FINISHED, fact.SerializeToString())
    assert world.deps.bus.publish([signed(out, signer)]) == [out.event_id]


def since() -> datetime:
    return SystemClock().now() - timedelta(minutes=1)


def listed(world: World, *invoice_ids: UUID) -> list[Forgotten]:
    """What is named of these invoices: the stream has the facts of other tests too."""
    found = forgotten.list_forgotten_facts(world.deps, since=since(), after_seq=0, limit=1000).forgotten
    return [each for each in found if UUID(each.fact.invoice_id) in invoice_ids]


def restored(world: World, but: Sequence[str] = ()) -> forgotten.RestoredPage:
    return forgotten.restore_forgotten(world.deps, since=since(), after_seq=0, limit=1000, but=but)


def why(page: forgotten.RestoredPage, invoice_id: UUID) -> forgotten.NotRestored:
    (refused,) = [each for each in page.refused if each.invoice_id == invoice_id]
    return refused


@pytest.mark.parametrize(
    "triggers",
    [
        (Trigger.CONFIRM,),
        (Trigger.MARK_PAID, Trigger.CONFIRM),
        (Trigger.REJECT,),
        (Trigger.EXPIRE,),
        (Trigger.APPEAL_BY_OPERATOR, Trigger.RESOLVE_REJECTED),
    ],
)
def test_a_forgotten_end_is_named_and_made_again_under_the_same_event_id(
    connected: World, triggers: tuple[Trigger, ...]
) -> None:
    deal = connected.with_deal()
    fact = lost_end(connected, deal, *triggers)
    (found,) = listed(connected, deal.invoice_id)
    assert (found.fact, found.status) == (fact, InvoiceStatus.PENDING)

    connected.clock.advance(minutes=90)  # time would have ended it otherwise
    page = restored(connected)
    assert deal.invoice_id in page.restored
    assert connected.announced(deal.invoice_id) == [fact], "the merchant gets the event that it knows"
    assert listed(connected, deal.invoice_id) == []
    (finished,) = verification.list_finished_invoices(connected.deps, after_invoice_id="", limit=100).finished
    assert finished.unproven == ""
    assert deal.invoice_id not in restored(connected).restored


def test_an_invoice_without_a_deal_ends_as_it_did(connected: World) -> None:
    new = connected.create()
    with pytest.raises(_Undone), connected.deps.db.transaction() as tx:
        invoice, _ = lifecycle.locked(tx, new.id)
        at = connected.clock.now()
        lifecycle.finish(tx, connected.deps, invoice, None, InvoiceStatus.CANCELED, now=at)
        fact = events.invoice_finished(invoice, None)
        raise _Undone
    publish(connected, fact)
    assert new.id in restored(connected).restored
    assert connected.announced(new.id) == [fact]


def test_an_adjusted_amount_is_that_of_the_fact(connected: World) -> None:
    deal = connected.with_deal()
    with pytest.raises(_Undone), connected.deps.db.transaction() as tx:
        invoice, locked = lifecycle.locked_by_deal(tx, deal.id)
        for trigger, amount in ((Trigger.APPEAL_BY_OPERATOR, None), (Trigger.RESOLVE_ADJUSTED, 50)):
            lifecycle.advance(
                tx,
                connected.deps,
                invoice,
                locked,
                trigger,
                now=connected.clock.now(),
                actor="operator",
                adjusted_amount=None if amount is None else locked.invoice_amount / 2,
            )
        fact = events.invoice_finished(invoice, locked)
        raise _Undone
    publish(connected, fact)
    assert deal.invoice_id in restored(connected).restored
    assert connected.announced(deal.invoice_id) == [fact]


@pytest.mark.parametrize("has_deal", [True, False])
def test_a_deal_that_was_lost_or_replaced_is_refused_and_nothing_is_changed(
    connected: World, *, has_deal: bool
) -> None:
    """As if the customer had chosen a method, or another one, after the restore point."""
    pending = connected.with_deal().invoice_id if has_deal else connected.create().id
    other = connected.with_deal()
    fact = lost_end(connected, other, Trigger.CONFIRM)
    fact.rate_usd, fact.event_id, fact.invoice_id = "0.5", str(new_id()), str(pending)
    if has_deal:  # in all but the rate the fact is of this invoice
        fact.external_id, fact.amount = _own(connected, pending)
    publish(connected, fact)
    page = restored(connected)
    assert pending not in page.restored
    refused = why(page, pending)
    assert refused.has_other_deal
    assert refused.reason == (
        "its rate_usd is 0.92, that of its signed fact 0.5" if has_deal else "it has no deal"
    )
    assert connected.announced(pending) == []
    (found,) = listed(connected, pending)
    assert found.status is InvoiceStatus.PENDING


def test_a_deal_that_went_on_is_refused_and_holds_up_no_other(connected: World) -> None:
    """No step leads from an appeal to the end of its time."""
    first, second = connected.with_deal(), connected.with_deal()
    lost_end(connected, first, Trigger.EXPIRE)
    with connected.deps.db.transaction() as tx:
        _appealed(connected, tx, first)
    lost_end(connected, second, Trigger.CONFIRM)
    page = restored(connected)
    refused = why(page, first.invoice_id)
    assert refused.reason == (
        "no step leads from the state of its deal (opened_by_operator) to that of its signed fact "
        "(payment_window_expired)"
    )
    assert not refused.has_other_deal
    assert second.invoice_id in page.restored


def test_an_invoice_that_is_another_one_than_its_fact_says_is_refused_for_that(connected: World) -> None:
    deal = connected.with_deal()
    fact = lost_end(connected, deal, Trigger.CONFIRM)
    other = connected.with_deal()
    fact.invoice_id, fact.event_id, fact.rate_usd = str(other.invoice_id), str(new_id()), "0.5"
    publish(connected, fact)
    refused = why(restored(connected), other.invoice_id)
    order, _ = _own(connected, other.invoice_id)
    assert refused.reason == f"its external_id is {order}, that of its signed fact {fact.external_id}"
    assert not refused.has_other_deal, "to choose the method again changes nothing of that"


def test_what_the_database_refuses_is_named_and_holds_up_no_other(connected: World) -> None:
    """One fact has the event id of another invoice, one would free an account that no deal takes."""
    taken = connected.create()
    checkout.cancel_checkout(connected.deps, invoice_id=str(taken.id))
    (announced,) = connected.announced(taken.id)
    first, second, third = connected.with_deal(), connected.with_deal(), connected.with_deal()
    with pytest.raises(_Undone), connected.deps.db.transaction() as tx:
        fact = _ended(connected, tx, first, (Trigger.CONFIRM,))
        raise _Undone
    fact.event_id = announced.event_id
    publish(connected, fact)
    lost_end(connected, second, Trigger.CONFIRM)
    lost_end(connected, third, Trigger.CONFIRM)
    assert second.requisite_id not in (first.requisite_id, third.requisite_id)
    with connected.deps.db.transaction() as tx:
        tx.execute(update(Requisite).where(Requisite.id == second.requisite_id).values(open_deals=0))
    page = restored(connected)
    assert why(page, first.invoice_id).reason == "the database refuses it (pk_outbox)"
    assert why(page, second.invoice_id).reason == "the database refuses it (ck_requisites_open_deals)"
    assert third.invoice_id in page.restored


def test_of_facts_that_contradict_each_other_none_is_taken_and_both_are_named(
    connected: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restore, another end, and a second restore. Each fact is on a page of its own."""
    told_twice, told_once = connected.with_deal(), connected.with_deal()
    first = lost_end(connected, told_twice, Trigger.CONFIRM)
    lost_end(connected, told_once, Trigger.REJECT)
    second = lost_end(connected, told_twice, Trigger.REJECT)
    twice, once = str(told_twice.invoice_id), str(told_once.invoice_id)
    monkeypatch.setattr(restoring, "FACTS_PAGE", 1)
    with serving(invoices_rpc.add_to, connected.deps) as address:
        monkeypatch.setenv("FIATGATE_INVOICES_ADDRESS", address)
        findings, repairs = Findings(), Repairs()
        restoring.check_forgotten(findings, since=since())
        restoring.restore_forgotten(repairs, since=since())
    (named,) = [each.text for each in findings.problems if twice in each.text]
    for sentence in (named, repairs.unlike[twice]):
        assert "its signed facts contradict each other" in sentence
        assert f"event {first.event_id} of" in sentence
        assert (
            f"says success and a credit of {first.merchant_usdt} USDT, event {second.event_id} of" in sentence
        )
    assert connected.announced(told_twice.invoice_id) == []
    assert f"invoice {once} ended as its signed fact says" in repairs.done
    assert {each.status for each in listed(connected, told_twice.invoice_id)} == {InvoiceStatus.PENDING}
    page = restored(connected, but=[twice])
    assert told_twice.invoice_id not in {*page.restored, *(each.invoice_id for each in page.refused)}
    with pytest.raises(Refused, match="at most 1000"):
        restored(connected, but=[twice] * 1001)


def _own(world: World, invoice_id: UUID) -> tuple[str, str]:
    """The order and the amount of an invoice."""
    with world.deps.db.transaction() as tx:
        found = tx.get_one(Invoice, invoice_id)
        return found.external_id, str(found.amount)


def _appealed(world: World, tx: Session, deal: Deal) -> None:
    invoice, locked = lifecycle.locked_by_deal(tx, deal.id)
    lifecycle.advance(
        tx, world.deps, invoice, locked, Trigger.APPEAL_BY_OPERATOR, now=world.clock.now(), actor="operator"
    )


def test_an_invoice_that_is_gone_is_named_with_what_its_merchant_was_told(connected: World) -> None:
    deal = connected.with_deal()
    fact = lost_end(connected, deal, Trigger.CONFIRM)
    gone = pb.InvoiceFinished()
    gone.CopyFrom(fact)
    gone.invoice_id, gone.event_id = str(new_id()), str(new_id())
    publish(connected, gone)
    (found,) = listed(connected, UUID(gone.invoice_id))
    assert (found.fact.external_id, found.status) == (fact.external_id, None)
    assert UUID(gone.invoice_id) not in restored(connected).restored


def test_an_invoice_that_ended_otherwise_is_named_and_stays(connected: World) -> None:
    deal = connected.with_deal()
    lost_end(connected, deal, Trigger.CONFIRM)
    desk.reject_deal(connected.deps, deal_id=str(deal.id), note="")
    (found,) = listed(connected, deal.invoice_id)
    assert found.status is InvoiceStatus.FAIL
    assert deal.invoice_id not in restored(connected).restored


def test_a_fact_that_someone_else_has_signed_is_none(connected: World) -> None:
    deal = connected.with_deal()
    lost_end(connected, deal, Trigger.CONFIRM, signer=Signer(new_private_key()))
    assert listed(connected, deal.invoice_id) == []
    assert deal.invoice_id not in restored(connected).restored


def test_what_is_there_is_not_named_and_pages_end(connected: World) -> None:
    new = connected.create()
    checkout.cancel_checkout(connected.deps, invoice_id=str(new.id))
    (fact,) = connected.announced(new.id)
    publish(connected, fact)
    assert listed(connected, new.id) == []
    read, after_seq, more = 0, 0, True
    while more:
        page = forgotten.list_forgotten_facts(connected.deps, since=since(), after_seq=after_seq, limit=2)
        assert page.read <= 2 and page.last_seq > after_seq
        read, after_seq, more = read + page.read, page.last_seq, page.more
    whole = forgotten.list_forgotten_facts(connected.deps, since=since(), after_seq=0, limit=1000)
    assert read == whole.read > 0
    later = SystemClock().now() + timedelta(minutes=1)
    assert forgotten.list_forgotten_facts(connected.deps, since=later, after_seq=0, limit=1000).read == 0
