"""Attempts by month: every partition has its guards, old months go at once."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import psycopg2
import psycopg2.errors
import psycopg2.extensions
import pytest

from kit.db import months
from kit.db.database import Database
from services.webhooks.store import retention
from tests.support.databases import Databases, owner_url, past_all_rules

EVENT: Final = """
INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url, destination,
    payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)
VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'invoice.success', %(status)s,
    'u', 'd', '', 1, 0, CASE WHEN %(status)s = 'pending' THEN now() END, now() - interval '1 year', now())
RETURNING id
"""
ATTEMPT: Final = """
INSERT INTO attempts (event_id, try_number, trigger, status, http_status, duration_ms, created_at)
VALUES (%s, %s, 'auto', 'success', 200, 1, now() + CAST(%s AS interval)) RETURNING id, CAST(tableoid AS regclass)::text
"""
PARTITIONS: Final = "SELECT name FROM months_of('attempts') ORDER BY until NULLS LAST"
THREE_AHEAD: Final = months.AHEAD


class Tables:
    """The database of webhooks, as its service and as its owner."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.service = psycopg2.connect(url)
        self.owner = psycopg2.connect(owner_url(url))
        for each in (self.service, self.owner):
            each.autocommit = True

    def run(self, statement: str, *values: object, by: psycopg2.extensions.connection | None = None) -> Any:
        with (by or self.service).cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else None

    def event(self, status: str = "success") -> int:
        with self.service.cursor() as cursor:
            cursor.execute(EVENT, {"status": status})
            ((id,),) = cursor.fetchall()
            return int(id)

    def attempt(self, event: int, *, at: str = "0", number: int = 1) -> tuple[int, str]:
        ((id, partition),) = self.run(ATTEMPT, event, number, at)
        return id, partition

    def partitions(self) -> list[str]:
        return [name for (name,) in self.run(PARTITIONS)]

    def month_of_the_past(self, months_ago: int) -> str:
        """Makes the partition of a month that is over, in the place of the one from before."""
        ((name, since, until),) = self.run(
            "SELECT to_char(m, '\"attempts_\"YYYY_MM'), m::text, (m + interval '1 month')::text FROM (SELECT"
            " date_trunc('month', now()) - %s * interval '1 month' AS m) AS month",
            months_ago,
        )
        if "attempts_before" in self.partitions():
            self.run("DROP TABLE attempts_before", by=self.owner)
        self.run(f"CREATE TABLE {name} (LIKE attempts_rest INCLUDING ALL EXCLUDING IDENTITY)", by=self.owner)
        self.run(
            f"ALTER TABLE attempts ATTACH PARTITION {name} FOR VALUES FROM ('{since}') TO ('{until}')",
            by=self.owner,
        )
        return str(name)

    def close(self) -> None:
        self.service.close()
        self.owner.close()


@pytest.fixture
def tables(_databases: Databases) -> Iterator[Tables]:
    made = Tables(_databases.fresh("webhooks"))
    yield made
    made.close()
    _databases.drop(made.url)


@pytest.fixture
def db(tables: Tables) -> Iterator[Database]:
    db = Database(tables.url, name="tests", pool_size=1)
    yield db
    db.dispose()


def test_every_partition_has_the_guards_of_the_table(tables: Tables) -> None:
    event = tables.event()
    tables.month_of_the_past(3)
    tables.run("SELECT add_months('attempts', 12)")
    rows = [
        tables.attempt(event, at=f"{months} months", number=months + 20) for months in (-3, *range(1, 13))
    ]
    tables.attempt(event, at="20 years", number=99)
    reached = {partition for _, partition in rows} | {"attempts_rest"}
    assert len(reached) > 12
    assert reached <= set(tables.partitions())
    for partition in tables.partitions():
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            tables.run(f"SELECT FROM {partition}")
        if partition in reached:
            with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="keep their value"):
                tables.run(f"UPDATE {partition} SET duration_ms = 2", by=tables.owner)
        keys = tables.run(
            "SELECT contype::text FROM pg_constraint WHERE conrelid = %s::regclass AND contype IN ('p', 'u', 'f')"
            " ORDER BY 1",
            partition,
        )
        assert [each for (each,) in keys] == ["f", "p", "u"]
    for id, _ in rows[1:]:
        with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="stay for a day"):
            tables.run("DELETE FROM attempts WHERE id = %s", id)
    tables.run("DELETE FROM attempts WHERE id = %s", rows[0][0])
    with pytest.raises(psycopg2.errors.UniqueViolation):
        tables.attempt(event, at="1 month", number=21)


