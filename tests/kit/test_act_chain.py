"""The chain of acts: every act gets into it, and no change of acts, entries or heads goes unnoticed.

The tampering is that of a superuser with triggers off, who has all code and no key.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import psycopg2
import psycopg2.extras
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from kit.audit import acts, chaining, checking, heads
from kit.audit.chain import EMPTY, Head, hash_of, head
from kit.audit.chaining import Chaining, earliest_id
from kit.audit.checking import Report
from kit.audit.heads import HeadRefused
from kit.base.clock import SystemClock
from kit.base.seals import Seals
from kit.db.database import Database
from tests.support.clock import ManualClock
from tests.support.databases import Databases, past_all_rules
from tests.support.signing import SEAL_KEY, SIGNING_KEY

LATER: Final = timedelta(minutes=30)
OTHER_KEY: Final = SIGNING_KEY
COPY: Final = ", ".join(each for each in acts.COLUMNS if each not in ("id", "at"))
INSERT: Final = f"INSERT INTO acts SELECT %s, now() - interval '1 day', {COPY}, sha256('') FROM acts LIMIT 1"


@dataclass
class Side:
    """One service: its database, its worker, and its database past all rules."""

    name: str
    url: str
    db: Database
    chaining: Chaining

    def act(self, number: int = 1) -> None:
        with self.db.transaction() as tx:
            for _ in range(number):
                acts.record(tx, "rate.set", "currency:EUR", after={"rate": "1.05"})
        self.chain()

    def chain(self) -> None:
        while self.chaining.step():
            pass

    def head(self) -> Head:
        with self.db.transaction() as tx:
            found = head(tx)
        assert found is not None
        return found

    def execute(self, statement: str, *values: object) -> list[dict[str, Any]]:
        with (
            closing(psycopg2.connect(past_all_rules(self.url))) as connection,
            connection,
            connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor,
        ):
            psycopg2.extras.register_uuid(conn_or_curs=connection)  # type: ignore[no-untyped-call]
            cursor.execute(statement, values)
            return [dict(row) for row in cursor.fetchall()] if cursor.description else []

    def cut(self, number: int) -> None:
        """Removes the entries from this number on, with their acts."""
        self.execute("DELETE FROM act_chain WHERE number >= %s", number)
        self.execute("DELETE FROM acts WHERE id NOT IN (SELECT act_id FROM act_chain)")

    def check(self, known: Sequence[Head] = (), *, later: timedelta = LATER) -> Report:
        """What `fiatgate verify` finds, in small pages, half an hour later."""
        clock = ManualClock(SystemClock().now() + later)
        found = Report(more=True)
        while found.more:
            page = checking.check_page(self.db, clock, after=found.last, limit=2, known=known)
            found.problems += page.problems
            found.unreadable += page.unreadable
            found.checked += page.checked
            found.last, found.more = page.last, page.more
        return found


def side_of(databases: Databases, name: str, *keys: str) -> Side:
    url = databases.fresh(name)
    db = Database(url, name="tests", pool_size=4, seals=Seals(keys))
    return Side(name, url, db, Chaining(db, SystemClock()))


@pytest.fixture
def service(_databases: Databases) -> Iterator[Side]:
    made = side_of(_databases, "catalog", SEAL_KEY)
    yield made
    made.db.dispose()


@pytest.fixture
def keeper(_databases: Databases) -> Iterator[Side]:
    made = side_of(_databases, "identity", OTHER_KEY)
    yield made
    made.db.dispose()


def give(service: Side, keeper: Side) -> list[Head]:
    """Returns the head that the keeper has after it was given the present one."""
    own = service.head()
    heads.keep(keeper.db, SystemClock(), service=service.name, count=own.count, hash=own.hash)
    return kept(service, keeper)


def kept(service: Side, keeper: Side) -> list[Head]:
    with keeper.db.transaction() as tx:
        return [heads.kept(tx)[service.name]]


def test_acts_are_chained_in_the_order_of_time_each_once_by_two_processes(
    service: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaining, "PAGE", 4)
    monkeypatch.setattr(chaining, "BATCH", 3)
    with service.db.transaction() as tx:
        for _ in range(40):
            acts.record(tx, "rate.set", "currency:EUR")
    workers = [service.chaining, Chaining(service.db, SystemClock())]
    with ThreadPoolExecutor(2) as threads:
        while service.chaining.waiting().acts:
            for each in [threads.submit(worker.step) for worker in workers]:
                each.result()

    rows = service.execute("SELECT number, act_id FROM act_chain ORDER BY number")
    assert [row["number"] for row in rows] == list(range(1, 41))
    assert [row["act_id"] for row in rows] == sorted(row["act_id"] for row in rows)
    assert service.check().problems == []


def test_an_act_that_becomes_visible_after_a_later_one_is_chained_as_well(service: Side) -> None:
    with service.db.transaction() as slow:
        acts.record(slow, "rate.set", "currency:EUR")
        service.act()
        assert service.head().count == 1
    assert service.chaining.waiting().acts == 1

    service.chain()

    assert service.head().count == 2
    assert service.check().problems == []


def test_an_act_that_waits_is_counted_and_becomes_a_problem_after_minutes(service: Side) -> None:
    with service.db.transaction() as tx:
        acts.record(tx, "rate.set", "currency:EUR")

    assert service.check(later=timedelta(0)).problems == []
    (problem,) = service.check().problems
    assert "not in the chain" in problem


def test_an_act_of_the_future_does_not_stop_the_chain(service: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaining, "PAGE", 1)
    service.act()
    service.execute(INSERT, earliest_id(SystemClock().now() + timedelta(days=3000)))
    service.chain()
    service.act(2)
    assert service.head().count == 4


@pytest.mark.parametrize("number", [2**63 - 1, 3, 1])
def test_no_entry_leaves_out_numbers(service: Side, number: int) -> None:
    """A chain could not go on after the greatest number that the column holds."""
    service.act()
    copy = text("INSERT INTO act_chain SELECT :number, gen_random_uuid(), hash, chained_at FROM act_chain")
    with pytest.raises(DBAPIError), service.db.transaction() as tx:
        tx.execute(copy, {"number": number})


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE acts SET note = 'x' WHERE id = (SELECT act_id FROM act_chain WHERE number = 3)", "as it is"),
        (
            "UPDATE acts SET seal = sha256('') WHERE id = (SELECT max(act_id::text)::uuid FROM act_chain)",
            "as it is",
        ),
        ("DELETE FROM acts WHERE id = (SELECT act_id FROM act_chain WHERE number = 3)", "is missing"),
        ("UPDATE act_chain SET hash = sha256(hash) WHERE number = 3", "the entry was changed"),
        ("UPDATE act_chain SET chained_at = now() WHERE number = 3", "the entry was changed"),
        ("UPDATE act_chain SET act_id = gen_random_uuid() WHERE number = 3", "is missing"),
        ("DELETE FROM act_chain WHERE number = 3", "entries 3 to 3 of the chain are missing"),
        ("DELETE FROM act_chain WHERE number <= 3", "entries 1 to 3 of the chain are missing"),
        (INSERT.replace("%s", "gen_random_uuid()"), "not in the chain"),
    ],
)
def test_verify_names_what_was_changed_removed_and_inserted(
    service: Side, statement: str, named: str
) -> None:
    service.act(6)
    service.execute(statement)
    assert any(named in each for each in service.check().problems)


def test_many_inserted_acts_hide_no_changed_one(service: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MAX_PROBLEMS", 5)
    service.act(12)
    for _ in range(10):
        service.execute(INSERT, earliest_id(SystemClock().now() - timedelta(days=1)))
    service.execute("UPDATE acts SET note = 'x' WHERE id = (SELECT act_id FROM act_chain WHERE number = 11)")
    assert any("entry 11" in each for each in service.check().problems)


def test_an_inserted_act_is_named_also_when_the_worker_has_chained_it(service: Side) -> None:
    service.act(3)
    service.execute(INSERT, earliest_id(SystemClock().now() - timedelta(days=1)))
    service.chaining = Chaining(service.db, SystemClock())
    service.chain()
    (problem,) = service.check().problems
    assert "entry 4 of the chain: no process of the service wrote it as it is" in problem


def test_a_chain_that_its_owner_computes_anew_without_the_key_is_found(service: Side) -> None:
    """Whatever key the owner takes instead."""
    service.act(4)
    service.execute("DELETE FROM acts WHERE id = (SELECT act_id FROM act_chain WHERE number = 2)")
    service.execute("DELETE FROM act_chain WHERE number = 2")
    service.execute("UPDATE act_chain SET number = number - 1 WHERE number > 2")
    previous = EMPTY
    entries = f"SELECT number, chained_at, {', '.join(acts.COLUMNS)} FROM act_chain JOIN acts ON id = act_id"
    for row in service.execute(f"{entries} ORDER BY number"):
        previous = hash_of(Seals((OTHER_KEY,)), previous, row["number"], row["chained_at"], row)
        service.execute("UPDATE act_chain SET hash = %s WHERE number = %s", previous, row["number"])
    problems = service.check().problems
    assert len(problems) == 3
    assert all("the entry was changed" in each for each in problems)


# -- heads that are kept elsewhere


def test_a_chain_that_was_cut_short_is_found_by_a_kept_head_and_gives_no_further_one(
    service: Side, keeper: Side
) -> None:
    service.act(3)
    known = give(service, keeper)
    assert service.check(known).problems == []
    service.cut(3)

    assert service.check().problems == []
    (problem,) = service.check(known).problems
    assert "the chain has 2 entries, but a head" in problem
    with pytest.raises(HeadRefused, match="2 entries; it had 3"):
        give(service, keeper)

    service.act()
    (problem,) = service.check(known).problems
    assert "entry 3 of the chain has another hash" in problem
    with pytest.raises(HeadRefused, match="another hash"):
        give(service, keeper)


def test_a_chain_that_has_grown_long_ago_without_a_newer_kept_head_is_named(
    service: Side, keeper: Side
) -> None:
    service.act()
    known = give(service, keeper)
    service.act()
    assert service.check(known, later=timedelta(minutes=1)).problems == []
    (problem,) = service.check(known).problems
    assert "the chain has grown" in problem


def test_a_restart_after_a_restored_backup_is_an_act_and_ends_the_complaint(
    service: Side, keeper: Side
) -> None:
    service.act(3)
    (known,) = give(service, keeper)
    service.cut(3)
    service.act()
    own = service.head()

    heads.restart(
        keeper.db, SystemClock(), service=service.name, count=own.count, hash=own.hash, note="restored"
    )

    assert service.check(kept(service, keeper)).problems == []
    (act,) = keeper.execute("SELECT act, object, changes, note FROM acts")
    assert act == {
        "act": heads.RESTART,
        "object": "service:catalog",
        "changes": [["head", known.hash.hex(), own.hash.hex()]],
        "note": "restored",
    }
    service.act(2)
    assert give(service, keeper)[0].count == 5


def test_a_head_that_was_inserted_by_sql_is_named(service: Side, keeper: Side) -> None:
    service.act()
    give(service, keeper)
    assert keeper.check().problems == []
    keeper.execute(
        "INSERT INTO act_heads (service, count, hash, at, seal)"
        " SELECT service, 0, sha256(''), now(), sha256('') FROM act_heads"
    )
    assert keeper.check().problems == ["the head of catalog that is kept here was added by hand"]


# -- rows that can't be read, and keys


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (
            "ALTER TABLE acts DROP CONSTRAINT ck_acts_bounds;"
            " UPDATE acts SET at = '200000-01-01' WHERE id = (SELECT act_id FROM act_chain WHERE number = 4)",
            "year",
        ),
        (
            "ALTER TABLE acts DROP CONSTRAINT ck_acts_changes, DROP CONSTRAINT ck_acts_bounds;"
            " UPDATE acts SET changes = CAST(repeat('[', 5000) || repeat(']', 5000) AS jsonb)"
            " WHERE id = (SELECT act_id FROM act_chain WHERE number = 4)",
            "recursion",
        ),
    ],
    ids=["year", "depth"],
)
def test_an_entry_that_cannot_be_read_is_named_and_all_others_are_checked(
    service: Side, statement: str, error: str
) -> None:
    service.act(7)
    service.execute(statement)
    service.execute("UPDATE acts SET note = 'x' WHERE id = (SELECT act_id FROM act_chain WHERE number = 6)")

    report = service.check()

    (unreadable,) = report.unreadable
    assert unreadable.startswith("entry 4: ")
    assert error in unreadable
    (problem,) = report.problems
    assert "entry 6 of the chain: no process" in problem
    assert report.checked == 7


def test_after_a_rotation_the_earlier_key_still_checks_and_the_new_one_seals(service: Side) -> None:
    service.act(2)
    db = Database(service.url, name="tests", pool_size=1, seals=Seals((OTHER_KEY, SEAL_KEY)))
    rotated = Side(service.name, service.url, db, Chaining(db, SystemClock()))
    rotated.act(2)
    assert rotated.check().problems == []
    assert len(service.check().problems) == 2
    db.dispose()


def test_a_chain_that_was_cut_and_grew_again_lacks_its_kept_head(service: Side, keeper: Side) -> None:
    service.act(5)
    before = give(service, keeper)
    service.execute("ALTER TABLE act_chain DISABLE TRIGGER USER")
    service.execute("ALTER TABLE acts DISABLE TRIGGER USER")
    service.execute("DELETE FROM acts WHERE id IN (SELECT act_id FROM act_chain WHERE number > 2)")
    service.execute("DELETE FROM act_chain WHERE number > 2")
    service.act(5)
    own = service.head()
    assert own.count > before[0].count

    offered = heads.keep(
        keeper.db, SystemClock(), service=service.name, count=own.count, hash=own.hash, continues=0
    )
    assert (offered.count, offered.hash) == (before[0].count, before[0].hash), "not kept before it is found"
    with service.db.transaction() as tx, pytest.raises(HeadRefused):
        heads.require_in_chain(tx, by=keeper.name, count=offered.count, hash=offered.hash)
    assert kept(service, keeper) == before
    assert service.check(known=before).problems


def test_a_head_that_goes_on_from_the_kept_one_is_kept(service: Side, keeper: Side) -> None:
    service.act(2)
    before = give(service, keeper)[0]
    service.act(2)
    own = service.head()
    with service.db.transaction() as tx:
        heads.require_in_chain(tx, by=keeper.name, count=before.count, hash=before.hash)
    again = heads.keep(
        keeper.db, SystemClock(), service=service.name, count=own.count, hash=own.hash, continues=before.count
    )
    assert (again.count, again.hash) == (own.count, own.hash)


def test_a_forged_head_of_the_future_neither_counts_nor_stops_the_next(service: Side, keeper: Side) -> None:
    service.act(3)
    give(service, keeper)
    for count in (0, 1_000_000):
        with keeper.db.transaction() as tx:
            forged = f"VALUES ('catalog', {count}, sha256(''), '2999-01-01', sha256(''))"
            tx.execute(text(f"INSERT INTO act_heads (service, count, hash, at, seal) {forged}"))
        assert [each.count for each in kept(service, keeper)] == [3]
    service.act()
    give(service, keeper)
    service.cut(2)
    assert any("removed at its end" in each for each in service.check(kept(service, keeper)).problems)
