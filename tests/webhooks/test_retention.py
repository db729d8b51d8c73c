"""Old attempts go, at an even pace; events and whatever is still to be sent stay."""

from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import UUID

import psycopg2
import pytest
from sqlalchemy import text

from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from kit.rpc import deadline
from kit.work.worker import Loop
from services.webhooks import workers
from services.webhooks.domain import EventStatus
from services.webhooks.operations import pruning
from services.webhooks.rpc import WebhooksServicer
from tests.support.clock import ManualClock
from tests.support.databases import owner_url
from tests.webhooks.house import House

DAYS = 90


@pytest.fixture
def house(make_house: Callable[..., House]) -> House:
    return make_house(clock=ManualClock(), webhook_retention_days=DAYS)


def _event(house: House, status: EventStatus, *, attempts: int, days_ago: int) -> UUID:
    """An event in this status with so many attempts, made so long ago."""
    invoice_id = house.queue("https://shop.example.com/")
    with house.deps.db.autocommit() as connection:
        connection.execute(
            text("""
            WITH event AS (
                UPDATE events
                SET status = :status, auto_attempts = :attempts,
                    next_retry_at = CASE WHEN :status = 'pending' THEN next_retry_at END
                WHERE invoice_id = :invoice_id
                RETURNING id
            )
            INSERT INTO attempts (event_id, try_number, trigger, status, duration_ms, created_at)
            SELECT id, number, 'auto', 'failure', 1, :now - :days * interval '1 day'
            FROM event, generate_series(1, :attempts) AS number
            """),
            {
                "status": status,
                "attempts": attempts,
                "invoice_id": invoice_id,
                "days": days_ago,
                "now": house.clock.now(),
            },
        )
    return invoice_id


def _run_down(house: House, worker: Loop, steps: int) -> None:
    for _ in range(steps):
        worker._step()


def test_attempts_of_finished_events_go_when_they_are_old_and_nothing_else(house: House) -> None:
    old = [
        _event(house, status, attempts=3, days_ago=DAYS + 1)
        for status in (EventStatus.SUCCESS, EventStatus.DEAD)
    ]
    kept = [
        _event(house, EventStatus.PENDING, attempts=3, days_ago=DAYS + 1),
        _event(house, EventStatus.SUCCESS, attempts=3, days_ago=DAYS - 1),
    ]
    _run_down(house, workers.retention(house.deps), 1)
    assert [len(house.attempts(each)) for each in (*old, *kept)] == [0, 0, 3, 3]
    assert [house.event(each).auto_attempts for each in old] == [3, 3]


@pytest.fixture
def batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "PRUNE_ROWS", 10)
    monkeypatch.setattr(pruning, "PRUNE_SECONDS", 0.0)


@pytest.mark.usefixtures("batch_by_batch")
def test_the_worker_goes_on_where_it_stopped_and_rests_after_the_last_batch(house: House) -> None:
    _event(house, EventStatus.SUCCESS, attempts=25, days_ago=DAYS + 1)
    worker = workers.retention(house.deps)
    left = []
    for _ in range(3):
        _run_down(house, worker, 1)
        left.append(house.attempt_count())
    assert left == [15, 5, 0]
    late = _event(house, EventStatus.SUCCESS, attempts=1, days_ago=DAYS + 1)
    _run_down(house, worker, 1)
    assert len(house.attempts(late)) == 1
    house.clock.advance(seconds=3600)
    _run_down(house, worker, 1)
    assert house.attempts(late) == []


@pytest.mark.usefixtures("batch_by_batch")
def test_old_attempts_behind_those_of_events_that_wait_are_reached(house: House) -> None:
    _event(house, EventStatus.PENDING, attempts=15, days_ago=DAYS + 2)
    behind = _event(house, EventStatus.SUCCESS, attempts=5, days_ago=DAYS + 1)
    _run_down(house, workers.retention(house.deps), 2)
    assert house.attempts(behind) == []
    assert house.attempt_count() == 15


def test_zero_days_keep_everything(make_house: Callable[..., House]) -> None:
    house = make_house(clock=ManualClock(), webhook_retention_days=0)
    invoice_id = _event(house, EventStatus.DEAD, attempts=3, days_ago=3_600)
    _run_down(house, workers.retention(house.deps), 2)
    assert len(house.attempts(invoice_id)) == 3


@pytest.mark.usefixtures("batch_by_batch")
def test_a_call_tells_where_to_go_on(house: House) -> None:
    _event(house, EventStatus.SUCCESS, attempts=15, days_ago=31)
    servicer = WebhooksServicer(house.deps)
    request = pb.PruneAttemptsRequest(older_than_days=30)
    first = servicer.PruneAttempts(request, context=None)  # type: ignore[arg-type]
    assert (first.deleted, first.more) == (10, True)
    request.after_attempt_id = first.last_attempt_id
    second = servicer.PruneAttempts(request, context=None)  # type: ignore[arg-type]
    assert (second.deleted, second.more) == (5, False)


@pytest.fixture
def slow_deletes(house: House) -> Iterator[None]:
    """A batch takes 20 ms at least."""
    url = owner_url(house.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        cursor.execute("""
            CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(0.02); RETURN NULL; END $$;
            CREATE TRIGGER dawdle AFTER DELETE ON attempts FOR EACH STATEMENT EXECUTE FUNCTION dawdle()
            """)
    yield
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        cursor.execute("DROP FUNCTION dawdle CASCADE")


@pytest.mark.usefixtures("slow_deletes")
def test_between_two_batches_passes_many_times_what_one_took(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PRUNE_ROWS", 10)
    monkeypatch.setattr(pruning, "PRUNE_SECONDS", 0.5)
    _event(house, EventStatus.SUCCESS, attempts=500, days_ago=DAYS + 1)
    pruned = pruning.prune_attempts(house.deps, older_than_days=DAYS, after=0)
    assert pruned.more
    assert 10 <= pruned.deleted <= 20, "two batches with a rest of 0.4 s, where 20 would fit"


@pytest.mark.usefixtures("slow_deletes")
def test_a_call_ends_before_its_caller_gives_up(house: House) -> None:
    _event(house, EventStatus.SUCCESS, attempts=1000, days_ago=DAYS + 1)
    with deadline.within(0.4):
        assert pruning.prune_attempts(house.deps, older_than_days=DAYS, after=0).more
        remaining_seconds = deadline.remaining_seconds()
    assert remaining_seconds is not None
    assert remaining_seconds > 0
