"""The chain of acts: every act gets into it, and no change of acts, entries or heads goes unnoticed.

The tampering is that of a superuser with triggers off, who knows how hashes are computed.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg2
import psycopg2.extras
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from kit.audit import acts, chaining, checking, heads
from kit.audit.chain import COLUMNS, EMPTY, DatedHead, Head, hash_of, head
from kit.audit.chaining import Chaining
from kit.audit.checking import KnownExchange, Report
from kit.audit.heads import HeadRefused
from kit.base.clock import SystemClock
from kit.db.database import Database
from tests.support.clock import ManualClock
from tests.support.databases import Databases
from tests.support.servers import PostgresServer

CASES: Final = 50
ACTS: Final = 12
LATER: Final = timedelta(minutes=30)


@dataclass
class Side:
    """One service: its database, its worker, and its database past all rules."""

    name: str
    db: Database
    url: str
    chaining: Chaining

    def act(self, number: int = 1) -> None:
        with self.db.transaction() as tx:
            for _ in range(number):
                acts.record(tx, "rate.set", f"currency:{random.randrange(10**9)}", after={"rate": "1.05"})
        self.chain()

    def chain(self) -> None:
        while self.chaining.step():
            pass

    def head(self) -> DatedHead:
        with self.db.transaction() as tx:
            found = head(tx)
        assert found is not None
        return found

    def exchanges(self) -> list[heads.Exchange]:
        with self.db.transaction() as tx:
            return heads.last_exchanges(tx)

    def execute(self, statement: str, *values: object) -> list[dict[str, Any]]:
        """As the superuser whose sessions switch triggers off."""
        with (
            closing(psycopg2.connect(self.url)) as connection,
            connection,
            connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor,
        ):
            psycopg2.extras.register_uuid(conn_or_curs=connection)  # type: ignore[no-untyped-call]
            cursor.execute("SET timezone = 'UTC'")
            cursor.execute(statement, values)
            return [dict(row) for row in cursor.fetchall()] if cursor.description else []


def exchange(service: Side, keeper: Side, clock: ManualClock) -> None:
    """As kit.rpc.act_heads and accounts do it, some seconds after the exchange before."""
    clock.advance(seconds=5)
    with service.db.transaction() as tx:
        own, last = heads.own_head(tx), heads.last_exchange(tx, heads.KEEPER)
    number = 1 if last is None else last.number + 1
    made = heads.answer(keeper.db, clock, service=service.name, number=number, theirs=own)
    heads.take(
        service.db,
        heads.Exchange(heads.KEEPER, made.number, made.at, theirs=made.own, own=made.theirs),
    )


def check(side: Side, other: Side, kept: list[DatedHead], *, later: timedelta = LATER) -> list[str]:
    """What `fiatgate verify` finds in one service, with what the other one keeps and with exported heads."""
    clock = ManualClock(SystemClock().now() + later)
    of_other = [
        KnownExchange(other.name, each.number, each.digest, each.at)
        for each in other.exchanges()
        if each.service == side.name
    ]
    known = [
        DatedHead(each.theirs.count, each.theirs.hash, each.at)
        for each in other.exchanges()
        if each.service == side.name
    ]
    problems: list[str] = []
    report = Report(more=True)
    for _ in range(20):
        report = checking.check_page(
            side.db, clock, after=report.last, limit=5, known=[*known, *kept], exchanges=of_other
        )
        problems += report.problems
        if not report.more:
            return problems
    raise AssertionError("the pages do not end")


@pytest.fixture
def sides(_databases: Databases, postgres: PostgresServer) -> Iterator[tuple[Side, Side]]:
    """A service, and the keeper of heads."""
    made = []
    for name, of in (("catalog", "catalog"), (heads.KEEPER, "merchants")):
        url = _databases.fresh(of)
        db = Database(url, name="tests", pool_size=2)
        past_all_rules = postgres.url(
            url.rpartition("/")[2], user="past_all_rules", password="service-of-tests"
        )
        made.append(Side(name, db, past_all_rules, Chaining(db, SystemClock())))
    yield made[0], made[1]
    for side in made:
        side.db.dispose()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(SystemClock().now())


def test_acts_are_chained_in_the_order_of_time_each_once(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaining, "PAGE", 4)
    monkeypatch.setattr(chaining, "BATCH", 3)
    service, keeper = sides
    service.act(10)
    other = Chaining(service.db, SystemClock())
    while other.step():
        pass
    service.act(5)

    rows = service.execute(
        "SELECT number, acts.id FROM act_chain JOIN acts ON acts.id = act_id ORDER BY number"
    )
    assert [row["number"] for row in rows] == list(range(1, 16))
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert service.chaining.waiting().acts == 0
    assert check(service, keeper, []) == []


def test_an_act_that_becomes_visible_after_a_later_one_is_chained_as_well(
    sides: tuple[Side, Side],
) -> None:
    service, keeper = sides
    with service.db.transaction() as slow:
        acts.record(slow, "rate.set", "currency:EUR")
        service.act()
        assert service.head().count == 1
    assert service.chaining.waiting().acts == 1

    service.chain()

    assert service.head().count == 2
    assert check(service, keeper, []) == []


def test_an_act_that_waits_is_counted_and_becomes_a_problem_after_minutes(sides: tuple[Side, Side]) -> None:
    service, keeper = sides
    with service.db.transaction() as tx:
        acts.record(tx, "rate.set", "currency:EUR")
    assert service.chaining.waiting().acts == 1

    assert check(service, keeper, [], later=timedelta(0)) == []
    (problem,) = check(service, keeper, [])
    assert "not in the chain" in problem


def test_exchanges_are_made_when_a_chain_has_grown_and_are_equal_on_both_sides(
    sides: tuple[Side, Side], clock: ManualClock
) -> None:
    service, keeper = sides
    exchange(service, keeper, clock)
    exchange(service, keeper, clock)
    assert [each.number for each in service.exchanges()] == [1]
    service.act(2)
    exchange(service, keeper, clock)
    keeper.act()
    exchange(service, keeper, clock)

    (mine,), (theirs,) = service.exchanges(), keeper.exchanges()
    assert (mine.number, mine.digest) == (3, theirs.digest)
    assert (mine.theirs, mine.own) == (theirs.own, theirs.theirs)
    assert mine.theirs.count == 1
    assert mine.own.count == 2
    assert check(service, keeper, []) == check(keeper, service, []) == []


def test_an_exchange_whose_answer_was_lost_is_stored_by_the_next_one(
    sides: tuple[Side, Side], clock: ManualClock
) -> None:
    service, keeper = sides
    service.act()
    with service.db.transaction() as tx:
        own = heads.own_head(tx)
    heads.answer(keeper.db, clock, service=service.name, number=1, theirs=own)
    assert check(service, keeper, [], later=timedelta(0)) == []
    service.act()

    exchange(service, keeper, clock)
    assert [each.own.count for each in service.exchanges()] == [1]
    exchange(service, keeper, clock)

    assert [each.own.count for each in service.exchanges()] == [2]
    assert check(service, keeper, []) == check(keeper, service, []) == []


def test_a_chain_that_was_cut_short_gets_no_further_exchange(
    sides: tuple[Side, Side], clock: ManualClock
) -> None:
    service, keeper = sides
    service.act(3)
    exchange(service, keeper, clock)
    service.execute("DELETE FROM act_chain WHERE number = 3; DELETE FROM act_heads")
    service.execute("DELETE FROM acts WHERE id NOT IN (SELECT act_id FROM act_chain)")

    with pytest.raises(HeadRefused):
        exchange(service, keeper, clock)
    with pytest.raises(HeadRefused, match="2 entries; it had 3"):
        heads.answer(keeper.db, clock, service=service.name, number=2, theirs=Head(2, service.head().hash))


def test_a_stolen_certificate_adds_an_exchange_in_seconds_and_no_impossible_one(
    sides: tuple[Side, Side], clock: ManualClock
) -> None:
    service, keeper = sides
    service.act()
    exchange(service, keeper, clock)
    for number in range(100):
        offered = Head(100 + number, rng_hash(number))
        heads.answer(keeper.db, clock, service=service.name, number=2, theirs=offered)
    assert [each.number for each in keeper.exchanges()] == [1]
    clock.advance(seconds=5)
    for count in (2**63 - 1, heads.MOST_GROWTH + 2):
        with pytest.raises(HeadRefused, match="just before"):
            heads.answer(keeper.db, clock, service=service.name, number=2, theirs=Head(count, rng_hash(0)))
    service.act()
    exchange(service, keeper, clock)
    assert [each.number for each in keeper.exchanges()] == [2]


def rng_hash(number: int) -> bytes:
    return random.Random(number).randbytes(32)


def test_an_operator_lets_exchanges_go_on_after_a_stolen_certificate(
    sides: tuple[Side, Side], clock: ManualClock
) -> None:
    service, keeper = sides
    service.act()
    exchange(service, keeper, clock)
    clock.advance(seconds=5)
    heads.answer(keeper.db, clock, service=service.name, number=2, theirs=Head(99, rng_hash(0)))
    service.act()
    with pytest.raises(HeadRefused):
        exchange(service, keeper, clock)
    assert problems_of_both(service, keeper)

    with service.db.transaction() as tx:
        own = heads.own_head(tx)
    heads.restart(keeper.db, clock, service=service.name, theirs=own, note="a stolen certificate")
    keeper.chain()
    exchange(service, keeper, clock)
    service.act()
    exchange(service, keeper, clock)
    assert [each.own.count for each in service.exchanges()] == [3]
    assert problems_of_both(service, keeper) == []


def test_a_new_series_of_exchanges_without_an_act_is_named(
    sides: tuple[Side, Side], clock: ManualClock
) -> None:
    service, keeper = sides
    service.act()
    exchange(service, keeper, clock)
    made = heads.Exchange(service.name, heads.SERIES + 1, clock.now(), Head(0, EMPTY), Head(0, EMPTY))
    with keeper.db.transaction() as tx:
        heads.keep(tx, made, last=None)
    assert any("no operator did that" in each for each in check(keeper, service, []))


def test_an_exchange_is_made_every_few_minutes_also_without_acts(
    sides: tuple[Side, Side], clock: ManualClock
) -> None:
    service, keeper = sides
    exchange(service, keeper, clock)
    clock.advance(minutes=6)
    exchange(service, keeper, clock)
    assert [each.number for each in service.exchanges()] == [2]


# -- what is added under another time


def id_at(at: datetime) -> uuid.UUID:
    return uuid.UUID(int=chaining.earliest_id(at).int | 7 << 76 | 2 << 62 | random.getrandbits(62))


def add_act(side: Side, id: uuid.UUID, at: datetime, chained_at: datetime) -> None:
    """Adds an act and its entry, as an attacker can who has the rights of the service."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {"id": id, "at": at, "act": "rate.set", "changes": []}
    row |= {"person_id": None, "session_id": None, "merchant_id": None, "actor_kind": "person"}
    with side.db.transaction() as tx:
        before = head(tx)
        number, previous = (before.count + 1, before.hash) if before else (1, EMPTY)
    names = ", ".join(COLUMNS)
    side.execute(
        f"INSERT INTO acts ({names}) VALUES ({', '.join(['%s'] * len(COLUMNS))})",
        *(psycopg2.extras.Json(row[each]) if each == "changes" else row[each] for each in COLUMNS),
    )
    side.execute(
        "INSERT INTO act_chain (number, act_id, hash, chained_at) VALUES (%s, %s, %s, %s)",
        number,
        id,
        hash_of(previous, number, chained_at, row),
        chained_at,
    )


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("of_id", "of_act", "of_entry", "named"),
    [
        (-13, -13, -13, "but was added after the exchange"),
        (-13, -13, 0, "but was added after the exchange"),
        (-500_000, -500_000, 0, "but was added after the exchange"),
        (-500_000, 0, 0, "its id"),
        (0, -500_000, 0, "its id"),
        (4_000_000, 4_000_000, 0, "which is to come"),
        (0, 0, 4_000_000, "which is to come"),
    ],
)
def test_an_act_that_is_added_under_another_time_is_named(
    sides: tuple[Side, Side],
    clock: ManualClock,
    of_id: float,
    of_act: float,
    of_entry: float,
    named: str,
    *,
    is_first: bool,
) -> None:
    service, keeper = sides
    if not is_first:
        service.act(3)
    exchange(service, keeper, clock)
    now = clock.now().replace(microsecond=0)
    id, at, chained_at = (now + timedelta(minutes=minutes) for minutes in (of_id, of_act, of_entry))
    add_act(service, id_at(id), at, chained_at)
    exchange(service, keeper, clock)
    found = [each for each in check(service, keeper, []) if "rate.set" in each]
    assert any(named in each for each in found)


