"""The queues of deals and cases that wait for an operator."""

from typing import Final

from kit.audit import queue as approvals
from kit.db.queues import Queue

_FULL: Final = """
SELECT method_code, max(last_used_at) AS filled_at FROM requisites
WHERE enabled GROUP BY method_code HAVING sum(open_deals) >= sum(max_deals)
"""
"""The methods whose accounts in use have no free place."""

QUEUES: Final = (
    # confirm_before is the time of marking and a constant: one index has both the timer's order and this one.
    Queue(
        name="deals_marked",
        table="deals",
        waits="sub_status = 'awaiting_confirmation'",
        at="mark_paid_at",
        order="confirm_before",
    ),
    Queue(
        name="appeals",
        table="deals",
        waits="status = 'appeal'",
        at="coalesce(mark_paid_at, created_at)",
        order="created_at",
    ),
    Queue(name="cases", table="cases", waits="resolved_at IS NULL", at="opened_at", order="number"),
    # Accounts are few, so they are counted whole. The last deal that was opened filled the method.
    Queue(
        name="methods_full",
        table=f"({_FULL}) AS methods",
        waits="true",
        at="filled_at",
    ),
    approvals.QUEUE,
)
