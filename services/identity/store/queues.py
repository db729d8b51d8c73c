"""The queue of requests about people that wait for another administrator."""

from typing import Final

from kit.audit import queue as approvals

QUEUES: Final = (approvals.QUEUE,)
