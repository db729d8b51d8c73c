"""The deletion of old attempts, by month and row by row."""

import threading
from datetime import datetime, timedelta

from kit.audit import acts
from kit.base.clock import monotonic_seconds
from kit.observe.log import get_logger
from kit.rpc import deadline, values
from services.webhooks.store import retention
from services.webhooks.store.retention import Pruned
from services.webhooks.wiring import Deps

_log = get_logger()

PRUNE_ROWS = 100
PRUNE_REST = 19
"""The pause after a batch is this many times the time of the batch: one delivery in twenty meets a small batch."""
PRUNE_SECONDS = 2.0
"""Longest time that one call deletes and pauses."""
PRUNE_MOST_DAYS = 36_500


def turn_months(deps: Deps, *, older_than_days: int) -> datetime | None:
    """Prepares the next months of attempts and drops whole months that are older; 0 days drop none.

    Returns the time before which attempts are to be deleted row by row; None if there are none such.
    """
    before = deps.clock.now() - timedelta(days=older_than_days) if older_than_days else None
    with deps.db.autocommit() as connection:
        turned = retention.turn_months(connection, before=before)
    if turned.made:
        _log.info("webhook_months_added", months=turned.made)
    if turned.dropped:
        _log.info("webhook_months_dropped", months=list(turned.dropped), older_than_days=older_than_days)
    return turned.rows_until


def prune_attempts(
    deps: Deps, *, older_than_days: int, after: int, rows_until: datetime | None = None
) -> Pruned:
    """Deletes older attempts of finished events, from the oldest after number `after` on, in small batches with pauses,
    for at most `PRUNE_SECONDS`, and none from after `rows_until`. If `more`, call again with `after=last_id`.
    """
    values.whole_number("older_than_days", older_than_days, least=1, most=PRUNE_MOST_DAYS)
    values.whole_number("after_attempt_id", after, least=0)
    before = deps.clock.now() - timedelta(days=older_than_days)
    before = before if rows_until is None else min(before, rows_until)
    left_seconds = deadline.remaining_seconds()
    until = monotonic_seconds() + min(
        PRUNE_SECONDS, PRUNE_SECONDS if left_seconds is None else left_seconds / 2
    )
    deleted, rest = 0, threading.Event()
    while True:
        started = monotonic_seconds()
        with deps.db.transaction() as tx:
            pruned = retention.prune_attempts(tx, before=before, after=after, limit=PRUNE_ROWS)
            if pruned.deleted and not deleted and acts.by_hand():  # one act for all batches of the call
                acts.record(tx, "attempts.prune", "attempts:old", after={"older_than_days": older_than_days})
        deleted, after = deleted + pruned.deleted, pruned.last_id
        if not pruned.more:
            break
        ended = monotonic_seconds()
        rest.wait(min(PRUNE_REST * (ended - started), until - ended))
        if monotonic_seconds() >= until:
            break
    if deleted:
        _log.info("webhook_attempts_pruned", deleted=deleted, older_than_days=older_than_days)
    return Pruned(deleted, after, pruned.more)


def months_ahead(deps: Deps) -> int:
    """Returns the number of coming months that have a partition."""
    with deps.db.autocommit() as connection:
        return retention.months_left(connection, now=deps.clock.now())
