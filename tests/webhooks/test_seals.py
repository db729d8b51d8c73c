"""What someone writes into the database by SQL is not sent, and does not take the place of the true event."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg2.errors
import pytest
from sqlalchemy import exc, text

from kit.db.books import check_page
from kit.events.signing import new_private_key
from services.webhooks.domain import HELD_BACK_ERROR, FinishedInvoice, destination_of, payload_of
from services.webhooks.operations import queueing, resending
from services.webhooks.store import books
from tests.support.clock import ManualClock
from tests.support.receiver import Answer, Receiver
from tests.support.signing import SEAL_KEY
from tests.webhooks.house import House, finished

FORGED = """
INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url, destination,
    payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at, seal)
VALUES (:payload_event_id, :invoice_id, :merchant_id, :key_id, 'invoice.success', 'pending', :callback_url,
    :destination, :payload, 0, 0, :now, :now, :now, :seal)
"""


def by_sql(house: House, statement: str, **values: Any) -> None:
    """With the rights of the service's own role."""
    with house.deps.db.transaction() as tx:
        tx.execute(text(statement), values)


def forge(house: House, fact: FinishedInvoice, *, seal: str | None = None) -> None:
    by_sql(
        house,
        FORGED,
        payload_event_id=fact.event_id,
        invoice_id=fact.invoice_id,
        merchant_id=fact.merchant_id,
        key_id=fact.key_id,
        callback_url=fact.callback_url,
        destination=destination_of(str(fact.callback_url)),
        payload=payload_of(fact),
        now=house.clock.now(),
        seal=seal,
    )


def fact_for(house: House, receiver: Receiver, **facts: Any) -> FinishedInvoice:
    named = {"merchant_id": house.merchant_id, "key_id": house.key_id, "callback_url": receiver.url()}
    return finished(**named, **facts)


def queue(house: House, fact: FinishedInvoice) -> None:
    with house.deps.db.transaction() as tx:
        queueing.queue_webhook(house.deps, tx, fact)


def error_of(house: House, invoice_id: UUID) -> str | None:
    """Of its first attempt, which nothing was sent for."""
    (attempt,) = house.wait_for_attempts(invoice_id, 1)
    return attempt.error_message


@pytest.mark.parametrize("seal", [None, "", "ä", "AAAA", "of another event"])
def test_a_row_inserted_by_sql_is_neither_sent_nor_resent(
    house: House, receiver: Receiver, seal: str | None
) -> None:
    forged = fact_for(house, receiver)
    if seal == "of another event":
        other = house.queue(receiver.url("true"))
        with house.deps.db.transaction() as tx:
            seal = tx.scalar(text("SELECT seal FROM events WHERE invoice_id = :id"), {"id": other})
    forge(house, forged, seal=seal)
    with house.engine():
        assert error_of(house, forged.invoice_id) == HELD_BACK_ERROR
    resent = house.resend(forged.invoice_id)
    assert (resent.outcome.succeeded, resent.outcome.http_status) == (False, None)
    assert receiver.received() == []


def test_the_true_event_takes_the_place_of_a_forged_one(house: House, receiver: Receiver) -> None:
    true = fact_for(house, receiver, status="expired", event_type="invoice.expired")
    forge(house, fact_for(house, receiver, invoice_id=true.invoice_id, amount="9999.00"))
    by_sql(house, "UPDATE events SET status = 'success', next_retry_at = NULL")
    queue(house, true)
    with house.engine():
        (request,) = receiver.wait_for(1)
        assert request.body == payload_of(true)
        assert house.wait_for_status(true.invoice_id, "success").event_type == "invoice.expired"


def test_the_true_event_has_all_its_retries_and_resends_whatever_a_forged_one_had(
    house: House, receiver: Receiver
) -> None:
    true = fact_for(house, receiver)
    forge(house, fact_for(house, receiver, invoice_id=true.invoice_id, amount="9999.00"))
    by_sql(
        house,
        "UPDATE events SET auto_attempts = 2147483647, manual_attempts = 2147483647, last_manual_at = :now",
        now=house.clock.now(),
    )
    receiver.answer_next(Answer(status=500))
    with house.engine():
        assert error_of(house, true.invoice_id) == HELD_BACK_ERROR
        queue(house, true)
        receiver.wait_for(1)
        house.wait(lambda: house.event(true.invoice_id).auto_attempts == 1, "the attempt is written")
    assert house.event(true.invoice_id).status == "pending"  # after the last of its retries it would be dead
    assert house.resend(true.invoice_id).outcome.succeeded


