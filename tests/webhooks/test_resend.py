"""The manual resend (docs/api.md#resend-invoice-webhook): one attempt, now, beside the automatic schedule."""

import errno
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack

import pytest
import uvloop

from kit.audit.listing import newest_acts_on
from kit.base.ids import new_id
from kit.db.database import DatabaseUnavailable
from kit.rpc.deadline import within
from kit.rpc.errors import Refused
from services.webhooks.domain import NO_KEY_ERROR
from services.webhooks.operations import resending
from services.webhooks.wiring import RESENDS
from tests.support.acting import refusal
from tests.support.clock import ManualClock
from tests.support.receiver import Answer, Receiver
from tests.support.servers import PostgresServer
from tests.webhooks.house import House


def test_an_invoice_without_event_has_nothing_to_resend(house: House) -> None:
    assert refusal(house.resend, new_id()).reason == "WEBHOOK_NOT_FOUND"


def test_a_successful_resend_ends_a_pending_event_for_good(house: House, receiver: Receiver) -> None:
    receiver.answer_next(Answer(status=500))
    with house.engine():
        invoice_id = house.queue(receiver.url())
        house.wait_for_attempts(invoice_id, 1)
        resent = house.resend(invoice_id)
        assert (resent.outcome.succeeded, resent.outcome.http_status) == (True, 200)
        event = house.event(invoice_id)
        assert (event.status, event.next_retry_at) == ("success", None)
        assert (event.auto_attempts, event.manual_attempts) == (1, 1)
        house.advance(seconds=86_400)
        house.queue(receiver.url("other"))
        receiver.wait_for(1, path="other")
    assert len(receiver.received()) == 2
    assert [attempt.trigger for attempt in house.attempts(invoice_id)] == ["auto", "manual"]
    assert house.attempts(invoice_id)[1].id == resent.attempt_id


def test_a_failed_resend_of_a_pending_event_leaves_its_schedule_as_it_is(
    house: House, receiver: Receiver
) -> None:
    receiver.answer(Answer(status=500))
    with house.engine():
        invoice_id = house.queue(receiver.url())
        house.wait_for_attempts(invoice_id, 1)
        before = house.event(invoice_id)
        resent = house.resend(invoice_id)
        after = house.event(invoice_id)
        assert (resent.outcome.succeeded, resent.outcome.http_status) == (False, 500)
        assert (after.status, after.next_retry_at) == ("pending", before.next_retry_at)
        house.advance(seconds=31)
        attempts = house.wait_for_attempts(invoice_id, 3)
        event = house.event(invoice_id)
    assert [attempt.trigger for attempt in attempts] == ["auto", "manual", "auto"]
    assert (event.auto_attempts, event.manual_attempts) == (2, 1)
    assert event.next_retry_at is not None
    # The second delay, not the third.
    assert 60 <= (event.next_retry_at - house.clock.now()).total_seconds() <= 61


def test_the_resent_bytes_and_event_id_are_those_of_the_first_delivery(
    house: House, receiver: Receiver
) -> None:
    with house.engine():
        invoice_id = house.queue(receiver.url())
        house.wait_for_status(invoice_id, "success")
    house.clock.advance(days=3)
    house.resend(invoice_id)
    first, second = receiver.received()
    assert first.body == second.body
    assert first.headers["x-idempotency-key"] == second.headers["x-idempotency-key"]
    assert first.headers["x-signature-timestamp"] != second.headers["x-signature-timestamp"]


def test_a_failed_resend_leaves_a_success_a_success(house: House, receiver: Receiver) -> None:
    with house.engine():
        invoice_id = house.queue(receiver.url())
        house.wait_for_status(invoice_id, "success")
    receiver.answer(Answer(status=500))
    assert not house.resend(invoice_id).outcome.succeeded
    event = house.event(invoice_id)
    assert (event.status, event.next_retry_at, event.manual_attempts) == ("success", None, 1)


@pytest.mark.parametrize(("status", "then"), [(500, "dead"), (204, "success")])
def test_a_dead_event_lives_again_by_a_successful_resend_only(
    make_house: Callable[..., House], receiver: Receiver, status: int, then: str
) -> None:
    house = make_house(clock=ManualClock(), webhook_retry_delays=(1,))
    receiver.answer(Answer(status=500))
    with house.engine():
        invoice_id = house.queue(receiver.url())
        house.wait_for_attempts(invoice_id, 1)
        house.advance(seconds=3)
        house.wait_for_status(invoice_id, "dead")
    receiver.answer(Answer(status=status))
    house.resend(invoice_id)
    event = house.event(invoice_id)
    assert (event.status, event.next_retry_at) == (then, None)


def test_the_cooldown_runs_from_the_last_manual_attempt_whatever_came_of_it(
    house: House, receiver: Receiver
) -> None:
    receiver.answer(Answer(status=500))
    invoice_id = house.queue(receiver.url())
    house.resend(invoice_id)
    house.clock.advance(seconds=59)
    refused = refusal(house.resend, invoice_id)
    assert refused.reason == "WEBHOOK_RESEND_COOLDOWN"
    assert refused.metadata == {"retry_after_seconds": "1"}
    house.clock.advance(seconds=1)
    house.resend(invoice_id)
    assert len(receiver.received()) == 2


def test_automatic_attempts_start_no_cooldown_and_events_have_each_their_own(
    house: House, receiver: Receiver
) -> None:
    with house.engine():
        first, second = house.queue(receiver.url()), house.queue(receiver.url())
        house.wait_for_status(first, "success")
        house.wait_for_status(second, "success")
    house.resend(first)
    house.resend(second)
    assert len(receiver.received()) == 4


