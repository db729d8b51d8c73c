"""kit.db.prepared, alone and in transactions, on a real PostgreSQL that also goes away."""

import threading
import traceback
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg2
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from kit.db import prepared
from kit.db.database import Database, DatabaseBusy, DatabaseUnavailable
from kit.db.prepared import CALLS_PER_PLAN, Prepared
from tests.support.servers import PostgresServer


def _tuple(*columns: Any) -> tuple[Any, ...]:
    return columns


_DOUBLE = Prepared("double", "SELECT :number * 2 WHERE :number > 0", {"number": "bigint"}, int)
_CALLS_OF_PLAN = Prepared(
    "calls_of_plan",
    "SELECT generic_plans + custom_plans, pg_backend_pid() FROM pg_prepared_statements WHERE name = :name",
    {"name": "text"},
    _tuple,
)


Run = Callable[[Prepared[Any], dict[str, Any]], Any]


@pytest.fixture(params=["alone", "in_a_transaction"])
def run(request: pytest.FixtureRequest, db: Database) -> Run:
    def in_a_transaction(statement: Prepared[Any], values: dict[str, Any]) -> Any:
        with db.transaction() as tx:
            return prepared.one_or_none(tx, statement, values)

    return db.one_or_none if request.param == "alone" else in_a_transaction


def test_the_only_row_becomes_what_the_statement_says_and_no_row_none(run: Run) -> None:
    assert run(_DOUBLE, {"number": 21}) == 42
    assert run(_DOUBLE, {"number": -1}) is None


def test_values_come_back_as_they_were_given(run: Run) -> None:
    given = {
        "id": uuid.uuid4(),
        "amount": Decimal("0.10"),
        "at": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        "names": ["%s", ":id", "'"],
        "none": None,
        "some": [],
    }
    types = ("uuid", "numeric", "timestamptz", "text[]", "text", "text[]")
    echo = Prepared(
        "echo",
        "SELECT :id, :amount, :at, :names, :none::text, :some",
        dict(zip(given, types, strict=True)),
        _tuple,
    )
    answer = run(echo, given)
    assert answer is not None
    assert dict(zip(given, answer, strict=True)) == given
    assert answer[2].utcoffset() == timedelta(0)


def test_a_statement_is_planned_once_and_anew_after_so_many_calls(run: Run) -> None:
    def calls() -> int:
        counted = run(_CALLS_OF_PLAN, {"name": "double"})
        assert counted is not None
        return int(counted[0])

    for _ in range(CALLS_PER_PLAN):
        run(_DOUBLE, {"number": 1})
    assert calls() == CALLS_PER_PLAN
    run(_DOUBLE, {"number": 1})
    assert calls() == 1


def test_a_statement_with_an_array_is_not_planned_at_each_call(run: Run) -> None:
    """A plan for any array looks dearer than one for the array at hand; by default PostgreSQL makes the latter."""
    among = Prepared(
        "among",
        "SELECT count(*) FROM unnest(:numbers) AS n WHERE EXISTS (SELECT FROM pg_class WHERE oid = n)",
        {"numbers": "bigint[]"},
        int,
    )
    planned = Prepared(
        "planned", "SELECT custom_plans FROM pg_prepared_statements WHERE name = :name", {"name": "text"}, int
    )
    for _ in range(20):
        run(among, {"numbers": [1]})
    assert run(planned, {"name": "among"}) == 0


def test_a_connection_that_lost_its_statements_fails_once_and_is_replaced(run: Run) -> None:
    assert run(_DOUBLE, {"number": 1}) == 2
    forget = Prepared("forget", "SELECT 1", {}, int)
    forget.prepare, forget.execute = "DEALLOCATE ALL", "SELECT 1"  # as a pooler in between would
    run(forget, {})
    with pytest.raises((psycopg2.Error, DBAPIError)):
        run(_DOUBLE, {"number": 1})
    assert run(_DOUBLE, {"number": 1}) == 2


def test_a_connection_whose_statement_returns_another_type_by_now_fails_once_and_is_replaced(
    run: Run, db: Database
) -> None:
    def change(statement: str) -> None:
        with db.transaction() as tx:
            tx.execute(text(statement))

    change("CREATE TABLE typed (number integer)")
    change("INSERT INTO typed VALUES (7)")
    typed = Prepared("typed", "SELECT number FROM typed", {}, str)
    assert run(typed, {}) == "7"
    change("ALTER TABLE typed ALTER number TYPE text")
    try:
        with pytest.raises((psycopg2.Error, DBAPIError), match="cached plan"):
            run(typed, {})
        assert run(typed, {}) == "7"
    finally:
        change("DROP TABLE typed")


