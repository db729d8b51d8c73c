"""kit.db.database on a real PostgreSQL that also goes away."""

import os
import signal
import threading
import traceback
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import exc, func, insert, literal, select, text

from deploy.local.ports import free_ports
from kit.base import actors
from kit.base.ids import new_id
from kit.db.alone import alone
from kit.db.database import (
    Database,
    DatabaseBusy,
    DatabaseUnavailable,
    TransactionConflict,
    after_commit,
    refusing,
    retry_conflicts,
)
from kit.db.prepared import Prepared
from kit.work.worker import Signal
from tests.kit.tables import Note
from tests.support.servers import PostgresServer


def _notes(db: Database) -> list[str]:
    with db.transaction() as tx:
        return list(tx.scalars(select(Note.text).order_by(Note.text)))


def test_a_block_that_ends_cleanly_is_committed_and_wakes_its_signal_then(db: Database) -> None:
    signal = Signal()
    with db.transaction() as tx:
        note = Note(id=new_id(), text="kept")
        tx.add(note)
        after_commit(tx, signal.set)
        tx.flush()
        assert not signal.wait(0)
    assert signal.wait(0)
    assert note.text == "kept"  # readable after the commit
    assert _notes(db) == ["kept"]


def test_a_block_that_raises_is_rolled_back_and_wakes_nobody(db: Database) -> None:
    signal = Signal()
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:
        tx.add(Note(id=new_id(), text="lost"))
        after_commit(tx, signal.set)
        tx.flush()
        raise ZeroDivisionError
    assert not signal.wait(0)
    assert _notes(db) == []


def test_an_author_without_a_proof_reads_and_changes_nothing(db: Database) -> None:
    class NoProof(Exception):
        pass

    def work() -> None:
        actors.demand_proof(NoProof())
        with db.transaction() as tx:
            assert tx.scalar(text("SELECT 1")) == 1
        with pytest.raises(NoProof), db.transaction() as tx:
            tx.execute(insert(Note).values(id=new_id(), text="written"))
        with pytest.raises(NoProof), db.transaction() as tx:
            tx.add(Note(id=new_id(), text="added"))
        with pytest.raises(NoProof), db.autocommit():
            pytest.fail("a single statement is its own commit")

    copy_context().run(work)
    assert _notes(db) == []


def test_equal_calls_are_made_once_after_the_commit_in_their_order(db: Database) -> None:
    made: list[str] = []
    with db.transaction() as tx:
        for name in ("first", "second", "first"):
            after_commit(tx, made.append, name)
        assert not made
    assert made == ["first", "second"]


def test_each_statement_of_an_autocommit_connection_stands_on_its_own(db: Database) -> None:
    with pytest.raises(ZeroDivisionError), db.autocommit() as connection:
        connection.execute(insert(Note).values(id=new_id(), text="stays"))
        raise ZeroDivisionError
    assert _notes(db) == ["stays"]


def test_a_connection_used_for_autocommit_does_transactions_again_afterwards(
    make_db: Callable[..., Database],
) -> None:
    only_one_connection = make_db(pool_size=1)
    only_one_connection.ping()
    with pytest.raises(ZeroDivisionError), only_one_connection.transaction() as tx:
        tx.add(Note(id=new_id(), text="half"))
        tx.flush()
        raise ZeroDivisionError
    assert "half" not in _notes(only_one_connection)


def test_times_come_back_in_utc_and_decimals_exact(db: Database) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    with db.autocommit() as connection:
        row = connection.execute(select(literal(moment), literal(Decimal("0.10")), func.now())).one()
    assert row[0] == moment
    assert str(row[1]) == "0.10"
    assert row[2].utcoffset() == timedelta(0)


def test_every_connection_carries_its_limits_to_the_server(make_db: Callable[..., Database]) -> None:
    with make_db(statement_timeout_seconds=7, lock_timeout_seconds=2).autocommit() as connection:
        shown = [
            connection.scalar(text(f"SHOW {name}"))
            for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        ]
    assert shown == ["7s", "2s", "15s"]


