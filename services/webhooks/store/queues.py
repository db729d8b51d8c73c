"""The queues of events that wait for an operator."""

from typing import Final

from kit.db.queues import Queue
from kit.events import parked

# Older ones are history: a merchant whose address is gone would fill the queue for ever.
NEWLY_DEAD: Final = "status = 'dead' AND created_at > CAST(:now AS timestamptz) - interval '7 days'"
QUEUES: Final = (
    Queue(name="webhooks_dead", table="events", waits=NEWLY_DEAD, at="created_at"),
    parked.QUEUE,
)
