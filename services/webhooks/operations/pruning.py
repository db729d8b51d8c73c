"""The deletion of old attempts."""

import threading
from datetime import timedelta

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


def prune_attempts(deps: Deps, *, older_than_days: int, after: int) -> Pruned:
    """Deletes older attempts of finished events, from the oldest after number `after` on, in small batches with pauses,
    for at most `PRUNE_SECONDS`. If `more`, call again with `after=last_id`.
    """
    values.whole_number("older_than_days", older_than_days, least=1, most=PRUNE_MOST_DAYS)
    values.whole_number("after_attempt_id", after, least=0)
    before = deps.clock.now() - timedelta(days=older_than_days)
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
