"""The queue of requests that wait for a second person."""

from typing import Final

from kit.db.queues import Queue

QUEUE: Final = Queue(name="approvals", table="approvals", waits="state = 'pending'", at="requested_at")