def test_a_true_event_that_was_held_back_is_sent_once_it_is_sealed(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    house = make_house(clock=ManualClock(), webhook_retry_delays=(1,))
    true, delivered = fact_for(house, receiver), fact_for(house, receiver)
    with house.engine():
        queue(house, delivered)
        house.wait_for_status(delivered.invoice_id, "success")
    with house.deps.db.transaction() as tx:  # while no engine runs, which would send what it saw being made
        queueing.queue_webhook(house.deps, tx, true)
        tx.execute(text("UPDATE events SET seal = 'x'"))
    with house.engine():
        house.wait_for_attempts(true.invoice_id, 1)
        house.advance(seconds=3)
        house.wait_for_status(true.invoice_id, "dead")
        assert not house.resend(delivered.invoice_id).outcome.succeeded
        assert len(receiver.received()) == 1
        receiver.answer_next(Answer(status=500))
        for fact in (delivered, true):
            queue(house, fact)
        house.wait_for_attempts(true.invoice_id, 3)
        assert house.event(true.invoice_id).status == "pending"  # its retries are all still to come
        house.advance(seconds=3)
        house.wait_for_status(true.invoice_id, "success")
        assert len(receiver.received()) == 3
    part = books.PARTS[-1]
    assert check_page(house.deps.db, part, after="", limit=10).problems == []


def test_the_terms_of_a_sealed_event_are_kept_and_with_another_seal_it_is_not_sent(
    house: House, receiver: Receiver
) -> None:
    invoice_id = house.queue(receiver.url())
    with pytest.raises(exc.ProgrammingError) as refused:
        by_sql(house, "UPDATE events SET payload = 'x'")
    assert isinstance(refused.value.orig, psycopg2.errors.InsufficientPrivilege)
    by_sql(house, "UPDATE events SET payload = 'x', seal = 'x'")
    with house.engine():
        assert error_of(house, invoice_id) == HELD_BACK_ERROR
    assert receiver.received() == []


@pytest.mark.parametrize("sealed_again", [False, True])
def test_a_destination_that_was_changed_by_sql_is_corrected(
    house: House, receiver: Receiver, sealed_again: bool
) -> None:
    """It names the lane: another one lets the event wait for another server."""
    fact = fact_for(house, receiver)
    queue(house, fact)
    with house.deps.db.transaction() as tx:
        seal = tx.scalar(text("SELECT seal FROM events WHERE invoice_id = :id"), {"id": fact.invoice_id})
    by_sql(house, "UPDATE events SET destination = '127.0.0.1:1', seal = NULL")
    if sealed_again:
        by_sql(house, "UPDATE events SET seal = :seal", seal=seal)
    queue(house, fact)
    assert house.event(fact.invoice_id).destination == destination_of(receiver.url())
    with house.deps.db.autocommit() as connection:
        assert books.differences(connection, [fact], house.deps.seals.flaw) == {fact.invoice_id: []}


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("next_retry_at", "next_retry_at = '2099-01-01'"),
        (
            "lease_until",
            "locked_at = now(), locked_by = '', lease_token = gen_random_uuid(), lease_until = '2099-01-01'",
        ),
        ("last_manual_at", "last_manual_at = '2099-01-01'"),
        ("status", "status = 'dead', next_retry_at = NULL"),
        ("attempts", "auto_attempts = 2147483647, manual_attempts = 2147483647"),
    ],
)
def test_an_event_that_is_held_back_by_sql_is_named(
    house: House, receiver: Receiver, field: str, change: str
) -> None:
    invoice_id = house.queue(receiver.url())
    by_sql(house, f"UPDATE events SET {change}")
    part = books.PARTS[-1]
    (problem,) = check_page(house.deps.db, part, after="", limit=10).problems
    assert (problem.subject, problem.field) == (f"webhook event of invoice {invoice_id}", field)


def test_announcing_again_seals_an_event_without_a_seal_and_sends_nothing(
    house: House, receiver: Receiver
) -> None:
    old = fact_for(house, receiver)
    forge(house, old)
    by_sql(house, "UPDATE events SET status = 'dead', next_retry_at = NULL")
    queue(house, old)
    assert house.event(old.invoice_id).status == "dead"
    assert house.resend(old.invoice_id).outcome.succeeded


def test_a_seal_of_a_key_before_counts_as_long_as_it_is_listed(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    clock, new = ManualClock(), new_private_key()
    before = make_house(clock=clock)
    for keys, sent in (((new, SEAL_KEY), True), ((new,), False)):
        house = make_house(clock=clock, seal_keys=keys)
        invoice_id = before.queue(receiver.url())
        resent = resending.resend_latest(house.deps, merchant_id="", invoice_id=str(invoice_id))
        assert resent.outcome.succeeded == sent
