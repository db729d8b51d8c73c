"""The queues of bank lines that wait for an operator."""

from typing import Final

from kit.db.queues import Queue

QUEUES: Final = (
    Queue(name="bank_lines_proposed", table="lines", waits="state = 'proposed'", at="created_at"),
    Queue(name="bank_lines_unmatched", table="lines", waits="state = 'unmatched'", at="created_at"),
    # The bank took back money that had paid a deal or was used. A file books that as a debit, which names no line.
    Queue(
        name="bank_lines_reversed",
        table="lines",
        waits="state = 'reversed' AND (import_id IS NOT NULL AND direction = 'debit'"
        " OR used_for IS NOT NULL OR EXISTS (SELECT FROM line_matches WHERE line_id = lines.id))",
        at="created_at",
    ),
    Queue(
        name="bank_connectors_silent",
        table="connectors",
        waits="revoked_at IS NULL AND silence_seconds IS NOT NULL"
        " AND coalesce(heard_at, created_at) < :now - silence_seconds * interval '1 second'",
        at="coalesce(heard_at, created_at)",
    ),
)
