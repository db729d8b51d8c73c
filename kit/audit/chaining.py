"""The worker that adds new acts to the chain, off the hot path: within a second, one process at a time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, bindparam, text
from sqlalchemy.orm import Session

from kit.audit.acts import COLUMNS
from kit.audit.chain import EMPTY, Head, hash_of, head
from kit.base.clock import Clock
from kit.db import prepared
from kit.db.database import Database, seals_of
from kit.db.prepared import Prepared
from kit.observe.log import get_logger
from kit.work.worker import Loop

EVERY_SECONDS: Final = 1.0
PAGE: Final = 5000
"""Acts that one statement reads to find those that are not chained."""
BATCH: Final = 500
"""Acts that one transaction chains."""
LATE: Final = timedelta(minutes=10)
"""An act is visible long before this after the time in its id: the database ends slow transactions after seconds."""

_log = get_logger()

_NEXT = text("""
WITH page AS MATERIALIZED (SELECT id FROM acts WHERE id > :after ORDER BY id LIMIT :page)
SELECT (SELECT count(*) FROM page) AS read,
       (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS last,
       ARRAY(SELECT id FROM page WHERE NOT EXISTS (SELECT FROM act_chain WHERE act_id = page.id)
             ORDER BY id LIMIT :batch) AS unchained
""")
_LOCK = text("SELECT pg_try_advisory_xact_lock(hashtextextended('act_chain', 0))")
_ACTS = text(f"""
SELECT {", ".join(COLUMNS)} FROM acts
WHERE id = ANY(:ids) AND NOT EXISTS (SELECT FROM act_chain WHERE act_id = acts.id) ORDER BY id
""").bindparams(bindparam("ids", type_=ARRAY(Uuid)))  # noqa: S608  made of constants
_ADD: Final = Prepared(
    "add_to_act_chain",
    "INSERT INTO act_chain (number, act_id, hash, chained_at)"
    " SELECT *, :chained_at FROM unnest(:numbers, :act_ids, :hashes)",
    {"numbers": "bigint[]", "act_ids": "uuid[]", "hashes": "bytea[]", "chained_at": "timestamptz"},
    lambda: None,
)
_WAITING = text("""
SELECT count(*) AS acts, min(at) AS oldest FROM acts
WHERE id > :after AND NOT EXISTS (SELECT FROM act_chain WHERE act_id = acts.id)
""")


@dataclass(frozen=True, slots=True)
class Waiting:
    """The acts that are not chained yet, and the age of the oldest one."""

    acts: int
    oldest: timedelta


def earliest_id(at: datetime) -> UUID:
    """Returns an id that is smaller than the UUIDv7 of this time and of all later times."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


class Chaining:
    """The worker that adds acts to the chain. A new process reads all acts once, then only those of the last minutes
    (`LATE`): a slow transaction can commit an act after younger acts were read. `_after` is the id to read on after.
    """

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._after = UUID(int=0)

    def loop(self) -> Loop:
        return Loop("acts", self.step, every_seconds=EVERY_SECONDS, clock=self._clock)

    def step(self) -> bool:
        """Adds the next acts to the chain. Returns whether to try again at once."""
        read_at = self._clock.now()
        with self._db.autocommit() as connection:
            found = connection.execute(_NEXT, {"after": self._after, "page": PAGE, "batch": BATCH}).one()
        if found.unchained:
            return self._chain(found.unchained)
        # An id of the future is one that was added by hand: reading on after it would leave out the acts of now.
        if found.read == PAGE and found.last < earliest_id(read_at + LATE):
            self._after = found.last
            return True
        self._after = earliest_id(read_at - LATE)
        return False

    def _chain(self, ids: list[UUID]) -> bool:
        """Returns false when another process is doing it."""
        with self._db.transaction() as tx:
            if not tx.scalar(_LOCK):
                return False
            end = _add(tx, ids, self._clock.now())
        if end is not None:
            _log.info("acts_chained", count=end.count, hash=end.hash.hex(), at=end.at.isoformat())
        return True

    def waiting(self) -> Waiting:
        with self._db.autocommit() as connection:
            row = connection.execute(_WAITING, {"after": self._after}).one()
        now = self._clock.now()
        return Waiting(row.acts, max(timedelta(0), now - (row.oldest or now)))


def _add(tx: Session, ids: list[UUID], now: datetime) -> Head | None:
    """Adds these acts to the chain and returns its new end; None when another process has added them meanwhile."""
    before, seals = head(tx), seals_of(tx)
    number, previous = (before.count, before.hash) if before else (0, EMPTY)
    numbers, act_ids, hashes = [], [], []
    for row in tx.execute(_ACTS, {"ids": ids}).mappings():
        number += 1
        previous = hash_of(seals, previous, number, now, row)
        numbers.append(number)
        act_ids.append(row["id"])
        hashes.append(previous)
    if not numbers:
        return None
    values = {"numbers": numbers, "act_ids": act_ids, "hashes": hashes, "chained_at": now}
    prepared.later(tx, _ADD, values)
    return Head(number, previous, now)
