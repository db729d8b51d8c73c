"""A merchant's list and its total are exact, for every filter and page, whatever was counted when."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg2
import psycopg2.extras
import pytest

from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.invoices.domain.segments import Cover, cover
from services.invoices.domain.states import InvoiceStatus
from services.invoices.operations import counting, reading
from services.invoices.store import segments
from tests.invoices.conftest import World
from tests.support.databases import past_all_rules

FINAL = [str(each) for each in InvoiceStatus if each is not InvoiceStatus.PENDING]
CURRENCIES = ("EUR", "EUR", "EUR", "EUR", "JPY", "JPY", "GBP")
MERCHANTS = [new_id() for _ in range(3)]
Row = tuple[datetime, UUID, str, str]


@pytest.fixture
def cursor(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cursor past all rules on a world without counts, whose segments are small."""
    monkeypatch.setattr(segments, "SMALL", 5)
    monkeypatch.setattr(segments, "LARGE", 20)
    psycopg2.extras.register_uuid()  # type: ignore[no-untyped-call]  # typeshed's gap
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE invoice_segments, segment_pending")
            cursor.execute("UPDATE segment_place SET invoice_at = '1970-01-01 00:00+00'")
            yield cursor


def insert(cursor: Any, merchant_id: UUID, at: datetime, currency: str, *, id: UUID | None = None) -> UUID:
    """An id at random: the order of ids is not that of time."""
    id = id or UUID(int=random.getrandbits(128))
    cursor.execute(
        "INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id,"
        " created_at, expires_at) VALUES (%s, %s, %s, %s, 1, %s, 'pending', %s, %s, %s)",
        (id, merchant_id, id, str(id), currency, str(id), at, at),
    )
    return id


def end(cursor: Any, id: UUID, status: str) -> None:
    cursor.execute(
        "UPDATE invoices SET status = %s, finished_at = created_at, event_id = id WHERE id = %s", (status, id)
    )


def count_all(world: World) -> None:
    for _ in range(1000):
        if not counting.count_invoices(world.deps):
            return
    raise AssertionError("the worker always finds more")


def listed(world: World, merchant_id: UUID, **wanted: Any) -> tuple[list[UUID], int]:
    """The ids of a page, and the total; none of a list that is refused because nothing matches."""
    filters = {"status": None, "currency_code": None, "ascending": False, "page": 1, "per_page": 500}
    try:
        page = reading.list_invoices(world.deps, merchant_id=str(merchant_id), **(filters | wanted))
    except Refused as refused:
        assert refused.reason == "INVOICES_NOT_FOUND"
        return [], 0
    return [each.id for each in page.invoices], page.total


def rows_of(cursor: Any, merchant_id: UUID) -> list[Row]:
    cursor.execute(
        "SELECT created_at, id, status, currency_code FROM invoices WHERE merchant_id = %s"
        " ORDER BY created_at, id",
        (merchant_id,),
    )
    return list(cursor.fetchall())