def test_what_a_role_sets_for_itself_changes_nothing_for_its_service(
    db: Database, make_db: Callable[..., Database]
) -> None:
    hostile = {
        "search_path": "nowhere",
        "synchronous_commit": "off",
        "default_transaction_read_only": "on",
        "default_transaction_isolation": "serializable",
        "default_transaction_deferrable": "on",
        "client_encoding": "LATIN1",
        "standard_conforming_strings": "off",
        "transform_null_equals": "on",
        "bytea_output": "escape",
        "datestyle": "German",
        "intervalstyle": "sql_standard",
        "idle_session_timeout": "1",
        "local_preload_libraries": "no_such_library",
        "transaction_timeout": "200",
    }
    with db.autocommit() as connection:
        before = {name: connection.scalar(text(f"SHOW {name}")) for name in hostile}
        for name, value in hostile.items():
            connection.execute(text(f"ALTER ROLE kit SET {name} = '{value}'"))
    try:
        with make_db().autocommit() as connection:
            shown = {name: connection.scalar(text(f"SHOW {name}")) for name in hostile}
    finally:
        with db.autocommit() as connection:
            connection.execute(text("ALTER ROLE kit RESET ALL"))
    assert shown == before
    assert [name for name, value in hostile.items() if shown[name] == value] == []


def test_a_statement_over_its_time_is_busy_not_a_bug(make_db: Callable[..., Database]) -> None:
    impatient = make_db(statement_timeout_seconds=0.05)
    with pytest.raises(DatabaseBusy), impatient.transaction() as tx:
        tx.execute(text("SELECT pg_sleep(5)"))


