"""Writes acts: each in the transaction of the change that it describes, so that there is none without the other.

Each has a seal (kit.base.seals): an act that someone inserts by SQL has no right one: it decides no value.
"""

import hashlib
import json
import threading
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from sqlalchemy import RowMapping
from sqlalchemy.orm import Session

from kit.base import actors, request_id
from kit.base.actors import Actor
from kit.base.clock import monotonic_seconds
from kit.base.ids import new_id
from kit.base.seals import Seals, canonical
from kit.db import prepared
from kit.db.database import Database, seals_of
from kit.db.prepared import Prepared
from kit.observe import metrics

REFUSALS_PER_SECOND: Final = 10
"""Refusals that one process writes down in a second: a stranger with a false token must not fill the disk."""
REFUSALS_OF_ONE_PER_SECOND: Final = 2
"""Those of one author among them: a member's refused calls must not keep the attempts of others out of the acts."""
MOST_CHARACTERS: Final = 2000
"""Longer values and notes are cut."""

SECRET_WORDS: Final = frozenset(
    {"secret", "password", "token", "totp", "hash", "recovery", "private", "cookie", "seal", "sealed"}
)
"""A field with one of these words in its name is never written into an act."""

NOT_WRITTEN = metrics.counter(
    "act_refusals_not_written",
    "Refusals of a permission that were counted here only, because there were too many",
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_TYPES: Final = {
    "id": "uuid",
    "at": "timestamptz",
    "actor_kind": "text",
    "actor_name": "text",
    "person_id": "uuid",
    "session_id": "uuid",
    "surface": "text",
    "on_behalf_of": "text",
    "act": "text",
    "object": "text",
    "merchant_id": "uuid",
    "changes": "jsonb",
    "note": "text",
    "request_id": "text",
    "refused": "text",
    "seal": "bytea",
}
COLUMNS: Final = tuple(each for each in _TYPES if each != "seal")
"""The columns of an act, all of which are sealed and chained."""
_SEALED: Final = "act"
# A trigger that swallows the row would leave a change without its act: 1 / 0 undoes the change.
_INSERT: Final = Prepared(
    "insert_act",
    f"WITH made AS (INSERT INTO acts ({', '.join(_TYPES)}) VALUES ({', '.join(f':{each}' for each in _TYPES)})"  # noqa: S608
    " RETURNING 1) SELECT 1 / count(*) FROM made",
    _TYPES,
    lambda: None,
)


def record(
    tx: Session,
    act: str,
    object: str,
    *,
    merchant_id: uuid.UUID | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    note: str = "",
) -> None:
    """Writes an act of the author of this work (kit.base.actors) into the transaction of the change.

    act            noun and verb: "deal.confirm"
    object         kind and id: f"deal:{id}"
    before, after  the fields of the object; those that differ are stored. If both are given and nothing differs,
                   nothing was changed, and there is no act. For a new object give `after` alone.

    Raises ValueError for a field that is a secret, LookupError when the work has no author.
    """
    changes = _changes(before or {}, after or {})
    if before is not None and after is not None and not changes:
        return
    _insert(tx, _row(actors.current(), act, object, merchant_id=merchant_id, changes=changes, note=note))


def values_of(row: object | None, names: Sequence[str]) -> dict[str, Any]:
    """Returns these fields of a row, for `before` and `after`; none of a row that is not there."""
    return {} if row is None else {name: getattr(row, name) for name in names}


def by_hand() -> bool:
    """Returns whether a person or the command line is the author, and not a program or a timer."""
    return actors.current().kind in {"person", "cli"}


class _Allowance:
    """The refusals that were written in this second, by author."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._second = 0
        self._taken: Counter[str] = Counter()

    def take(self, author: Actor) -> bool:
        """Returns whether one more of this author may be written."""
        name = str(author.person_id or author)
        second = int(monotonic_seconds())
        with self._lock:
            if second != self._second:
                self._second, self._taken = second, Counter()
            if self._taken[name] >= REFUSALS_OF_ONE_PER_SECOND or self._taken.total() >= REFUSALS_PER_SECOND:
                return False
            self._taken[name] += 1
            return True


_allowance = _Allowance()


def record_refusal(
    db: Database,
    act: str,
    reason: str,
    *,
    object: str = "",
    actor: Actor | None = None,
    merchant_id: uuid.UUID | None = None,
    note: str = "",
) -> None:
    """Writes a refused attempt in a transaction of its own: the refused call's has no effect.

    `actor` is the author of the attempt, by default that of this work; the merchant is by default that of the author.
    At most 10 a second are written, of one author 2; more are counted in the metric
    `act_refusals_not_written_total`.
    """
    author = actor or actors.current()
    if not _allowance.take(author):
        NOT_WRITTEN.inc()
        return
    concerned = merchant_id or author.merchant_id
    row = _row(author, act, object, merchant_id=concerned, changes=[], note=note, refused=reason)
    with db.transaction() as tx:
        _insert(tx, row)


def is_sealed(seals: Seals, act: Mapping[str, Any] | RowMapping) -> bool:
    """Returns whether a process of the service wrote this row of the table, and it is unchanged."""
    return seals.is_right(_SEALED, _sealed_part(act), act["seal"])


def _insert(tx: Session, row: dict[str, Any]) -> None:
    seal = seals_of(tx).seal(_SEALED, _sealed_part(row))
    prepared.later(tx, _INSERT, row | {"changes": json.dumps(row["changes"]), "seal": seal})


def _sealed_part(act: Mapping[str, Any] | RowMapping) -> bytes:
    return canonical([act[name] for name in COLUMNS])


def _row(
    actor: Actor,
    act: str,
    object: str,
    *,
    merchant_id: uuid.UUID | None,
    changes: list[list[str]],
    note: str,
    refused: str = "",
) -> dict[str, Any]:
    id = new_id()
    return {
        "id": id,
        "at": time_of(id),
        "actor_kind": actor.kind,
        "actor_name": _storable(actor.name),
        "person_id": actor.person_id,
        "session_id": actor.session_id,
        "surface": actor.surface,
        "on_behalf_of": _storable(actor.on_behalf_of),
        "act": act,
        "object": _storable(object),
        "merchant_id": merchant_id,
        "changes": changes,
        "note": _storable(note),
        "request_id": request_id.current(),
        "refused": refused,
    }


def time_of(act_id: uuid.UUID) -> datetime:
    """Returns the time in a UUIDv7, to the millisecond. An act happened at the time in its id."""
    return _EPOCH + timedelta(milliseconds=act_id.int >> 80)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[list[str]]:
    changes = []
    for field in dict.fromkeys([*before, *after]):
        if SECRET_WORDS & set(field.split("_")):
            raise ValueError(f"{field} is a secret: it must not be written into an act")
        was, now = text_of(before.get(field)), text_of(after.get(field))
        if was != now:
            changes.append([field, was, now])
    return changes


def text_of(value: object) -> str:
    """Returns a value for people: amounts without exponent, times in UTC, lists with commas."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Enum():
            return text_of(value.value)
        case Decimal():
            shown = f"{value:f}"
            return shown.rstrip("0").rstrip(".") if "." in shown else shown
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds")
        case list() | tuple():
            return _storable(", ".join(text_of(each) for each in value))
        case Set():
            return _storable(", ".join(sorted(text_of(each) for each in value)))
    return _storable(str(value))


def _storable(shown: str) -> str:
    """Cuts a long text, which then ends with its hash, and removes characters that PostgreSQL refuses: NUL, and halves
    of characters.
    """
    cut = shown
    if len(shown) > MOST_CHARACTERS:
        end = f"… sha256 {hashlib.sha256(shown.encode(errors='replace')).hexdigest()}"
        cut = shown[: MOST_CHARACTERS - len(end)] + end
    return cut.replace("\x00", "").encode(errors="replace").decode()