def test_an_act_of_the_future_does_not_stop_the_chain(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _ = sides
    monkeypatch.setattr(chaining, "PAGE", 1)
    to_come = SystemClock().now() + timedelta(days=3000)
    add_act(service, id_at(to_come), to_come, SystemClock().now())
    service.chain()
    service.act(2)
    assert service.head().count == 3


def test_no_entry_leaves_out_numbers(sides: tuple[Side, Side]) -> None:
    """A chain could not go on after the greatest number that the column holds."""
    service, keeper = sides
    service.act()
    for number in (2**63 - 1, 3, 1):
        with pytest.raises(DBAPIError), service.db.transaction() as tx:
            tx.execute(
                text(
                    "INSERT INTO act_chain SELECT :number, gen_random_uuid(), hash, chained_at FROM act_chain"
                ),
                {"number": number},
            )
    service.act(2)
    assert service.head().count == 3
    assert check(service, keeper, []) == []


# -- tampering

Tampering = Callable[[Side, random.Random], str]


def _some(side: Side, rng: random.Random, table: str, key: str) -> Any:
    return rng.choice(side.execute(f"SELECT {key} FROM {table} ORDER BY {key}"))[key]


OTHER_VALUES: Final = {
    "at": "at + interval '1 millisecond'",
    "person_id": "gen_random_uuid()",
    "session_id": "gen_random_uuid()",
    "merchant_id": "gen_random_uuid()",
    "id": "gen_random_uuid()",
    "changes": 'changes || \'[["rate", "1", "2"]]\'',
}


def change_a_column(side: Side, rng: random.Random) -> str:
    column = rng.choice(COLUMNS)
    id = _some(side, rng, "acts", "id")
    side.execute(
        f"UPDATE acts SET {column} = {OTHER_VALUES.get(column, f'{column} || chr(120)')} WHERE id = %s", id
    )
    return f"acts.{column}"


def change_an_entry(side: Side, rng: random.Random) -> str:
    column, value = rng.choice(
        [
            ("hash", "sha256(hash)"),
            ("chained_at", "chained_at + interval '1 millisecond'"),
            ("act_id", "gen_random_uuid()"),
            ("number", "number + 1000"),
        ]
    )
    number = _some(side, rng, "act_chain", "number")
    side.execute(f"UPDATE act_chain SET {column} = {value} WHERE number = %s", number)
    return f"act_chain.{column} of {number}"


def delete_an_act(side: Side, rng: random.Random) -> str:
    number = _some(side, rng, "act_chain", "number")
    side.execute("DELETE FROM acts WHERE id = (SELECT act_id FROM act_chain WHERE number = %s)", number)
    if rng.random() < 0.7:
        side.execute("DELETE FROM act_chain WHERE number = %s", number)
    return f"act {number}"


def delete_the_end(side: Side, rng: random.Random) -> str:
    from_number = rng.randint(1, ACTS)
    side.execute(
        "DELETE FROM acts WHERE id IN (SELECT act_id FROM act_chain WHERE number >= %s)", from_number
    )
    side.execute("DELETE FROM act_chain WHERE number >= %s", from_number)
    if rng.random() < 0.5:
        side.execute("DELETE FROM act_heads WHERE own_count >= %s", from_number)
    return f"from {from_number} on"


def delete_the_end_and_go_on(side: Side, rng: random.Random) -> str:
    did = delete_the_end(side, rng)
    side.act(rng.randint(1, 2 * ACTS))
    return did


def swap(side: Side, rng: random.Random) -> str:
    one, other = rng.sample(range(1, ACTS + 1), 2)
    side.execute(
        "UPDATE acts SET object = (SELECT object FROM acts AS o JOIN act_chain ON act_id = o.id"
        " WHERE number = CASE acts.id WHEN first.act_id THEN second.number ELSE first.number END)"
        " FROM act_chain AS first, act_chain AS second"
        " WHERE first.number = %s AND second.number = %s AND acts.id IN (first.act_id, second.act_id)",
        one,
        other,
    )
    return f"{one} and {other}"


def _insert(side: Side, id: uuid.UUID) -> None:
    side.execute(
        f"INSERT INTO acts SELECT %s, %s, {', '.join(COLUMNS[2:])} FROM acts LIMIT 1", id, acts.time_of(id)
    )


def _between(side: Side, rng: random.Random) -> uuid.UUID:
    first = _some(side, rng, "acts", "id")
    return uuid.UUID(int=first.int + (1 << 40))


def insert_an_act_of_the_past(side: Side, rng: random.Random) -> str:
    """Which the worker chains at its next start, or does not find at all."""
    first = side.execute("SELECT min(id::text) AS id FROM acts")[0]["id"]
    _insert(side, uuid.UUID(int=uuid.UUID(first).int - (int(rng.uniform(1, 20) * 86_400_000) << 80)))
    if rng.random() < 0.5:
        again = Chaining(side.db, SystemClock())
        while again.step():
            pass
    return "past"


def insert_an_act_with_an_entry(side: Side, rng: random.Random) -> str:
    id, number = _between(side, rng), rng.randint(1, ACTS)
    _insert(side, id)
    side.execute("UPDATE act_chain SET act_id = %s WHERE number = %s", id, number)
    _compute_anew(side, number)
    return f"as {number}"


def compute_anew(side: Side, rng: random.Random) -> str:
    """Changes an act and computes all hashes from it on as the worker would have."""
    number = rng.randint(1, ACTS)
    side.execute(
        "UPDATE acts SET note = note || 'x' WHERE id = (SELECT act_id FROM act_chain WHERE number = %s)",
        number,
    )
    _compute_anew(side, number)
    if rng.random() < 0.5:
        _compute_exchanges_anew(side)
    return f"from {number} on"


def _compute_anew(side: Side, number: int) -> None:
    before = side.execute("SELECT hash FROM act_chain WHERE number = %s", number - 1)
    previous = bytes(before[0]["hash"]) if before else EMPTY
    for row in side.execute(
        f"SELECT number, chained_at, {', '.join(COLUMNS)} FROM act_chain JOIN acts ON id = act_id"
        " WHERE number >= %s ORDER BY number",
        number,
    ):
        previous = hash_of(previous, row["number"], row["chained_at"], row)
        side.execute("UPDATE act_chain SET hash = %s WHERE number = %s", previous, row["number"])


def _compute_exchanges_anew(side: Side) -> None:
    side.execute(
        "UPDATE act_heads SET own_hash = entry.hash FROM act_chain AS entry WHERE entry.number = own_count"
    )
    _digests_anew(side)


def _digests_anew(side: Side) -> None:
    with side.db.transaction() as tx:
        found = list(heads.all_exchanges(tx))
    previous = EMPTY
    for each in found:
        previous = heads.digest_of(each, previous)
        side.execute(
            "UPDATE act_heads SET digest = %s WHERE service = %s AND number = %s",
            previous,
            each.service,
            each.number,
        )


def change_a_head(side: Side, rng: random.Random) -> str:
    column, value = rng.choice(
        [
            ("at", "at + interval '1 millisecond'"),
            ("count", "count + 1"),
            ("hash", "sha256(hash)"),
            ("own_count", "own_count - 1"),
            ("own_hash", "sha256(own_hash)"),
            ("digest", "sha256(digest)"),
            ("number", "number + 1000"),
            ("service", "service || 'x'"),
        ]
    )
    number = _some(side, rng, "act_heads", "number")
    side.execute(f"UPDATE act_heads SET {column} = {value} WHERE number = %s", number)
    if rng.random() < 0.5 and column in {"at", "count", "hash"}:
        _digests_anew(side)
    return f"act_heads.{column} of {number}"


def delete_heads(side: Side, rng: random.Random) -> str:
    number = _some(side, rng, "act_heads", "number")
    side.execute(f"DELETE FROM act_heads WHERE number {rng.choice(['=', '>='])} %s", number)
    return f"act_heads {number}"


def insert_a_head(side: Side, rng: random.Random) -> str:
    side.execute(
        "INSERT INTO act_heads SELECT service, number + 1, at, count, hash, own_count, own_hash, digest"
        " FROM act_heads ORDER BY number DESC LIMIT 1"
    )
    _digests_anew(side)
    return "act_heads"


TAMPERINGS: Final[tuple[Tampering, ...]] = (
    change_a_column,
    change_an_entry,
    delete_an_act,
    delete_the_end,
    delete_the_end_and_go_on,
    swap,
    insert_an_act_of_the_past,
    insert_an_act_with_an_entry,
    compute_anew,
    change_a_head,
    delete_heads,
    insert_a_head,
)


OF_A_CHAIN: Final = frozenset(TAMPERINGS[:9])
"""These need a chain of ACTS entries at least."""


def test_verify_finds_each_of_fifty_tamperings(sides: tuple[Side, Side], clock: ManualClock) -> None:
    """With what the two services keep of each other, and no exported head."""
    service, keeper = sides
    for number in range(ACTS):
        (service if number else keeper).act()
        service.act()
        if number % 3 == 2:
            exchange(service, keeper, clock)
    exchange(service, keeper, clock)
    assert problems_of_both(service, keeper) == []

    rng = random.Random(12)
    missed = []
    for side in sides:
        copy(side)
    for case in range(CASES):
        tampering = TAMPERINGS[case % len(TAMPERINGS)]
        side = service if tampering in OF_A_CHAIN else rng.choice(sides)
        did = tampering(side, rng)
        if not problems_of_both(service, keeper):
            missed.append(f"{case}: {tampering.__name__} in {side.name}: {did}")
        restore(side)
    assert missed == []
    assert problems_of_both(service, keeper) == []


def test_an_exported_head_shows_what_both_databases_hide(
    sides: tuple[Side, Side], clock: ManualClock
) -> None:
    service, keeper = sides
    service.act(3)
    exchange(service, keeper, clock)
    end = service.head()
    for side in sides:
        side.execute("DELETE FROM act_heads; DELETE FROM act_chain WHERE number = 3")
        side.execute("DELETE FROM acts WHERE id NOT IN (SELECT act_id FROM act_chain)")
    assert problems_of_both(service, keeper) == []

    (problem,) = check(service, keeper, [DatedHead(end.count, end.hash, end.at)])

    assert "the chain has 2 entries" in problem


def problems_of_both(service: Side, keeper: Side) -> list[str]:
    return [*check(service, keeper, []), *check(keeper, service, [])]


TABLES: Final = ("acts", "act_chain", "act_heads")


def copy(side: Side) -> None:
    side.execute("CREATE SCHEMA copy")
    for table in TABLES:
        side.execute(f"CREATE TABLE copy.{table} AS TABLE public.{table}")


def restore(side: Side) -> None:
    for table in TABLES:
        side.execute(f"DELETE FROM public.{table}; INSERT INTO public.{table} TABLE copy.{table}")
    side.chaining = Chaining(side.db, SystemClock())
