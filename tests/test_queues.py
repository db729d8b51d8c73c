"""The queues that wait for an operator, of each service: counted to a bound, by indexes, on its own schema."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import pytest
from sqlalchemy import Connection, text

from kit.base.services import SERVICES
from kit.db.database import Database
from kit.db.queues import MOST_COUNTED, Queue, waiting
from tests.support.clock import START
from tests.support.contracts import serves

SERVING: Final = [service for service in SERVICES if serves(service, "queues")]
SMALL: Final = {"rates_held"}
"""Queues that are whole tables with at most one row for each currency."""


def queues_of(service: str) -> Sequence[Queue]:
    queues: Sequence[Queue] = importlib.import_module(f"services.{service}.store.queues").QUEUES
    return queues


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    db = Database(url, name="tests", pool_size=1)
    with db.autocommit() as connection:
        yield connection
    db.dispose()


def test_every_service_with_a_request_or_a_parked_event_lists_it() -> None:
    """A queue that no page shows waits for ever."""
    for service in SERVICES:
        names = {queue.name for queue in queues_of(service)} if service in SERVING else set()
        assert ("approvals" in names) == serves(service, "approvals"), service
        assert ("parked" in names) == serves(service, "parked"), service


@pytest.mark.parametrize("service", SERVING)
def test_each_queue_reads_an_index(service: str, database_url: Callable[[str], str]) -> None:
    """The desk asks twice a second, whatever the number of old rows."""
    with connected(database_url(service)) as connection:
        assert [each.name for each in waiting(connection, queues_of(service), now=START)] == [
            each.name for each in queues_of(service)
        ]
        connection.execute(text("SET enable_seqscan = off"))
        for queue in queues_of(service):
            plan = connection.execute(text(f"EXPLAIN {queue.statement()}"), {"now": START}).scalars().all()
            scanned = [line for line in plan if "Seq Scan" in line]
            assert queue.name in SMALL or not scanned, "\n".join(plan)


def test_a_queue_has_its_number_and_the_times_of_its_first_and_last(
    database_url: Callable[[str], str],
) -> None:
    parked = next(each for each in queues_of("webhooks") if each.name == "parked")
    add = text(
        "INSERT INTO parked (event_id, subject, payload, request_id, error, attempts, failed_at, parked_at)"
        " SELECT gen_random_uuid(), 'facts', '', '', 'no', 1, :at, CAST(:at AS timestamptz) + n * interval '1s'"
        " FROM generate_series(1, :rows) n"
    )
    with connected(database_url("webhooks")) as connection:
        connection.execute(add, {"at": START, "rows": 3})
        (three,) = waiting(connection, [parked], now=START)
        assert (three.count, three.oldest_at, three.newest_at) == (
            3,
            START + timedelta(seconds=1),
            START + timedelta(seconds=3),
        )
        connection.execute(add, {"at": START, "rows": MOST_COUNTED})
        (many,) = waiting(connection, [parked], now=START)
        assert (many.count, many.newest_at) == (MOST_COUNTED, START + timedelta(seconds=MOST_COUNTED))
