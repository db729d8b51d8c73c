"""The deletion of rows that are over: ended sessions, used invitations, old challenges, counters and keys."""

from datetime import timedelta
from typing import Final

from services.identity.store import retention
from services.identity.wiring import Deps

ROWS: Final = 500
SESSIONS_KEPT: Final = timedelta(days=30)
INVITATIONS_KEPT: Final = timedelta(days=90)
KEYS_KEPT: Final = timedelta(days=7)


def prune(deps: Deps) -> bool:
    """Deletes one batch of each kind; returns whether there may be more. The acts keep who did what."""
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        deleted = [
            retention.prune_challenges(tx, expired_before=now, limit=ROWS),
            retention.prune_guesses(tx, now=now, limit=ROWS),
            retention.prune_sessions(tx, unused_since=now - SESSIONS_KEPT, limit=ROWS),
            retention.prune_invitations(tx, expired_before=now - INVITATIONS_KEPT, limit=ROWS),
            retention.prune_keys(tx, replaced_before=now - KEYS_KEPT, limit=ROWS),
        ]
    return max(deleted) == ROWS