def test_an_attempt_of_a_month_without_partition_is_kept_and_moves_when_it_comes(tables: Tables) -> None:
    event = tables.event()
    id, partition = tables.attempt(event, at="6 months")
    assert partition == "attempts_rest"
    tables.run("SELECT add_months('attempts', 12)")
    ((partition,),) = tables.run("SELECT CAST(tableoid AS regclass)::text FROM attempts WHERE id = %s", id)
    assert partition not in ("attempts_rest", "attempts_before")
    assert tables.run(
        "SELECT DISTINCT tgenabled::text FROM pg_trigger WHERE tgrelid = 'attempts_rest'::regclass"
    ) == [("O",)]


def test_nobody_has_a_heap_of_tables_made(tables: Tables) -> None:
    tables.run("SELECT add_months('attempts', 1000000)")
    tables.run("SELECT add_months('events', 12), add_months('pg_class', 12), add_months('nothing', 12)")
    assert len(tables.partitions()) <= 12 + 2


def test_old_months_go_and_what_is_needed_stays(tables: Tables, db: Database) -> None:
    done, pending = tables.event(), tables.event("pending")
    oldest, older, newer = (tables.month_of_the_past(months) for months in (5, 4, 3))
    for months_ago in (5, 4, 3):
        tables.attempt(done, at=f"-{months_ago} months", number=months_ago)
    tables.attempt(pending, at="-4 months")
    tables.attempt(done, number=1)
    with db.autocommit() as connection:
        ((before,),) = tables.run("SELECT date_trunc('month', now()) - interval '3 months'")
        turned = retention.turn_months(connection, before=before)
        assert (turned.dropped, turned.rows_until) == ([oldest], None)
        assert {older, newer} <= set(tables.partitions())
        tables.run("UPDATE events SET status = 'dead', next_retry_at = NULL WHERE id = %s", pending)
        assert retention.turn_months(connection, before=before).dropped == [older]
    assert tables.run("SELECT try_number FROM attempts ORDER BY id") == [(3,), (1,)]


def test_the_database_drops_no_month_that_ended_within_a_day(tables: Tables) -> None:
    tables.attempt(tables.event())
    there = tables.partitions()
    assert tables.run("SELECT drop_old_months_of_attempts('infinity')") == []
    assert tables.partitions() == there


def test_who_uses_the_table_is_not_waited_for(tables: Tables) -> None:
    old = tables.month_of_the_past(5)
    with closing(psycopg2.connect(tables.url)) as reader, reader.cursor() as reading:
        reading.execute("SELECT FROM attempts")
        assert tables.run("SELECT add_months('attempts', 6)") == [(0,)]
        assert tables.run("SELECT drop_old_months_of_attempts(now())") == []
        reader.rollback()
    assert tables.run("SELECT drop_old_months_of_attempts(now())") == [(old,)]
    assert tables.run("SELECT add_months('attempts', 6)") != [(0,)]


def test_a_month_that_somebody_reads_keeps_the_later_ones(tables: Tables) -> None:
    read, first, last = (tables.month_of_the_past(months) for months in (6, 7, 5))
    with closing(psycopg2.connect(owner_url(tables.url))) as reader, reader.cursor() as reading:
        reading.execute(f"SELECT FROM {read}")
        assert tables.run("SELECT drop_old_months_of_attempts(now())") == [(first,)]
        assert [each for each in (first, read, last) if each in tables.partitions()] == [read, last]
        reader.rollback()
    assert tables.run("SELECT drop_old_months_of_attempts(now())") == [(read,), (last,)]


