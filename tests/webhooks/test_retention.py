"""Old attempts go, at an even pace; events and whatever is still to be sent stay."""

from collections.abc import Callable
from uuid import UUID

import pytest
from sqlalchemy import text

from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from kit.errors import Refused
from kit.worker import Loop
from services.webhooks import operations, workers
from services.webhooks.domain import EventStatus
from services.webhooks.rpc import WebhooksServicer
from tests.support.clock import ManualClock
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
    """So many steps of the worker."""
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


def test_a_step_takes_a_bounded_batch_and_the_worker_rests_after_the_last_one(house: House) -> None:
    _event(house, EventStatus.SUCCESS, attempts=2500, days_ago=DAYS + 1)
    worker = workers.retention(house.deps)
    left = []
    for _ in range(3):
        _run_down(house, worker, 1)
        left.append(house.attempt_count())
    assert left == [1500, 500, 0]
    late = _event(house, EventStatus.SUCCESS, attempts=1, days_ago=DAYS + 1)
    _run_down(house, worker, 1)
    assert len(house.attempts(late)) == 1
    house.clock.advance(seconds=3600)
    _run_down(house, worker, 1)
    assert house.attempts(late) == []


def test_old_attempts_behind_those_of_events_that_wait_are_reached(house: House) -> None:
    _event(house, EventStatus.PENDING, attempts=1500, days_ago=DAYS + 2)
    behind = _event(house, EventStatus.SUCCESS, attempts=10, days_ago=DAYS + 1)
    _run_down(house, workers.retention(house.deps), 2)
    assert house.attempts(behind) == []
    assert house.attempt_count() == 1500


def test_zero_days_keep_everything(make_house: Callable[..., House]) -> None:
    house = make_house(clock=ManualClock(), webhook_retention_days=0)
    invoice_id = _event(house, EventStatus.DEAD, attempts=3, days_ago=36_000)
    _run_down(house, workers.retention(house.deps), 2)
    assert len(house.attempts(invoice_id)) == 3


def test_a_call_prunes_so_many_batches_and_tells_where_to_go_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "PRUNE_ROWS", 10)
    monkeypatch.setattr(operations, "PRUNE_BATCHES_PER_CALL", 2)
    _event(house, EventStatus.SUCCESS, attempts=25, days_ago=31)
    servicer = WebhooksServicer(house.deps)
    request = pb.PruneAttemptsRequest(older_than_days=30)
    first = servicer.PruneAttempts(request, context=None)  # type: ignore[arg-type]
    assert (first.deleted, first.more) == (20, True)
    request.after_attempt_id = first.last_attempt_id
    second = servicer.PruneAttempts(request, context=None)  # type: ignore[arg-type]
    assert (second.deleted, second.more) == (5, False)


@pytest.mark.parametrize(("days", "after"), [(0, 0), (-1, 0), (36_501, 0), (1, -1)])
def test_what_to_prune_is_said_in_bounds(house: House, days: int, after: int) -> None:
    with pytest.raises(Refused, match="Expected"):
        operations.prune_attempts(house.deps, older_than_days=days, after=after)