def test_an_attempt_under_way_is_a_conflict_before_it_is_a_cooldown(house: House, receiver: Receiver) -> None:
    receiver.answer_next(Answer(status=500))
    invoice_id = house.queue(receiver.url())
    house.resend(invoice_id)
    assert house.claim()
    assert refusal(house.resend, invoice_id).reason == "WEBHOOK_RESEND_CONFLICT"
    house.clock.advance(seconds=house.deps.settings.lease_seconds)  # whoever held it is gone
    house.resend(invoice_id)


def test_the_engine_leaves_an_event_alone_while_it_is_being_resent(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    live_house = make_house(webhook_timeout_seconds=10)  # a busy machine must not make the answer too late
    receiver.answer(Answer(delay_seconds=0.5))
    invoice_id = live_house.queue(receiver.url())
    with ThreadPoolExecutor(1) as threads:
        resent = threads.submit(live_house.resend, invoice_id)
        receiver.wait_for(1)
        with live_house.engine():
            live_house.queue(receiver.url("other"))
            receiver.wait_for(1, path="other")
            resent.result()
            live_house.wait_for_status(invoice_id, "success")
    assert len(receiver.received()) == 1


def test_of_twenty_parallel_resends_one_makes_an_attempt(live_house: House, receiver: Receiver) -> None:
    receiver.answer(Answer(delay_seconds=0.3))
    invoice_id = live_house.queue(receiver.url())
    together = threading.Barrier(20)

    def resend() -> str:
        together.wait()
        try:
            live_house.resend(invoice_id)
        except Refused as refused:
            return refused.reason
        return "sent"

    with ThreadPoolExecutor(20) as threads:
        answers = Counter(each.result() for each in [threads.submit(resend) for _ in range(20)])
    assert answers["sent"] == 1
    assert set(answers) <= {"sent", "WEBHOOK_RESEND_CONFLICT", "WEBHOOK_RESEND_COOLDOWN"}
    assert len(receiver.received()) == 1
    assert len(live_house.attempts(invoice_id)) == 1


def test_without_an_active_key_the_resend_is_a_failed_attempt(house: House, receiver: Receiver) -> None:
    invoice_id = house.queue(receiver.url())
    house.merchants.deactivate(house.key_id)
    resent = house.resend(invoice_id)
    assert (resent.outcome.succeeded, resent.outcome.http_status) == (False, None)
    assert house.attempts(invoice_id)[0].error_message == NO_KEY_ERROR
    assert receiver.received() == []


def test_a_resend_that_gets_no_turn_is_no_act(house: House, receiver: Receiver) -> None:
    invoice_id, owner = house.queue(receiver.url()), str(house.merchant_id)
    event = f"event:{house.event(invoice_id).id}"

    def written() -> list[str]:
        with house.deps.db.autocommit() as connection:
            return [each.act for each in newest_acts_on(connection, [event], limit=9)]

    with ExitStack() as others:
        for _ in range(RESENDS.working):
            others.enter_context(house.deps.resend_turns.turn(owner))
        with within(0.1), pytest.raises(Refused) as refused:
            house.resend(invoice_id)
        assert refused.value.reason == "RATE_LIMITED"
        assert (receiver.received(), written()) == ([], [])
    assert house.resend(invoice_id).outcome.succeeded
    assert written() == ["event.resend"]


def test_while_merchants_is_away_a_resend_is_refused_and_the_event_is_free_again(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    house = make_house()
    away = make_house(identity_address="127.0.0.1:1")
    invoice_id = house.queue(receiver.url())
    away.merchant_id = house.merchant_id
    assert refusal(away.resend, invoice_id).reason == "DB_UNAVAILABLE"
    assert house.event(invoice_id).locked_at is None
    assert house.resend(invoice_id).outcome.succeeded


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_resend_that_could_not_begin_leaves_the_event_free(
    house: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoice_id = house.queue(receiver.url())
    with monkeypatch.context() as patched:
        patched.setattr(uvloop, "new_event_loop", _no_more_files)
        with pytest.raises(RuntimeError, match="could not start"):
            house.resend(invoice_id)
    assert (house.event(invoice_id).locked_at, house.event(invoice_id).manual_attempts) == (None, 0)
    assert house.resend(invoice_id).outcome.succeeded


def _no_more_files() -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def test_a_resend_whose_result_met_a_database_that_was_away_is_written_when_it_is_back(
    make_house: Callable[..., House], receiver: Receiver, postgres: PostgresServer
) -> None:
    house = make_house()
    receiver.answer(Answer(delay_seconds=0.5))
    invoice_id = house.queue(receiver.url())
    with ThreadPoolExecutor(1) as threads:
        resent = threads.submit(house.resend, invoice_id)
        receiver.wait_for(1)
        house.flush()
        postgres.kill()
        try:
            assert not wait([resent], timeout=0.7).done
        finally:
            postgres.start()
        assert resent.result().outcome.succeeded
    assert (house.event(invoice_id).status, len(house.attempts(invoice_id))) == ("success", 1)


def test_a_resend_whose_result_met_a_database_that_stayed_away_says_so(
    make_house: Callable[..., House],
    receiver: Receiver,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resending, "RECORD_SECONDS", 0.5)
    house = make_house()
    receiver.answer(Answer(delay_seconds=0.5))
    invoice_id = house.queue(receiver.url())
    with ThreadPoolExecutor(1) as threads:
        resent = threads.submit(house.resend, invoice_id)
        receiver.wait_for(1)
        house.flush()
        postgres.kill()
        try:
            with pytest.raises(DatabaseUnavailable):
                resent.result()
        finally:
            postgres.start()
    assert (house.event(invoice_id).status, house.attempts(invoice_id)) == ("pending", [])
