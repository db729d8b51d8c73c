"""Workers as processes that are stopped and killed: what another one did meanwhile stands."""

import signal

from tests.support.receiver import Answer, Received, Receiver
from tests.webhooks.house import House
from tests.webhooks.worker_process import WorkerProcess


def _same_event(first: Received, second: Received) -> bool:
    return (first.body, first.headers["x-idempotency-key"]) == (
        second.body,
        second.headers["x-idempotency-key"],
    )


def test_a_worker_stopped_past_its_lease_does_not_overwrite_what_another_one_did(
    another: House, worker: WorkerProcess, receiver: Receiver
) -> None:
    receiver.answer_next(Answer(status=500, delay_seconds=600))
    invoice_id = another.queue(receiver.url())
    receiver.wait_for(1)
    worker.send(signal.SIGSTOP)
    with another.engine():
        another.wait_for_status(invoice_id, "success")
    worker.send(signal.SIGCONT)
    another.wait(lambda: bool(worker.logged().get("webhook_attempted")), "the stopped worker to try to write")
    [late] = worker.logged()["webhook_attempted"]
    assert (late["verdict"], late["payload_event_id"]) == (
        "lease_lost",
        str(another.event(invoice_id).payload_event_id),
    )
    event, attempts = another.event(invoice_id), another.attempts(invoice_id)
    assert (event.status, event.auto_attempts, event.locked_by) == ("success", 1, None)
    assert [attempt.http_status for attempt in attempts] == [200]
    first, second = receiver.received()
    assert _same_event(first, second)


def test_what_a_killed_worker_had_in_hand_is_sent_after_its_lease_and_not_before(
    another: House, worker: WorkerProcess, receiver: Receiver
) -> None:
    receiver.answer_next(Answer(delay_seconds=600))
    invoice_id = another.queue(receiver.url())
    receiver.wait_for(1)
    worker.send(signal.SIGKILL)
    worker.process.wait()
    claimed_at = another.event(invoice_id).locked_at
    assert claimed_at is not None
    with another.engine():
        another.wait_for_status(invoice_id, "success")
    [attempt] = another.attempts(invoice_id)
    assert (attempt.created_at - claimed_at).total_seconds() >= another.deps.settings.lease_seconds
    first, second = receiver.received()
    assert _same_event(first, second)
