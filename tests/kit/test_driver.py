"""kit.db.driver: statements that go to the server with others, on a real PostgreSQL."""

from collections.abc import Callable

import psycopg2
import pytest
from sqlalchemy import exc, insert, select, text

from kit.base.ids import new_id
from kit.db import prepared
from kit.db.database import Database, DatabaseUnavailable
from kit.db.prepared import Prepared
from kit.db.watchdog import WatchedConnection
from tests.kit.tables import Note

_ADD = Prepared(
    "add_note",
    "INSERT INTO note (id, text) VALUES (:id, :text)",
    {"id": "uuid", "text": "text"},
    lambda: None,
)
_COUNT = Prepared("count_notes", "SELECT count(*) FROM note", {}, int)


@pytest.fixture
def only_one_connection(db: Database, make_db: Callable[..., Database]) -> Database:
    return make_db(pool_size=1)


def _texts(db: Database) -> list[str]:
    with db.transaction() as tx:
        return sorted(tx.scalars(select(Note.text)))


def test_a_statement_for_later_goes_before_the_next_one_of_any_kind(only_one_connection: Database) -> None:
    with only_one_connection.transaction() as tx:
        prepared.later(tx, _ADD, {"id": new_id(), "text": "100% 'quoted' %s; :id"})
        assert prepared.one_or_none(tx, _COUNT, {}) == 1
        prepared.later(tx, _ADD, {"id": new_id(), "text": "b"})
        assert tx.scalar(text("SELECT count(*) FROM note")) == 2
        prepared.later(tx, _ADD, {"id": new_id(), "text": "c"})
        tx.execute(insert(Note), [{"id": new_id(), "text": "d"}, {"id": new_id(), "text": "e"}])
        prepared.later(tx, _ADD, {"id": new_id(), "text": "f"})
        portions = tx.execute(select(Note.text).execution_options(yield_per=2)).partitions()
        assert sum(len(portion) for portion in portions) == 6
        prepared.later(tx, _ADD, {"id": new_id(), "text": "g"})
    assert _texts(only_one_connection) == ["100% 'quoted' %s; :id", "b", "c", "d", "e", "f", "g"]


def test_a_statement_for_later_is_dropped_when_the_block_raises(only_one_connection: Database) -> None:
    with pytest.raises(ZeroDivisionError), only_one_connection.transaction() as tx:
        prepared.later(tx, _ADD, {"id": new_id(), "text": "lost"})
        raise ZeroDivisionError
    assert _texts(only_one_connection) == []


def test_a_statement_that_fails_at_the_commit_undoes_all_and_the_connection_goes_on(
    only_one_connection: Database,
) -> None:
    id = new_id()
    with pytest.raises(exc.IntegrityError), only_one_connection.transaction() as tx:
        prepared.later(tx, _ADD, {"id": id, "text": "first"})
        prepared.later(tx, _ADD, {"id": id, "text": "again"})
    assert _texts(only_one_connection) == []


def test_a_connection_that_lost_its_statements_fails_one_commit_and_is_replaced(
    only_one_connection: Database,
) -> None:
    with only_one_connection.transaction() as tx:
        prepared.later(tx, _ADD, {"id": new_id(), "text": "planned"})
    with only_one_connection.transaction() as tx:
        tx.execute(text("DEALLOCATE ALL"))  # as a pooler in between would
    with pytest.raises(DatabaseUnavailable), only_one_connection.transaction() as tx:
        prepared.later(tx, _ADD, {"id": new_id(), "text": "lost"})
    with only_one_connection.transaction() as tx:
        prepared.later(tx, _ADD, {"id": new_id(), "text": "planned anew"})
    assert _texts(only_one_connection) == ["planned", "planned anew"]


def test_a_transaction_whose_failed_statement_was_caught_is_not_taken_for_committed(
    only_one_connection: Database,
) -> None:
    id = new_id()
    with pytest.raises(exc.InternalError, match="rolled back"), only_one_connection.transaction() as tx:
        prepared.one_or_none(tx, _ADD, {"id": id, "text": "first"})
        with pytest.raises(exc.IntegrityError) as caught:
            prepared.one_or_none(tx, _ADD, {"id": id, "text": "again"})
        assert isinstance(caught.value.orig, psycopg2.IntegrityError)
    assert _texts(only_one_connection) == []


def test_the_isolation_of_one_transaction_is_not_that_of_the_next(only_one_connection: Database) -> None:
    def level() -> str:
        with only_one_connection.transaction() as tx:
            return str(tx.scalar(text("SHOW transaction_isolation")))

    with only_one_connection.transaction() as tx:
        tx.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        assert tx.scalar(text("SHOW transaction_isolation")) == "repeatable read"
    assert level() == "read committed"


def test_objects_that_change_together_are_written_together(only_one_connection: Database) -> None:
    notes = [Note(id=new_id(), text=each) for each in ("a", "b", "c")]
    with only_one_connection.transaction() as tx:
        tx.add_all(notes)
    with only_one_connection.transaction() as tx:
        for note in tx.scalars(select(Note)).all():
            note.text += "2"
    assert _texts(only_one_connection) == ["a2", "b2", "c2"]


def test_a_statement_for_later_outlives_one_that_can_not_be_written(only_one_connection: Database) -> None:
    with only_one_connection.transaction() as tx:
        prepared.later(tx, _ADD, {"id": new_id(), "text": "kept"})
        with pytest.raises(ValueError, match="NUL"):
            tx.execute(text("SELECT :text"), {"text": "\0"})
    assert _texts(only_one_connection) == ["kept"]


def test_a_connection_without_an_answer_is_closed_and_the_next_one_serves(
    make_db: Callable[..., Database],
) -> None:
    db = make_db(pool_size=1, statement_timeout_seconds=60)
    with pytest.raises(DatabaseUnavailable, match="closed the connection"), db.transaction() as tx:
        tx.execute(
            text("SET LOCAL client_connection_check_interval = 100")
        )  # the server ends the statement, too
        driver = tx.connection().connection.driver_connection
        assert isinstance(driver, WatchedConnection)
        driver.bound(0)
        tx.execute(text("SELECT pg_sleep(20)"))
    db.ping()
