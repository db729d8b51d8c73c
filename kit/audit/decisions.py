"""Decisions: a value that people decide counts only as the last act about it says.

Services compare before they use such a value (`is_as_decided`), and `fiatgate verify` compares all of them
(`follow_acts`). A row that someone inserts or changes by SQL has no act, because acts have seals.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from sqlalchemy import RowMapping, text
from sqlalchemy.orm import Session

from kit.audit.acts import COLUMNS, is_sealed, text_of
from kit.base.clock import SystemClock, monotonic_seconds
from kit.db.books import Difference, Follows, ordered
from kit.db.database import Database, seals_of
from kit.observe import metrics
from kit.observe.log import get_logger

UNDECIDED: Final = metrics.counter(
    "undecided_values",
    "Values that were not used because no act decided them: changed past the service",
    ["kind"],
)
REMEMBERED_MOST: Final = 10_000
OF_MERCHANT: Final = "merchant_id"
REMEMBERED_SECONDS: Final = 5.0
SETTLING: Final = timedelta(seconds=5)

Change: TypeAlias = tuple[str, str, datetime]
"""The value before and after an act, and the time of the act."""
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)

Due: TypeAlias = tuple[str, ...]
"""The values that a field may have by its acts, as `text_of` writes them: that of the last act first."""
NOTHING: Final[Due] = ("",)

_log = get_logger()

_ACTS_ON = text(f"""
SELECT {", ".join(COLUMNS)}, seal FROM acts
WHERE object = ANY(:objects) AND act = ANY(:acts) AND refused = '' ORDER BY id
""")  # noqa: S608  made of constants


def acts_on(
    tx: Session, objects: Collection[str], names: Collection[str], *, until: datetime | None = None
) -> Sequence[RowMapping]:
    """Returns the acts with these names on these objects that were done and are rightly sealed, oldest first."""
    seals = seals_of(tx)
    found = tx.execute(_ACTS_ON, {"objects": list(objects), "acts": list(names)}).mappings()
    return [row for row in found if (until is None or row["at"] < until) and is_sealed(seals, row)]


def moments_ago() -> datetime:
    """Returns the time before which acts are compared as well: a value may have been read just before its last act."""
    return SystemClock().now() - SETTLING


@dataclass(frozen=True)
class Decided:
    """The values of one kind of thing.

    kind    the first part of the object of its acts: "requisite" for requisite:ID
    acts    the names of the acts that decide them
    fields  the names of the values in these acts; with "merchant_id" the merchant of the acts counts too
    first   the values of things that a migration makes, by id
    """

    kind: str
    acts: Sequence[str]
    fields: Sequence[str]
    first: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def values(
        self, tx: Session, ids: Iterable[object], *, until: datetime | None = None
    ) -> dict[str, dict[str, Due]]:
        """Returns what is due by id and field. An id without an act is left out."""
        texts = [str(id) for id in ids]
        changes: dict[str, defaultdict[str, list[Change]]] = {
            id: defaultdict(list, {field: [("", value, EARLIEST)] for field, value in self.first[id].items()})
            for id in texts
            if id in self.first
        }
        for act in acts_on(tx, [f"{self.kind}:{id}" for id in texts], self.acts, until=until):
            of_fields = changes.setdefault(act["object"].partition(":")[2], defaultdict(list))
            for name, before, after in act["changes"]:
                of_fields[name].append((before, after, act["at"]))
            if OF_MERCHANT in self.fields:
                of_fields[OF_MERCHANT].append(("", text_of(act["merchant_id"]), act["at"]))
        return {id: {name: due(of) for name, of in fields.items()} for id, fields in changes.items()}

    def differences(
        self, decided: Mapping[str, Due] | None, found: Mapping[str, Any]
    ) -> Iterator[tuple[str, str, str]]:
        """Yields each value that is not a due one: field, found, due. A thing without values needs no act."""
        if decided is None and any(text_of(found[name]) for name in self.fields):
            yield "act", "none", f"one of {', '.join(self.acts)}"
            return
        for name in self.fields:
            is_now, values = text_of(found[name]), (decided or {}).get(name, NOTHING)
            if is_now not in values:
                yield name, is_now or "nothing", f"{values[0] or 'nothing'}, by the last act about it"


def due(changes: Sequence[Change]) -> Due:
    """Returns what is due after these changes, oldest first: the value of the last.

    Clocks of machines differ. If the last two are within seconds and fit only in the other order, both values are due;
    of off and on again, which fit in both orders, only the last is.
    """
    before, last, at = changes[-1]
    if len(changes) > 1:
        before_other, other, at_other = changes[-2]
        first = changes[-3][1] if len(changes) > 2 else ""
        if (first, last) == (before, before_other) and other != before and at - at_other < SETTLING:
            return (last, other)
    return (last,)


def before_by_acts(tx: Session, kind: Decided, id: object, *names: str) -> dict[str, str]:
    """Returns the values that earlier acts decided, of these fields or of all, for `before` of the next act. Those of
    the row may have been written by SQL: an act that began with them would bless them, or not be written at all.
    """
    decided = kind.values(tx, [id]).get(str(id), {})
    return {name: decided.get(name, NOTHING)[0] for name in names or kind.fields} if decided else {}


def decided_change(
    tx: Session,
    kind: Decided,
    id: object,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    given: Collection[str] = (),
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the values before and after a change for its act, from the rows before and after: what acts decided, and
    that with the values that the call changed or was `given`. Any other may be one that SQL wrote: the act must not
    bless it.
    """
    decided = before_by_acts(tx, kind, id)
    was = {name: decided.get(name, "" if name in kind.fields else before.get(name)) for name in after}
    kept = {
        name
        for name, value in after.items()
        if name not in given and text_of(before.get(name)) == text_of(value)
    }
    return was, {**after, **{name: was.get(name) for name in kept}}