def test_of_an_event_the_newest_attempts_are_left_when_a_pending_one_keeps_an_old_month(
    tables: Tables,
) -> None:
    done, pending = tables.event(), tables.event("pending")
    for months_ago in (6, 5):
        tables.month_of_the_past(months_ago)
        tables.attempt(done, at=f"-{months_ago} months", number=7 - months_ago)
    tables.attempt(pending, at="-6 months")
    tables.run("UPDATE events SET auto_attempts = 2 WHERE id = %s", done)
    assert tables.run("SELECT drop_old_months_of_attempts(now())") == []


def test_a_hole_among_the_months_is_counted_and_filled(tables: Tables, db: Database) -> None:
    event = tables.event()
    third = tables.partitions()[-2]
    ((now, second, after_all),) = tables.run(
        "SELECT now(), to_char(now() + interval '2 months', '\"attempts_\"YYYY_MM'), to_char(now() +"
        " interval '4 months', '\"attempts_\"YYYY_MM')"
    )
    assert second in tables.partitions()
    tables.run(f"ALTER TABLE attempts DETACH PARTITION {second}", by=tables.owner)
    id, partition = tables.attempt(event, at="2 months")
    assert partition == "attempts_rest"
    with db.autocommit() as connection:
        assert retention.months_left(connection, now=now) == 1
        assert retention.turn_months(connection, before=None).made == 0, "the owner archives it"
        tables.run(f"DROP TABLE {second}", by=tables.owner)
        assert retention.turn_months(connection, before=None).made == 1
        assert retention.months_left(connection, now=now) == THREE_AHEAD
    assert tables.run("SELECT CAST(tableoid AS regclass)::text FROM attempts WHERE id = %s", id) == [
        (second,)
    ]
    assert third in tables.partitions() and after_all not in tables.partitions()


def test_tables_of_the_caller_do_not_stand_for_those_of_the_catalog(tables: Tables) -> None:
    """A service's role may make no temporary tables, unless an administrator gives it that right."""
    there = tables.partitions()
    database = tables.url.rpartition("/")[2]
    with closing(psycopg2.connect(past_all_rules(tables.url))) as superuser, superuser:
        tables.run(f"GRANT TEMP ON DATABASE {database} TO CURRENT_ROLE, webhooks", by=superuser)
    for name in ("pg_inherits", "pg_class", "pg_trigger"):
        tables.run(f"CREATE TEMP TABLE {name} (LIKE pg_catalog.{name})")
    assert tables.partitions() == there
    tables.run(
        "CREATE TRIGGER stay BEFORE TRUNCATE ON attempts_rest FOR EACH STATEMENT"
        " EXECUTE FUNCTION refuse_rewriting('of a test')",
        by=tables.owner,
    )
    tables.run("SELECT add_months('attempts', 12)")
    copied = "SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = %s::regclass AND tgname = 'stay'"
    assert tables.run(copied, tables.partitions()[-2]) == [(1,)]


def test_months_that_are_left_are_counted(tables: Tables, db: Database) -> None:
    ((now, in_three_months),) = tables.run("SELECT now(), now() + interval '3 months'")
    with db.autocommit() as connection:
        assert retention.months_left(connection, now=now) == THREE_AHEAD
        assert retention.months_left(connection, now=in_three_months) == 0
        # By their end: in the last days of a month the partition from before has the next one too.
        for (each,) in tables.run(
            "SELECT name FROM months_of('attempts')"
            " WHERE until > (date_trunc('month', now() AT TIME ZONE 'UTC') + interval '2 months') AT TIME ZONE 'UTC'"
        ):
            tables.run(f"DROP TABLE {each}", by=tables.owner)
        assert retention.months_left(connection, now=now) == 1
        assert retention.turn_months(connection, before=None).made == 2
        assert retention.months_left(connection, now=now) == THREE_AHEAD
