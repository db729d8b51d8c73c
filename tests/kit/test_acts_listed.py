"""The list of acts at size: an index serves each filter (kit.audit.listing)."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import psycopg2
import pytest
from sqlalchemy import event

from kit.audit.listing import Act, Filter, list_acts
from kit.db.database import Database
from tests.support.clock import START
from tests.support.databases import owner_url
from tests.support.signing import SEALS

ACTS: Final = 30_000
PAGE: Final = 50

# A minute apart, by 200 people for 300 merchants, with 100 kinds of acts and a rare one.
FILL: Final = f"""
INSERT INTO acts (id, at, actor_kind, actor_name, person_id, surface, on_behalf_of, act, object, merchant_id, changes,
                  note, request_id, refused, seal)
SELECT CAST(lpad(to_hex(ms), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0') AS uuid),
       to_timestamp(ms / 1000.0), 'person', 'person' || n % 200 || '@example.com',
       CAST(lpad(to_hex(n % 200), 32, '0') AS uuid), 'desk',
       CASE n % 500 WHEN 0 THEN 'named@example.com' ELSE '' END,
       CASE n % 3000 WHEN 0 THEN 'rare.set' ELSE 'kind' || n % 100 || '.set' END,
       'deal:' || n, CAST(lpad(to_hex(n % 300), 32, '0') AS uuid), '[]', '', '', '',
       sha256('')
FROM (SELECT n, {int(START.timestamp()) * 1000} + n * 60000 AS ms FROM generate_series(1, {ACTS}) AS n) AS each
"""


@pytest.fixture(scope="module")
def db(database_url: Callable[[str], str]) -> Iterator[Database]:
    url = database_url("catalog")
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(FILL)
    with closing(psycopg2.connect(owner_url(url))) as connection, connection, connection.cursor() as cursor:
        cursor.execute("ANALYZE acts")
    database = Database(url, name="tests", pool_size=2, seals=SEALS)
    yield database
    database.dispose()


def listed(db: Database, wanted: Filter, after: UUID | None = None) -> tuple[list[Act], str]:
    """Returns a page of the list, and how PostgreSQL reads it."""
    made: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool) -> None:
        if "FROM acts" in statement:
            made.append((statement, values))

    event.listen(db._engine, "before_cursor_execute", note)
    try:
        found = list_acts(db, wanted, after=after, limit=PAGE)
    finally:
        event.remove(db._engine, "before_cursor_execute", note)
    ((statement, values),) = made
    with db.autocommit() as connection:
        return found, "\n".join(connection.exec_driver_sql(f"EXPLAIN {statement}", values).scalars())


@pytest.mark.parametrize(
    ("wanted", "indexes"),
    [
        (Filter(), ["pk_acts"]),
        (Filter(author=str(UUID(int=7))), ["ix_acts_person_id"]),
        (Filter(author="person7@example.com"), ["ix_acts_actor_name", "ix_acts_on_behalf_of"]),
        (Filter(act="kind7.set"), ["ix_acts_act"]),
        (Filter(act="rare"), ["ix_acts_act"]),
        (Filter(object="deal:777"), ["ix_acts_object"]),
        (Filter(object="deal", merchant_id=UUID(int=7)), ["ix_acts_merchant_id"]),
        (Filter(merchant_id=UUID(int=7)), ["ix_acts_merchant_id"]),
        (Filter(since=START + timedelta(days=3), until=START + timedelta(days=4)), ["pk_acts"]),
    ],
    ids=["all", "person", "author", "act", "acts of a kind", "object", "two filters", "merchant", "time"],
)
def test_an_index_serves_each_filter(db: Database, wanted: Filter, indexes: list[str]) -> None:
    found, plan = listed(db, wanted)
    assert found
    assert [each.id for each in found] == sorted((each.id for each in found), reverse=True)
    assert "Seq Scan" not in plan
    assert all(index in plan for index in indexes), plan


def test_a_later_page_is_read_from_where_the_one_before_ended(db: Database) -> None:
    first, _ = listed(db, Filter(merchant_id=UUID(int=7)))
    second, plan = listed(db, Filter(merchant_id=UUID(int=7)), after=first[-1].id)
    assert second[0].id < first[-1].id
    assert "Index Cond: ((merchant_id" in plan and "(id <" in plan.partition("Index Cond")[2], plan
