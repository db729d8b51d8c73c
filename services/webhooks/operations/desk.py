"""The operator's desk: stuck events, and the numbers of events that wait."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kit.audit import acts
from kit.base import actors
from kit.db.database import after_commit, retry_conflicts
from kit.rpc import values
from services.webhooks import errors
from services.webhooks.store import events, lists
from services.webhooks.store.events import Backlog
from services.webhooks.store.lists import EventFilter
from services.webhooks.store.views import EventView
from services.webhooks.wiring import Deps

STUCK_DEFAULT_SECONDS = 60


def list_stuck_events(deps: Deps, *, overdue_seconds: int, limit: int) -> Sequence[EventView]:
    """Returns pending events that no worker has claimed for longer than `overdue_seconds` (0: 60), the oldest first.

    At most `limit` (1 to 1000, 0: 100), without payload and attempts.
    """
    limit = values.rows(limit)
    with deps.db.transaction() as tx:
        return events.stuck_events(tx, overdue_since=_before_now(deps, overdue_seconds), limit=limit)


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events. continue_after: the search ended before the page was full; it goes on after this event."""

    events: Sequence[EventView]
    continue_after: int = 0


def list_events(deps: Deps, wanted: EventFilter, *, after_event_id: int = 0, limit: int = 0) -> EventPage:
    """Returns events, newest first, without payload and attempts.

    Raises WEBHOOK_EVENT_NOT_FOUND for an `after_event_id` that is unknown, or of another merchant than the member's; 0
    means from the start.
    """
    limit = values.rows(limit)
    with deps.db.autocommit() as connection:
        of_merchant = wanted.merchant_id if actors.current().surface == "dashboard" else None
        after = lists.place_of_event(connection, after_event_id, of_merchant) if after_event_id else None
        if after is None and after_event_id:
            raise errors.event_not_found()
        wanted = replace(wanted, after=after)
        found = lists.newest_events(connection, wanted, limit=limit)
        end = lists.walk_end(connection, wanted) if wanted.walks and len(found) < limit else None
    return EventPage(found, 0 if end is None else end[1])


@retry_conflicts
def reschedule_stuck_events(deps: Deps, *, overdue_seconds: int) -> int:
    """Makes up to 1000 due now, the longest overdue first; returns their number."""
    overdue_since = _before_now(deps, overdue_seconds)
    with deps.db.transaction() as tx:
        after_commit(tx, deps.wake.set)
        now = deps.clock.now()
        ids = events.reschedule_stuck_events(
            tx, overdue_since=overdue_since, now=now, limit=values.LIST_MOST_ROWS
        )
        if ids:
            due = {"rescheduled": len(ids), "due_at": now, "event_ids": ids}
            acts.record(tx, "event.reschedule", "events:stuck", after=due)
    return len(ids)


def _before_now(deps: Deps, overdue_seconds: int) -> datetime:
    values.whole_number("overdue_seconds", overdue_seconds, least=0)
    return deps.clock.now() - timedelta(seconds=overdue_seconds or STUCK_DEFAULT_SECONDS)


def backlog(deps: Deps) -> Backlog:
    """Returns the numbers of events that wait and are under way, for `fiatgate status`."""
    with deps.db.autocommit() as connection:
        return events.backlog(connection, now=deps.clock.now())
