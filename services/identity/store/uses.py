"""The last use of each API key, written so seldom that a request costs nothing."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from kit.db.database import Database, DatabaseUnavailable
from kit.db.prepared import Prepared
from kit.observe.log import get_logger

NOTED_EVERY: Final = timedelta(minutes=5)
"""A use is written when the one before is this much older: so a row changes this often at most, however many processes
and requests there are, and a time that is shown is at most this much too old.
"""
REMEMBERED_MOST: Final = 10_000
# No wait: a lock on the row is that of its deactivation, or of another process that writes the same.
_NOTE: Final = Prepared(
    "note_key_use",
    """
    UPDATE api_keys SET last_used_at = :at
    WHERE id = (
        SELECT id FROM api_keys
        WHERE id = :key_id AND coalesce(last_used_at < :before, true)
        FOR NO KEY UPDATE SKIP LOCKED
    )
    RETURNING id
    """,
    {"key_id": "uuid", "at": "timestamptz", "before": "timestamptz"},
    lambda id: id,
)

_log = get_logger()


class KeyUses:
    """The uses that this process has written, so that most calls read a dictionary and no more."""

    def __init__(self) -> None:
        self._noted: dict[UUID, datetime] = {}

    def note(self, db: Database, key_id: UUID, *, at: datetime) -> None:
        """Writes that the key was used, unless a late use is known. While the database can't be written to the use is
        forgotten: no request fails for it.
        """
        noted = self._noted.get(key_id)
        if noted is not None and noted <= at < noted + NOTED_EVERY:
            return
        if len(self._noted) >= REMEMBERED_MOST:
            self._noted.clear()
        self._noted[key_id] = at
        try:
            db.one_or_none(_NOTE, {"key_id": key_id, "at": at, "before": at - NOTED_EVERY})
        except DatabaseUnavailable as error:
            _log.warning("key_use_lost", key_id=str(key_id), error=str(error))
