"""The queues of a service that wait for an operator: their numbers and ages, all in one statement.

Each queue reads a few rows of an index: the first, the last, and the entries up to `MOST_COUNTED`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, text

MOST_COUNTED: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue as its rows in the database.

    name   as in `fiatgate.queues.v1.Queue`
    table  where `waits` is the condition of its rows, in SQL; `:now` in it is the time of the call
    at     the column since when a row waits
    order  the column of the index that has these rows, where that is another one than `at`
    """

    name: str
    table: str
    waits: str
    at: str
    order: str = ""

    def statement(self) -> str:
        order = self.order or self.at
        rows = f"FROM {self.table} WHERE {self.waits}"
        return (
            f"SELECT '{self.name}', (SELECT count(*) FROM (SELECT {rows} LIMIT {MOST_COUNTED}) AS counted), "  # noqa: S608
            f"(SELECT {self.at} {rows} ORDER BY {order} LIMIT 1), "
            f"(SELECT {self.at} {rows} ORDER BY {order} DESC LIMIT 1)"
        )


@dataclass(frozen=True, slots=True)
class Waiting:
    """The rows that wait in a queue: their number, at most MOST_COUNTED, and since when the first and the last do."""

    name: str
    count: int
    oldest_at: datetime | None
    newest_at: datetime | None


def waiting(connection: Connection, queues: Sequence[Queue], *, now: datetime) -> list[Waiting]:
    """Returns the queues in their order. One statement."""
    statement = " UNION ALL ".join(each.statement() for each in queues)
    return [Waiting(*row) for row in connection.execute(text(statement), {"now": now})]
