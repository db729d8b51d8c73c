"""New events that go to the engine of the same process without a claim (services/webhooks/delivery/fresh.py)."""

from collections.abc import Callable

import pytest

from services.webhooks.domain import terms_of
from services.webhooks.operations import queueing
from services.webhooks.store.claims import worker_name
from tests.support.clock import ManualClock
from tests.support.receiver import Answer, Receiver
from tests.webhooks.house import House, finished, running


def test_a_new_event_is_leased_when_it_is_made_and_sent_once(live_house: House, receiver: Receiver) -> None:
    house = live_house
    receiver.answer(Answer(delay_seconds=0.5))
    with house.engine():
        _wait_for_engine(house, receiver)
        invoice_id = house.queue(receiver.url("new"))
        receiver.wait_for(1, path="new")
        event = house.event(invoice_id)
        house.wait_for_status(invoice_id, "success")
    assert event.locked_by == worker_name()
    assert event.locked_at is not None
    assert event.locked_at <= event.created_at, "a claim would have come later"
    assert len(receiver.received("new")) == 1
    assert house.event(invoice_id).locked_at is None


def test_an_invoice_that_comes_twice_in_one_transaction_is_sent_once(
    live_house: House, receiver: Receiver
) -> None:
    house = live_house
    twice = finished(merchant_id=house.merchant_id, key_id=house.key_id, callback_url=receiver.url("twice"))
    with house.engine():
        _wait_for_engine(house, receiver)
        with house.deps.db.transaction() as tx:
            queueing.queue_webhooks(house.deps, tx, 2 * [queueing.Cause(invoice=twice)])
        house.wait_for_status(twice.invoice_id, "success")
        house.wait_for_status(house.queue(receiver.url("next")), "success")
    assert len(receiver.received("twice")) == len(house.attempts(twice.invoice_id)) == 1


def test_of_a_transaction_that_is_rolled_back_nothing_is_sent(live_house: House, receiver: Receiver) -> None:
    house = live_house
    with house.engine():
        _wait_for_engine(house, receiver)
        undone = finished(
            merchant_id=house.merchant_id, key_id=house.key_id, callback_url=receiver.url("undone")
        )
        with pytest.raises(ZeroDivisionError), house.deps.db.transaction() as tx:
            queueing.queue_webhook(house.deps, tx, undone)
            raise ZeroDivisionError
        house.wait_for_status(house.queue(receiver.url("next")), "success")
    assert receiver.received("undone") == []


def test_an_event_that_is_committed_after_the_engines_end_is_given_back(
    live_house: House, receiver: Receiver
) -> None:
    house = live_house
    late = finished(merchant_id=house.merchant_id, key_id=house.key_id, callback_url=receiver.url("late"))
    with house.deps.db.transaction() as tx, house.engine():
        _wait_for_engine(house, receiver)
        queueing.queue_webhook(house.deps, tx, late)
    event = house.event(late.invoice_id)
    assert (event.status, event.locked_at) == ("pending", None)
    with running([house.engine_worker]):
        house.wait_for_status(late.invoice_id, "success")


def test_a_new_event_whose_secret_merchants_does_not_give_is_given_back(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    away = make_house(clock=ManualClock(), identity_address="127.0.0.1:1")
    with away.engine():
        away.wait(lambda: _takes_new_events(away), "the engine to run")
        invoice_id = away.queue(receiver.url())
        away.wait(lambda: "identity" in away.engine_worker.health().detail, "the trouble to be reported")
        away.wait(lambda: away.event(invoice_id).locked_at is None, "the event to be given back")
    event = away.event(invoice_id)
    assert (event.status, event.auto_attempts, event.locked_at) == ("pending", 0, None)


def _takes_new_events(house: House) -> bool:
    """Whether the engine runs; asked in a transaction that makes no event."""
    url = "https://shop.example.com/hook"
    terms = terms_of(finished(merchant_id=house.merchant_id, key_id=house.key_id), url)
    with house.deps.db.transaction() as tx:
        return house.deps.fresh.lease(tx, terms) is not None


def _wait_for_engine(house: House, receiver: Receiver) -> None:
    house.wait_for_status(house.queue(receiver.url("first")), "success")
