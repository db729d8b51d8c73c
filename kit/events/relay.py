"""The relay of one outbox to JetStream. It publishes this process's own commits at once, and missed facts once a
second.

Several relays may run (one per process). Each publishes the commits of its own process, straight from memory. Only one
at a time searches the table for other unpublished facts: those of a process that died, of an outage of NATS, of a
stream that was lost. If a row is published twice, its id makes every inbox drop the second copy. A row is published
with the signature that it was written with, and without one if it has none. No transaction is open while the network is
used.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from kit.base.clock import Clock, monotonic_seconds
from kit.db import prepared
from kit.db.alone import alone
from kit.db.database import Database
from kit.db.prepared import Prepared
from kit.events.bus.connection import Bus
from kit.events.bus.messages import BusUnavailable, Outgoing
from kit.events.bus.stream import StreamSeen
from kit.events.outbox import Announced, BusStateColumns, OutboxColumns
from kit.events.subjects import STREAM
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.work.worker import Loop, Worker

_log = get_logger()

PUBLISHED = metrics.counter("outbox_published", "Facts that JetStream stored; a few may be counted twice")
NOT_PUBLISHED = metrics.counter("outbox_not_published", "Facts that JetStream did not take at an attempt")

POLL_SECONDS = 1.0
STEP_MOST_SECONDS = 120
"""Longer than any step that ends: a batch that NATS does not answer is given up after half a minute."""

BATCH_ROWS = 256
SWEEP_ROWS = 5000
KEEP_PUBLISHED = timedelta(days=7)
SWEEP_EVERY = timedelta(minutes=10)


CLOCKS_DIFFER = timedelta(seconds=10)
"""The greatest difference between the clock of NATS and ours."""


@dataclass
class _Again:
    """The state of announcing all published facts again, the newest first, to a stream that lacks some. `back_to` is
    the publication time down to which they are marked as unpublished, None before the first batch.
    """

    stream: "_Stream"
    back_to: datetime | None = None


@dataclass(frozen=True)
class _Stream:
    """The state of a stream. It changes when the stream is made anew and when its oldest messages are removed."""

    created_at: datetime
    first_seq: int


@dataclass
class Relay:
    """The relay's work. Each round publishes the fresh facts, and when it's time one batch of the outbox."""

    db: Database
    bus: Bus
    outbox: type[OutboxColumns]
    bus_state: type[BusStateColumns]
    clock: Clock
    announced: Announced = field(default_factory=Announced)
    _table_at_seconds: float = field(default=0.0, init=False)
    _known_stream: _Stream | None = field(default=None, init=False)
    _again: _Again | None = field(default=None, init=False)
    _swept_at: datetime | None = field(default=None, init=False)

    def turn(self) -> bool:
        """Returns true when there may be more. After `BusUnavailable` a later round finds the fresh facts in the
        table.
        """
        fresh = self.announced.take(BATCH_ROWS)
        self._publish(fresh)
        more = len(fresh) == BATCH_ROWS
        if monotonic_seconds() >= self._table_at_seconds:
            left = self.step()
            self._table_at_seconds = 0.0 if left else monotonic_seconds() + POLL_SECONDS
            more = more or left
        return more

    def step(self) -> bool:
        """Publishes the newest unpublished facts, unless another process does so; returns true when there may be more.

        The newest first: a recent fact must not wait for a week of facts that are announced again. No consumer needs
        the facts in order.
        """
        with alone(self.db, "relay", at_most_seconds=STEP_MOST_SECONDS) as entered:
            if not entered:
                return False
            self._notice_lost_facts()
            self._sweep()
            waiting, fresh = self._waiting(), self.announced.ids()
            missed = [fact for fact in waiting if fact.event_id not in fresh]
            self._publish(missed)
            return (len(waiting) == BATCH_ROWS and len(missed) > 0) or self._again is not None

    def _publish(self, facts: Sequence[Outgoing]) -> None:
        if not facts:
            return
        stored = self.bus.publish(facts)
        PUBLISHED.inc(len(stored))
        NOT_PUBLISHED.inc(len(facts) - len(stored))
        with self.db.autocommit() as connection:
            prepared.rows(connection, self._mark, {"ids": stored, "now": self.clock.now()})
        if len(stored) < len(facts):
            raise BusUnavailable(f"{len(facts) - len(stored)} of {len(facts)} facts were not stored")

    @functools.cached_property
    def _mark(self) -> Prepared[None]:
        """Marks the facts as published, unless they have a mark: `_announce_again` goes backwards through the times of
        the marks and would miss a row that is marked a second time.
        """
        table = self.outbox.__tablename__
        return Prepared(
            f"mark_published_in_{table}",
            f"UPDATE {table} SET published_at = :now WHERE id = ANY(:ids) AND published_at IS NULL",  # noqa: S608
            {"ids": "uuid[]", "now": "timestamptz"},
            lambda: None,
        )

    def _waiting(self) -> list[Outgoing]:
        table = self.outbox
        newest = (
            select(
                table.id,
                table.subject,
                table.payload,
                table.request_id,
                table.traceparent,
                table.signature,
            )
            .where(table.published_at.is_(None))
            .order_by(table.id.desc())
            .limit(BATCH_ROWS)
        )
        with self.db.autocommit() as connection:
            return [
                Outgoing(
                    row.id,
                    row.subject,
                    row.payload,
                    row.request_id,
                    row.traceparent or "",
                    row.signature or "",
                )
                for row in connection.execute(newest)
            ]

    def _notice_lost_facts(self) -> None:
        """Announces all published facts again when the stream has lost some: it was created anew, or its oldest
        messages were removed too early.

        Each step takes one batch, the newest facts first: consumers may not have read them yet. Consumers' inboxes drop
        facts that they handled before. The time of the stream's creation is stored after the last batch, so a crash
        only repeats some facts.
        """
        seen = self.bus.stream_seen
        if seen is None:
            return
        stream = _Stream(seen.created_at, seen.first_seq)
        if stream == self._known_stream:
            return
        if self._again is None or self._again.stream != stream:
            self._again = _Again(stream) if self._lacks_facts(seen) else None
        if self._again is None or self._announce_again(self._again) < SWEEP_ROWS:
            self._note_stream(seen.created_at)
            self._known_stream = stream
            self._again = None

    def _lacks_facts(self, seen: StreamSeen) -> bool:
        state, published_at = self.bus_state, self.outbox.published_at
        with self.db.autocommit() as connection:
            stored = connection.scalar(select(state.stream_created_at).where(state.stream == STREAM))
            oldest = connection.scalar(select(func.min(published_at)))
        if stored is None:
            return False
        if stored != seen.created_at:
            _log.warning("stream_recreated", created_at=seen.created_at.isoformat())
            return True
        if oldest is None or oldest + CLOCKS_DIFFER > (seen.first_at or seen.at):
            return False
        _log.error("stream_facts_removed", first_seq=seen.first_seq, published_at=oldest.isoformat())
        return True

    def _announce_again(self, again: _Again) -> int:
        """Marks the next batch as unpublished; returns its size. Facts published meanwhile are newer than the batch."""
        published_at = self.outbox.published_at
        left = published_at.is_not(None) if again.back_to is None else published_at <= again.back_to
        batch = select(published_at).where(left).order_by(published_at.desc()).limit(SWEEP_ROWS).subquery()
        with self.db.autocommit() as connection:
            count, back_to = connection.execute(select(func.count(), func.min(batch.c.published_at))).one()
            if count:
                connection.execute(
                    update(self.outbox).where(left, published_at >= back_to).values(published_at=None)
                )
        again.back_to = back_to
        return int(count)

    def _note_stream(self, created_at: datetime) -> None:
        if self._known_stream is not None and self._known_stream.created_at == created_at:
            return
        state = self.bus_state
        note = insert(state).values(stream=STREAM, stream_created_at=created_at)
        with self.db.autocommit() as connection:
            connection.execute(
                note.on_conflict_do_update(
                    index_elements=[state.stream], set_={"stream_created_at": created_at}
                )
            )

    def _sweep(self) -> None:
        """Deletes facts that were published long ago, one bounded batch at a time."""
        now = self.clock.now()
        if self._swept_at is not None and now - self._swept_at < SWEEP_EVERY:
            return
        table = self.outbox
        old = (
            select(table.id)
            .where(table.published_at < now - KEEP_PUBLISHED)
            .limit(SWEEP_ROWS)
            .scalar_subquery()
        )
        with self.db.autocommit() as connection:
            swept = connection.execute(delete(table).where(table.id.in_(old)))
        if swept.rowcount < SWEEP_ROWS:
            self._swept_at = now


def relay(
    *,
    db: Database,
    bus: Bus,
    outbox: type[OutboxColumns],
    bus_state: type[BusStateColumns],
    clock: Clock,
    announced: Announced,
) -> Worker:
    """Returns the worker that publishes `outbox`; pass `announced` to `kit.events.outbox.announce` too."""
    turn = Relay(db, bus, outbox, bus_state, clock, announced).turn
    return Loop("relay", turn, every_seconds=POLL_SECONDS, signal=announced.wake)
