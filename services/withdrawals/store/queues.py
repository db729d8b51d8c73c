"""The queues of withdrawals and refunds that wait for an operator."""

from typing import Final

from kit.audit import queue as approvals
from kit.db.queues import Queue
from kit.events import parked

QUEUES: Final = (
    Queue(
        name="withdrawals_pending",
        table="withdrawals",
        waits="status = 'pending' AND substatus IS NULL",
        at="created_at",
    ),
    Queue(
        name="withdrawals_processing",
        table="withdrawals",
        waits="status = 'pending' AND substatus = 'processing'",
        at="created_at",
    ),
    Queue(name="refunds_ready", table="refunds", waits="status = 'ready'", at="created_at"),
    parked.QUEUE,
    approvals.QUEUE,
)
