"""The queues of bank lines that wait for an operator."""

from typing import Final

from kit.db.queues import Queue

QUEUES: Final = (
    Queue(name="bank_lines_proposed", table="lines", waits="state = 'proposed'", at="created_at"),
    Queue(name="bank_lines_unmatched", table="lines", waits="state = 'unmatched'", at="created_at"),
)