def test_a_statement_that_could_not_be_planned_anew_is_planned_on_a_new_connection(run: Run) -> None:
    for _ in range(CALLS_PER_PLAN):
        run(_DOUBLE, {"number": 1})
    broken = Prepared("double", "SELECT :number * 2 FROM no_such_table", {"number": "bigint"}, int)
    # Its turn to be planned: the old plan is gone, the new one is refused.
    with pytest.raises((psycopg2.Error, DBAPIError)):
        run(broken, {"number": 1})
    assert run(_DOUBLE, {"number": 1}) == 2


def test_a_statement_without_rows_returns_none_and_is_part_of_the_transaction(db: Database) -> None:
    insert = Prepared("insert", "INSERT INTO numbers VALUES (:number)", {"number": "bigint"}, int)
    count = Prepared("count", "SELECT count(*) FROM numbers WHERE number >= :least", {"least": "bigint"}, int)
    with db.transaction() as tx:
        tx.execute(text("CREATE TEMPORARY TABLE numbers (number bigint) ON COMMIT DROP"))
        assert prepared.one_or_none(tx, insert, {"number": 7}) is None
        assert prepared.one_or_none(tx, count, {"least": 1}) == 1


def test_each_thread_has_a_connection_of_its_own_and_keeps_it(db: Database) -> None:
    both = threading.Barrier(2)

    def processes() -> set[int]:
        both.wait(5)
        rows = [db.one_or_none(_CALLS_OF_PLAN, {"name": "calls_of_plan"}) for _ in range(3)]
        return {row[1] for row in rows if row is not None}

    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.submit(processes) for _ in range(2))
        assert len(one.result(10)) == len(other.result(10)) == 1
        assert one.result() != other.result()


def test_more_than_one_row_is_a_bug(db: Database) -> None:
    series = Prepared("series", "SELECT n FROM generate_series(1, :most) AS n", {"most": "bigint"}, int)
    with pytest.raises(psycopg2.ProgrammingError, match="more than one row"):
        db.one_or_none(series, {"most": 2})


def test_a_hot_statement_over_its_time_is_busy_and_the_next_one_works(
    make_db: Callable[..., Database],
) -> None:
    impatient = make_db(statement_timeout_seconds=0.05)
    sleep = Prepared("sleep", "SELECT pg_sleep(:seconds)", {"seconds": "double precision"}, _tuple)
    with pytest.raises(DatabaseBusy):
        impatient.one_or_none(sleep, {"seconds": 5})
    assert impatient.one_or_none(_DOUBLE, {"number": 1}) == 2


def test_a_failed_hot_statements_values_are_not_in_its_traceback(db: Database) -> None:
    secret = uuid.uuid4().hex
    refused = Prepared("refused", "SELECT :number", {"number": "bigint"}, int)
    with pytest.raises(psycopg2.Error, match="bigint") as raised:
        db.one_or_none(refused, {"number": [secret]})
    assert secret not in "".join(traceback.format_exception(raised.value))


def test_after_dispose_a_hot_statement_has_a_new_connection(db: Database) -> None:
    db.one_or_none(_DOUBLE, {"number": 1})
    db.dispose()
    assert db.one_or_none(_DOUBLE, {"number": 1}) == 2


def test_a_connection_of_hot_statements_that_was_idle_for_long_is_replaced(
    make_db: Callable[..., Database],
) -> None:
    db = make_db(prepared_idle_seconds=0)
    process = Prepared("process", "SELECT pg_backend_pid()", {}, int)
    assert db.one_or_none(process, {}) != db.one_or_none(process, {})
    assert db.pool_use()["prepared"] == 1


def test_a_restart_of_postgresql_costs_no_hot_statement(db: Database, postgres: PostgresServer) -> None:
    db.one_or_none(_DOUBLE, {"number": 1})
    postgres.stop()
    try:
        with pytest.raises(DatabaseUnavailable):
            db.one_or_none(_DOUBLE, {"number": 1})
    finally:
        postgres.start()
    assert db.one_or_none(_DOUBLE, {"number": 1}) == 2
    postgres.restart()
    assert db.one_or_none(_DOUBLE, {"number": 1}) == 2


def test_connections_of_hot_statements_are_counted_beside_the_pool(db: Database) -> None:
    before = db.pool_use()
    assert before["prepared"] == 0
    db.one_or_none(_DOUBLE, {"number": 1})
    with ThreadPoolExecutor(1) as another:
        another.submit(db.one_or_none, _DOUBLE, {"number": 1}).result(10)
        assert db.pool_use() == before | {"prepared": 2}
    db.dispose()
    assert db.pool_use()["prepared"] == 0