def test_a_lock_over_its_time_is_busy_not_a_bug(db: Database, make_db: Callable[..., Database]) -> None:
    impatient = make_db(lock_timeout_seconds=0.05)
    with db.transaction() as holder:
        holder.execute(text("LOCK TABLE note IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(DatabaseBusy), impatient.transaction() as tx:
            tx.execute(select(Note))


def test_a_bug_in_a_statement_stays_what_it_is(db: Database) -> None:
    with pytest.raises(exc.ProgrammingError), db.transaction() as tx:
        tx.execute(text("SELECT nonsense"))


def test_a_failed_statements_values_are_not_in_its_message(db: Database) -> None:
    with pytest.raises(exc.IntegrityError) as raised, db.transaction() as tx:
        tx.execute(insert(Note).values(id=new_id(), text=None))
    assert "hidden" in str(raised.value)


@pytest.mark.parametrize(("constraint", "value"), [("uq_note_text", "secret"), ("ck_note_not_empty", "")])
def test_a_failed_statements_row_is_not_in_its_traceback(db: Database, constraint: str, value: str) -> None:
    with db.transaction() as tx:
        tx.add(Note(id=new_id(), text="secret"))
    id = new_id()
    with pytest.raises(exc.IntegrityError) as raised, db.transaction() as tx:
        tx.add(Note(id=id, text=value))
    told = "".join(traceback.format_exception(raised.value))
    assert constraint in told
    assert "DETAIL" not in told
    assert "(secret)" not in told
    assert str(id) not in told


class Taken(Exception):
    pass


def test_the_violation_of_a_named_constraint_becomes_its_refusal(db: Database) -> None:
    with db.transaction() as tx:
        tx.add(Note(id=new_id(), text="one"))
    with pytest.raises(Taken), refusing({"uq_note_text": Taken}), db.transaction() as tx:
        tx.add(Note(id=new_id(), text="one"))
    with pytest.raises(Taken), db.transaction() as tx, refusing({"uq_note_text": Taken}):
        tx.add(Note(id=new_id(), text="one"))
        tx.flush()
    assert _notes(db) == ["one"]


def test_the_violation_of_another_constraint_passes_unchanged(db: Database) -> None:
    with pytest.raises(exc.IntegrityError, match="ck_note_not_empty"):  # noqa: SIM117
        with refusing({"uq_note_text": Taken}), db.transaction() as tx:
            tx.add(Note(id=new_id(), text=""))


def test_of_two_deadlocked_operations_the_loser_runs_again_and_both_take_effect(db: Database) -> None:
    ids = [new_id(), new_id()]
    with db.transaction() as tx:
        tx.add_all([Note(id=ids[0], text="a"), Note(id=ids[1], text="b")])
    both_hold_one = threading.Barrier(2)
    runs: list[uuid.UUID] = []

    @retry_conflicts
    def append(first: uuid.UUID, second: uuid.UUID) -> None:
        runs.append(first)
        with db.transaction() as tx:
            tx.execute(text("UPDATE note SET text = text || '!' WHERE id = :id"), {"id": first})
            if runs.count(first) == 1:
                both_hold_one.wait(5)
            tx.execute(text("UPDATE note SET text = text || '!' WHERE id = :id"), {"id": second})

    with ThreadPoolExecutor(2) as pool:
        outcomes = [pool.submit(append, *ids), pool.submit(append, *reversed(ids))]
        for outcome in outcomes:
            outcome.result(20)
    assert len(runs) >= 3  # the loser may lose again, if it is back before the winner has gone on
    assert _notes(db) == ["a!!", "b!!"]


def test_an_operation_that_always_loses_is_given_up_after_three_times() -> None:
    runs = []

    @retry_conflicts
    def lose() -> None:
        runs.append(1)
        raise TransactionConflict("again")

    with pytest.raises(TransactionConflict):
        lose()
    assert len(runs) == 3


def test_an_exhausted_pool_says_so_after_its_timeout(make_db: Callable[..., Database]) -> None:
    small = make_db(pool_size=1, pool_timeout_seconds=0.1)
    with small.transaction() as holder:
        holder.execute(text("SELECT 1"))
        with pytest.raises(DatabaseUnavailable, match="pool"):
            small.ping()
    small.ping()


def test_a_database_that_is_away_is_unavailable() -> None:
    away = Database(f"postgresql://kit@127.0.0.1:{free_ports(1)[0]}/none", name="tests", pool_size=1)
    with pytest.raises(DatabaseUnavailable):
        away.ping()


def test_a_connection_lost_in_mid_transaction_is_unavailable_and_the_next_one_works(
    db: Database, postgres: PostgresServer
) -> None:
    with pytest.raises(DatabaseUnavailable), db.transaction() as tx:
        process = tx.scalar(text("SELECT pg_backend_pid()"))
        with db.autocommit() as other:
            other.execute(text("SELECT pg_terminate_backend(:process)"), {"process": process})
        tx.execute(select(Note))
    assert _notes(db) == []


def test_a_statement_that_a_frozen_server_does_not_answer_fails_and_no_other_connection_does(
    make_db: Callable[..., Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernel acknowledges what is sent, so nothing but a bound of our own ends the wait."""
    monkeypatch.setattr("kit.db.connections.ANSWER_MARGIN_SECONDS", 0.5)
    db = make_db(statement_timeout_seconds=0.5)
    with db.transaction() as other:
        process = other.scalar(text("SELECT pg_backend_pid()"))
        with db.transaction() as frozen:
            frozen_process = frozen.scalar(text("SELECT pg_backend_pid()"))
            assert frozen_process is not None
            os.kill(frozen_process, signal.SIGSTOP)
            try:
                with pytest.raises(exc.OperationalError):
                    frozen.execute(text("SELECT 1"))
            finally:
                os.kill(frozen_process, signal.SIGCONT)
            frozen.rollback()
        assert other.scalar(text("SELECT pg_backend_pid()")) == process
    hot = Prepared("process", "SELECT pg_backend_pid()", {}, int)
    frozen_process = db.one_or_none(hot, {})
    assert frozen_process is not None
    os.kill(frozen_process, signal.SIGSTOP)
    try:
        with pytest.raises(DatabaseUnavailable):
            db.one_or_none(hot, {})
    finally:
        os.kill(frozen_process, signal.SIGCONT)
    assert db.one_or_none(hot, {}) != frozen_process


def test_a_restart_of_postgresql_costs_no_request(db: Database, postgres: PostgresServer) -> None:
    with db.transaction() as tx, db.autocommit() as connection:
        tx.execute(text("SELECT 1"))
        connection.execute(text("SELECT 1"))
    postgres.stop()
    try:
        with pytest.raises(DatabaseUnavailable):
            db.ping()
    finally:
        postgres.start()
    db.ping()
    with db.transaction() as tx:
        tx.add(Note(id=new_id(), text="after"))
    postgres.restart()
    assert _notes(db) == ["after"]


def _process(db: Database) -> int | None:
    with db.autocommit() as connection:
        process: int | None = connection.scalar(text("SELECT pg_backend_pid()"))
        return process


def test_the_connection_that_was_used_last_is_given_out_first(db: Database) -> None:
    with db.autocommit() as below:
        last = below.scalar(text("SELECT pg_backend_pid()"))
        assert _process(db) != last
    assert [_process(db), _process(db)] == [last, last]


def test_a_connection_that_was_idle_for_long_is_replaced(
    make_db: Callable[..., Database],
) -> None:
    db = make_db(idle_seconds=0)
    assert _process(db) != _process(db)


def test_the_server_closes_an_idle_connection_after_the_client_gives_it_up(
    make_db: Callable[..., Database],
) -> None:
    db = make_db(idle_seconds=60, prepared_idle_seconds=600)
    shown = Prepared("shown", "SELECT current_setting('idle_session_timeout')", {}, str)
    with db.autocommit() as connection:
        assert connection.scalar(text("SHOW idle_session_timeout")) == "65s"
    assert db.one_or_none(shown, {}) == "605s"
    with alone(db, "test", at_most_seconds=7):
        pass
    with db.autocommit() as connection:
        assert connection.scalar(text("SHOW idle_session_timeout")) == "65s"
