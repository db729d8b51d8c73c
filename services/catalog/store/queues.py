"""The queue of rates that wait for an operator."""

from typing import Final

from kit.audit import queue as approvals
from kit.db.queues import Queue

QUEUES: Final = (
    Queue(name="rates_held", table="held_rates", waits="true", at="taken_at"),
    approvals.QUEUE,
)