def assert_exact(world: World, cursor: Any, *, per_page: int) -> None:
    """Compares every page of every filter, in both orders, with the rows."""
    for merchant_id in MERCHANTS:
        rows = rows_of(cursor, merchant_id)
        for status in (None, *InvoiceStatus):
            for currency in (None, "EUR", "JPY", "GBP", "USD"):
                due = [
                    id
                    for _, id, *its in rows
                    if its[0] == (status or its[0]) and its[1] == (currency or its[1])
                ]
                wanted = {"status": status, "currency_code": currency}
                assert listed(world, merchant_id, **wanted) == (due[::-1][:500], len(due))
                for ascending in (True, False):
                    pages = [
                        listed(
                            world, merchant_id, ascending=ascending, page=page, per_page=per_page, **wanted
                        )
                        for page in range(1, len(due) // per_page + 3)
                    ]
                    assert {total for _, total in pages} == {len(due)}
                    assert [id for ids, _ in pages for id in ids] == due[:: 1 if ascending else -1]


@pytest.mark.parametrize("seed", range(2))
def test_totals_and_pages_are_those_of_a_plain_count_whatever_was_counted_when(
    world: World, cursor: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(counting, "PAGE", chance.choice((3, 17, 5000)))
    open_ids: list[UUID] = []
    for _ in range(6):
        for _ in range(chance.randrange(60)):
            # Many are created at the same time: their ids decide.
            at = world.clock.now() - timedelta(seconds=chance.randrange(3) * 60)
            open_ids.append(insert(cursor, chance.choice(MERCHANTS[:2]), at, chance.choice(CURRENCIES)))
        chance.shuffle(open_ids)
        for _ in range(chance.randrange(len(open_ids) + 1)):
            end(cursor, open_ids.pop(), chance.choice(FINAL))
        if chance.random() < 0.3:
            counting.count_invoices(world.deps)
        else:
            world.clock.advance(minutes=6)
            count_all(world)
        for id in [open_ids.pop() for _ in range(len(open_ids) // 4)]:
            end(cursor, id, chance.choice(FINAL))
        world.clock.advance(minutes=chance.choice((6, 60 * 24 * 3)))
    assert_exact(world, cursor, per_page=chance.randrange(1, 12))
    count_all(world)
    assert_exact(world, cursor, per_page=7)


def shop(world: World, cursor: Any) -> list[UUID]:
    """47 invoices of a merchant that are counted, every second one pending; each is a minute younger than the last."""
    ids = [
        insert(cursor, MERCHANTS[0], world.clock.now() + timedelta(minutes=minute), "EUR")
        for minute in range(47)
    ]
    for id in ids[::2]:
        end(cursor, id, "success")
    world.clock.advance(minutes=60)
    count_all(world)
    return ids


def test_an_invoice_with_a_time_of_long_ago_is_found_and_counted_anew(world: World, cursor: Any) -> None:
    """The statement of docs/operations/verify.md mends the count."""
    shop(world, cursor)
    insert(cursor, MERCHANTS[0], world.clock.now() - timedelta(minutes=30), "EUR")
    with pytest.raises(AssertionError):
        assert_exact(world, cursor, per_page=10)
    verify = (Path(__file__).parents[2] / "docs/operations/verify.md").read_text()
    (cure,) = re.findall(
        r"```sql\n(BEGIN;\nSELECT pg_advisory_xact_lock.hashtextextended..invoice_segments.*?)```",
        verify,
        re.DOTALL,
    )
    cursor.execute(cure)
    assert_exact(world, cursor, per_page=10)
    count_all(world)
    assert_exact(world, cursor, per_page=10)


def test_lists_are_exact_while_invoices_are_created_end_and_are_counted(world: World, cursor: Any) -> None:
    merchant_id, made, stop = MERCHANTS[0], list[UUID](), threading.Event()

    def repeat(step: Callable[[Any], object]) -> None:
        with closing(psycopg2.connect(past_all_rules(world.deps.settings.database_url))) as connection:
            connection.autocommit = True
            while not stop.is_set():
                step(connection.cursor())

    def create(other: Any) -> None:
        made.append(UUID(int=random.getrandbits(128)))
        insert(other, merchant_id, world.clock.now(), "EUR", id=made[-1])
        world.clock.advance(seconds=10)

    def finish(other: Any) -> None:
        other.execute("SELECT id FROM invoices WHERE status = 'pending' ORDER BY md5(id::text) LIMIT 1")
        for (id,) in other.fetchall():
            end(other, id, "success")

    def count(_: Any) -> object:
        return counting.count_invoices(world.deps)

    with ThreadPoolExecutor(4) as threads:
        acting = [threads.submit(repeat, step) for step in (create, finish, count, count)]
        try:
            before = 0
            for number in range(20_000):
                if len(made) > 300 or any(each.done() for each in acting):
                    break
                ids, total = listed(world, merchant_id, ascending=number % 2 == 0)
                assert ids == (made[:total] if number % 2 == 0 else made[:total][::-1])[:500]
                assert total >= before
                before = total
                ids, total = listed(world, merchant_id, status=InvoiceStatus.SUCCESS)
                assert len(ids) == total, "the total is that of the moment of the page"
        finally:
            stop.set()
        for each in acting:
            each.result()
    world.clock.advance(minutes=10)
    assert_exact(world, cursor, per_page=100)
    count_all(world)
    assert_exact(world, cursor, per_page=100)


def segments_behind(world: World) -> float:
    with world.deps.db.autocommit() as connection:
        return segments.time_behind(connection, world.clock.now()).total_seconds()


def test_a_gauge_shows_how_far_the_counts_are_behind(world: World, cursor: Any) -> None:
    assert segments_behind(world) == 0
    insert(cursor, MERCHANTS[0], world.clock.now(), "EUR")
    world.clock.advance(minutes=4)
    count_all(world)
    assert segments_behind(world) == 240
    world.clock.advance(minutes=2)
    count_all(world)
    assert segments_behind(world) == 0


@pytest.mark.parametrize(
    ("counts", "offset", "limit", "due"),
    [
        ([3, 0, 4, 5], 0, 3, Cover([0], 0)),
        ([3, 0, 4, 5], 2, 2, Cover([0, 2], 2)),
        ([3, 0, 4, 5], 3, 5, Cover([2, 3], 0)),
        ([3, 0, 4, 5], 9, 500, Cover([3], 2)),
        ([3, 0, 4, 5], 12, 1, Cover([], 0)),
        ([], 0, 1, Cover([], 0)),
    ],
)
def test_a_page_is_in_the_parts_that_its_rows_are_of(
    counts: list[int], offset: int, limit: int, due: Cover
) -> None:
    assert cover(counts, offset, limit) == due
