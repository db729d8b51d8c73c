"""The queues of withdrawals and refunds that wait for an operator."""

from typing import Final

from kit.audit import queue as approvals
from kit.db.queues import Queue
from kit.events import parked
from services.withdrawals.domain import ACCOUNT_WAITS_DAYS

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
    # A refund that is open changes with its status only, so its status is as old as its change.
    Queue(name="refunds_ready", table="refunds", waits="status = 'ready'", at="updated_at"),
    Queue(name="refunds_sent", table="refunds", waits="status = 'sent'", at="updated_at"),
    Queue(
        name="refunds_waiting",
        table="refunds",
        waits="status = 'waiting_for_account'"
        f" AND updated_at < CAST(:now AS timestamptz) - interval '{ACCOUNT_WAITS_DAYS} days'",
        at="updated_at",
    ),
    Queue(
        name="returns_failed",
        table="refunds",
        waits="status = 'failed' AND origin <> 'credited'"
        " AND NOT EXISTS (SELECT FROM refunds AS other WHERE other.invoice_id = refunds.invoice_id"
        " AND other.origin = refunds.origin AND other.status NOT IN ('failed', 'canceled'))"
        " AND NOT EXISTS (SELECT FROM corrections WHERE corrections.invoice_id = refunds.invoice_id"
        " AND corrections.kind IN ('late_credit', 'surplus') AND corrections.created_at > refunds.created_at)",
        at="updated_at",
        order="created_at",
    ),
    parked.QUEUE,
    approvals.QUEUE,
)