def is_as_decided(
    tx: Session, kind: Decided, id: object, found: Mapping[str, Any], *, locked: bool = False
) -> bool:
    """Returns whether the last acts gave the thing these values. If not, logs and counts it. `locked`: the row is, so
    its values can't be those from just before the last act.
    """
    for until in (None,) if locked else (None, moments_ago()):
        wrong = next(kind.differences(kind.values(tx, [id], until=until).get(str(id)), found), None)
        if wrong is None:
            return True
        field, is_now, due = wrong
    UNDECIDED.labels(kind.kind).inc()
    _log.error("value_not_decided", object=f"{kind.kind}:{id}", field=field, found=is_now, due=due)
    return False


class Remembered:
    """The values that a process has compared, by id, each for a few seconds."""

    def __init__(self) -> None:
        self._values: dict[object, tuple[float, object]] = {}

    def has(self, id: object, value: object) -> bool:
        at, known = self._values.get(id, (0.0, None))
        return known == value and monotonic_seconds() - at < REMEMBERED_SECONDS

    def add(self, id: object, value: object) -> None:
        if len(self._values) >= REMEMBERED_MOST:
            self._values.clear()
        self._values[id] = (monotonic_seconds(), value)


class Known:
    """The decided values that one process has compared."""

    def __init__(self, db: Database, kind: Decided) -> None:
        self._db = db
        self._kind = kind
        self._remembered = Remembered()

    def are(self, id: object, thing: object, tx: Session | None = None) -> bool:
        """Returns whether the last acts gave the thing the values that it has. If not, logs and counts it. Reads in the
        transaction of the caller if it has one.
        """
        values = {name: text_of(getattr(thing, name)) for name in self._kind.fields}
        if self._remembered.has(id, values):
            return True
        with nullcontext(tx) if tx is not None else self._db.transaction() as reading:
            if not is_as_decided(reading, self._kind, id, values):
                return False
        self._remembered.add(id, values)
        return True


def follow_acts(
    kind: Decided,
    *,
    table: str,
    id: str = "id",
    where: str = "true",
    key_type: str = "uuid",
    made_by: Collection[str] = (),
    has_first: bool = True,
    **columns: str,
) -> Follows:
    """Returns the comparison of all rows of a table with their acts.

    id        the column or expression with the id in the acts' object; the table's key
    where     the rows whose values acts decide
    made_by   acts whose object must have a row, as each id in `kind.first` must if `has_first`: a migration made it
    columns   the expressions of fields that are no column
    """
    selected = ", ".join(f"{columns.get(name, name)} AS {name}" for name in kind.fields)
    key = ordered(id, key_type)
    span_of_rows = f"{key} > CAST(:first AS {key_type}) AND {key} <= CAST(:last AS {key_type})"
    rows = text(
        f"SELECT {id} AS id_of_row, {selected} FROM {table} WHERE {span_of_rows} AND {where}"  # noqa: S608  made of constants
    )
    there = text(f"SELECT {id} FROM {table} WHERE {span_of_rows}")  # noqa: S608
    made = text(f"""
        SELECT DISTINCT object FROM acts
        WHERE act = ANY(:acts) AND refused = ''
          AND object COLLATE "C" > '{kind.kind}:' || :first AND object COLLATE "C" <= '{kind.kind}:' || :last
    """)  # noqa: S608

    def follows(tx: Session, first: str, last: str) -> Iterator[Difference]:
        span = {"first": first, "last": last}
        found = {str(row["id_of_row"]): row for row in tx.execute(rows, span).mappings()}
        decided = kind.values(tx, found)
        for each, row in found.items():
            for name, is_now, due in kind.differences(decided.get(each), dict(row)):
                yield each, name, is_now, due
        if made_by:
            ids = {str(each) for each in tx.scalars(there, span)}
            gone = {
                object
                for object in tx.scalars(made, span | {"acts": list(made_by)})
                if object.partition(":")[2] not in ids
            }
            for object in dict.fromkeys(act["object"] for act in acts_on(tx, gone, made_by)):
                yield (
                    object.partition(":")[2],
                    "row",
                    "deleted",
                    f"there: it has an act {' or '.join(made_by)}",
                )
            for first_id in kind.first if has_first else ():
                if first < first_id <= last and first_id not in ids:
                    yield first_id, "row", "deleted", "there: a migration made it"

    return follows
