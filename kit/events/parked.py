"""The table of the events that failed at one consumer: counted first, then parked for an operator.

An event that is not proven (kit.events.signing) is parked at once, under an id made from its bytes. Under the id that
it claims it would take the place of the true event with that id.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, literal, select, text, tuple_, update

from kit.audit import acts
from kit.base.clock import Clock
from kit.db.database import Database, as_json
from kit.db.queues import Queue
from kit.events.bus.messages import Incoming
from kit.events.inbox import ParkedColumns
from kit.events.proof import UNKNOWN_KEY_REASON, Unproven, Verifier

PAYLOAD_MOST: Final = 65_536
"""Bytes of a parked event that are kept. A fact has no more; what is cut has no right signature."""
QUEUE: Final = Queue(name="parked", table="parked", waits="parked_at IS NOT NULL", at="parked_at")
ERROR_CHARACTERS = 2000
MOST_PARKED = 10_000
"""With this many parked events no further unproven ones are kept: a forger must not fill the disk."""
_MOST_COUNTED: Final = 1_000_000
"""A larger count was written by SQL; one more might overflow."""

_ROOM = """
WHERE (SELECT count(*) FROM (SELECT FROM {table} WHERE parked_at IS NOT NULL LIMIT {most}) kept) < {most}
OR EXISTS (SELECT FROM {table} there WHERE there.event_id = '{row_id}')
"""
Place = tuple[datetime, uuid.UUID]
"""The time and the id of a parked event: events are listed in this order."""
_OF_UNPROVEN = uuid.UUID("3d0c9a52-5a0e-4d9b-9a8e-1f6c7f0b2a44")
"""The namespace of the ids of unproven events."""


@dataclass(frozen=True)
class ParkedEvent:
    """A row of the table, and the event as it was delivered."""

    row_id: uuid.UUID
    event: Incoming


@dataclass(frozen=True)
class Retried:
    """The number of parked events handled again, and of those that took effect. If `more`, continue after `last_id`."""

    retried: int
    mended: int
    last_id: uuid.UUID | None
    more: bool


class MayBeTrue(Exception):
    """The event is proven, or it may be a true one that this process cannot prove. `reason` names the case."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Parking:
    """The parked events of a `table` in a service's models.py."""

    def __init__(self, db: Database, table: type[ParkedColumns], clock: Clock) -> None:
        self._db = db
        self._table = table
        self._clock = clock

    def note_failure(self, event: Incoming, failure: Exception, *, park_after: int) -> int:
        """Counts a failure, and parks the event at failure number `park_after`; returns the number of failures."""
        return self._note(event, failure, row_id=event.event_id, claimed_id=None, park_after=park_after)

    def park_unproven(self, event: Incoming, failure: Unproven) -> bool:
        """Parks the event; returns false when too many are parked. The same bytes make one row, however often
        they come.
        """
        row_id, claimed_id, most = unproven_id(event), event.event_id, MOST_PARKED
        return bool(self._note(event, failure, row_id=row_id, claimed_id=claimed_id, park_after=1, most=most))

    def oldest(self, *, after: Place | None, limit: int) -> tuple[Sequence[ParkedColumns], int]:
        """Returns the events parked longest ago after this place, at most `limit`, and the number of all."""
        table = self._table
        is_parked = table.parked_at.is_not(None)
        oldest = select(table).where(is_parked).order_by(table.parked_at, table.event_id).limit(limit)
        if after is not None:
            oldest = oldest.where(tuple_(table.parked_at, table.event_id) > tuple_(*map(literal, after)))
        with self._db.transaction() as tx:
            return tx.scalars(oldest).all(), tx.scalar(select(func.count()).where(is_parked)) or 0

    def after(
        self, *, only: uuid.UUID | None, after: uuid.UUID | None, limit: int
    ) -> tuple[Sequence[ParkedEvent], bool]:
        """Returns parked events in the order of their ids, `only` one or those after `after`, and whether there
        are more.
        """
        table = self._table
        wanted = select(table).where(table.parked_at.is_not(None)).order_by(table.event_id).limit(limit + 1)
        if only is not None:
            wanted = wanted.where(table.event_id == only)
        if after is not None:
            wanted = wanted.where(table.event_id > after)
        with self._db.transaction() as tx:
            rows = [_parked_event(row) for row in tx.scalars(wanted)]
        return rows[:limit], len(rows) > limit

    def note_again(self, row_id: uuid.UUID, failure: Exception) -> int:
        """Counts one more failure of an event that stays parked; returns the number of failures."""
        table = self._table
        again = {
            "error": _storable(f"{type(failure).__name__}: {failure}"),
            "attempts": func.least(table.attempts, _MOST_COUNTED) + 1,
            "failed_at": self._clock.now(),
        }
        with self._db.autocommit() as connection:
            again_row = update(table).where(table.event_id == row_id).values(again).returning(table.attempts)
            return connection.scalar(again_row) or 0

    def discard(self, row_id: uuid.UUID, verifier: Verifier, *, even_if_true: bool) -> ParkedEvent | None:
        """Deletes an event that is not proven and returns it; None when none has this id.

        Raises `MayBeTrue` for a proven event. Unless `even_if_true`, also raises it for an event with an unknown key: a
        process with that key may have made it.
        """
        events, _ = self.after(only=row_id, after=None, limit=1)
        for parked in events:
            try:
                verifier.proven(parked.event)
            except Unproven as failure:
                if failure.reason == UNKNOWN_KEY_REASON and not even_if_true:
                    raise MayBeTrue(
                        f"{failure}, so it may be a true event. "
                        f"If it is forged: fiatgate parked discard {row_id} --even-if-true"
                    ) from None
                with self._db.transaction() as tx:
                    tx.execute(delete(self._table).where(self._table.event_id == row_id))
                    acts.record(tx, "parked.discard", f"event:{row_id}", note=str(failure))
                return parked
            raise MayBeTrue("it counts, so it is to be retried")
        return None

    def delete(self, row_id: uuid.UUID) -> None:
        with self._db.autocommit() as connection:
            connection.execute(delete(self._table).where(self._table.event_id == row_id))

    def count(self, row_ids: Sequence[uuid.UUID]) -> int:
        """Returns how many of these rows still exist."""
        table = self._table
        with self._db.transaction() as tx:
            return tx.scalar(select(func.count()).where(table.event_id.in_(row_ids))) or 0

    def _note(
        self,
        event: Incoming,
        failure: Exception,
        *,
        row_id: uuid.UUID,
        claimed_id: uuid.UUID | None,
        park_after: int,
        most: int | None = None,
    ) -> int:
        """Returns how often the event was noted; 0 when `most` are parked already."""
        now = self._clock.now()
        row = {
            "event_id": row_id,
            "subject": event.subject,
            "payload": event.payload[:PAYLOAD_MOST],
            "request_id": event.request_id,
            "signature": event.signature or None,
            "claimed_id": claimed_id,
            "error": _storable(f"{type(failure).__name__}: {failure}"),
            "attempts": 1,
            "failed_at": now,
            "parked_at": now if park_after <= 1 else None,
        }
        name = self._table.__tablename__
        then = f"""
{"" if most is None else _ROOM.format(table=name, most=most, row_id=row_id)}
ON CONFLICT (event_id) DO UPDATE SET
    error = excluded.error,
    attempts = least({name}.attempts, {_MOST_COUNTED}) + 1,
    failed_at = excluded.failed_at,
    parked_at = CASE WHEN {name}.attempts >= {park_after - 1:d} THEN excluded.failed_at END
RETURNING attempts
"""
        with self._db.autocommit() as connection:
            insert = f"INSERT INTO {name} SELECT * FROM jsonb_populate_record(NULL::{name}, CAST(:row AS jsonb)) {then}"  # noqa: S608
            return int(connection.execute(text(insert), {"row": as_json(row)}).scalar() or 0)


def unproven_id(event: Incoming) -> uuid.UUID:
    """Returns the id under which an unproven event is parked: one for each sequence of bytes."""
    name = b"|".join([event.event_id.bytes, event.subject.encode(), event.signature.encode(), event.payload])
    return uuid.uuid5(_OF_UNPROVEN, name.hex())


def _storable(error: str) -> str:
    """Removes characters that PostgreSQL refuses: NUL, and halves of characters."""
    return error[:ERROR_CHARACTERS].replace("\x00", "").encode(errors="replace").decode()


def _parked_event(row: ParkedColumns) -> ParkedEvent:
    """Returns the row as a delivery. No message on the stream waits for its settlement."""
    event = Incoming(
        row.claimed_id or row.event_id,
        row.subject,
        row.payload,
        row.request_id,
        acknowledge=lambda: None,
        retry_after=lambda _seconds: None,
        signature=row.signature or "",
    )
    return ParkedEvent(row.event_id, event)
