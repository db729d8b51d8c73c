"""The event chain through its worst hours, on a whole stack: a consumer that does nothing any more, NATS away, and all
that NATS had stored lost.

The outbox holds facts of a busy week when the stream is lost: every one is announced again, and those that somebody
misses must not wait for the rest.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import psycopg2
import requests

from benchmarks.report import Row, below, show
from deploy.local.waiting import wait_until
from kit.base.clock import monotonic_seconds
from kit.base.ids import new_id
from tests.e2e.market import Shop
from tests.faults import checker
from tests.faults.arena import Arena
from tests.faults.trade import Trade
from tests.support.authors import act_as
from tests.support.receiver import Receiver

STOPS: Final = 3
AWAY_SECONDS: Final = (0, 0, 150)
"""The last for so long that a client of NATS with its usual settings would have given up for good."""
SOLD: Final = 20
OLD_FACTS: Final = 50_000
LONGEST_SECONDS: Final = 300


def main() -> int:
    act_as("benchmarks@harness")
    with (
        tempfile.TemporaryDirectory(prefix="fiatgate-chain-") as folder,
        Arena(Path(folder)) as arena,
        Trade(arena, Shop.opened(arena.stack)) as trade,
        Receiver() as receiver,
    ):
        sales = Sales(trade, receiver)
        rows = _stuck(arena, sales) + _away(arena, sales) + _lost(arena, sales)
    return show("The event chain", rows)


class Sales:
    """Purchases, each with a path of the receiver to itself."""

    def __init__(self, trade: Trade, receiver: Receiver) -> None:
        self.trade = trade
        self._receiver = receiver
        self._paths: list[str] = []

    def sell(self, count: int = SOLD) -> None:
        """So many purchases up to the operator's confirmation."""
        for _ in range(count):
            self._paths.append(new_id().hex)
            self.trade.sell(self._receiver.url(self._paths[-1]))

    @property
    def doubled(self) -> int:
        """Webhooks that came again."""
        return sum(len(self._receiver.received(path)) - 1 for path in self._paths)


def _stuck(arena: Arena, sales: Sales) -> list[Row]:
    """A consumer's process stops; one hangs in the middle of an event while all the rest of its process is well."""
    stopped, hung = [], []
    for _ in range(STOPS):
        with arena.paused("webhooks"):
            stopped.append(_seconds_until(lambda: not _is_ready(arena)))
        arena.stack.wait_until_ready()
        with _hanging_inserts(arena):
            sales.sell(1)
            hung.append(_seconds_until(lambda: not _is_ready(arena)))
        _seconds_until(lambda: _arrived(arena, sales.trade.shop))
        arena.stack.wait_until_ready()
    return [
        below("a consumer is stopped: /readyz says so, worst of 3", max(stopped), 5, "s"),
        below("a consumer hangs: /readyz says so, worst of 3", max(hung), 5, "s"),
    ]


@contextmanager
def _hanging_inserts(arena: Arena) -> Iterator[None]:
    """Who makes a webhook's event waits, for as long as a statement may take."""
    _execute(
        arena,
        "CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'",
        "CREATE TRIGGER hang BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION hang()",
    )
    try:
        yield
    finally:
        _execute(arena, "DROP FUNCTION hang CASCADE")


def _execute(arena: Arena, *statements: str) -> None:
    with closing(psycopg2.connect(arena.admin_url("webhooks"))) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def _away(arena: Arena, sales: Sales) -> list[Row]:
    """NATS stops, business goes on, NATS is back."""
    noticed, through = [], []
    for seconds in AWAY_SECONDS:
        arena.stack.stop_program("nats")
        noticed.append(_seconds_until(lambda: not _is_ready(arena)))
        sales.sell(SOLD // 2)
        threading.Event().wait(seconds)
        sales.sell(SOLD // 2)
        arena.stack.start_program("nats")
        through.append(_seconds_until(lambda: _arrived(arena, sales.trade.shop)))
        arena.stack.wait_until_ready()
    *short, long = through
    return [
        below(f"NATS stops: /readyz says so, worst of {len(noticed)}", max(noticed), 5, "s"),
        below(f"NATS is back: {SOLD} facts of meanwhile arrived, worst of {len(short)}", max(short), 30, "s"),
        below(f"the same, NATS was away for {AWAY_SECONDS[-1]} s", long, 30, "s"),
    ]


def _lost(arena: Arena, sales: Sales) -> list[Row]:
    """Everything in NATS is deleted while facts are published and not consumed, and others not published."""
    _remember_a_busy_week(arena)
    for consumer in ("withdrawals", "webhooks"):
        arena.stack.stop_program(consumer)
    sales.sell()
    arena.stack.stop_program("nats")
    sales.sell()
    arena.lose_jetstream()
    for program in ("nats", "withdrawals", "webhooks"):
        arena.stack.start_program(program)
    began = monotonic_seconds()
    arrived = _seconds_until(lambda: _arrived(arena, sales.trade.shop))
    _seconds_until(lambda: _count(arena, "published_at IS NULL") == 0)
    again = monotonic_seconds() - began
    return [
        below(f"JetStream lost: the {2 * SOLD} missing facts arrived after its start", arrived, 60, "s"),
        Row(f"the same, all of some {OLD_FACTS:,} facts of the outbox announced again", f"{again:.0f} s"),
        Row("webhooks that came twice in all of this", str(sales.doubled), "0", sales.doubled == 0),
    ]


def _remember_a_busy_week(arena: Arena) -> None:
    """Facts that were published and have taken effect everywhere."""
    ids = [str(new_id()) for _ in range(OLD_FACTS)]
    tables = {
        "invoices": "outbox (id, subject, payload, request_id, created_at, published_at) "
        "SELECT v.id::uuid, 'fiatgate.invoices.finished', 'old', '', now(), now() - random() * interval '6 days'",
        "withdrawals": "inbox (event_id, received_at) SELECT v.id::uuid, now()",
        "webhooks": "inbox (event_id, received_at) SELECT v.id::uuid, now()",
    }
    for database, rows in tables.items():
        with (
            closing(psycopg2.connect(arena.admin_url(database))) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"INSERT INTO {rows} FROM unnest(%s) AS v(id)", (ids,))
            connection.commit()


def _arrived(arena: Arena, shop: Shop) -> bool:
    """Whether the shop has every webhook and every credit."""
    left = checker.unsettled(arena.admin_url, [shop.merchant_id])
    return all("unpublished" in what for what in left.split(", ") if what)


def _count(arena: Arena, where: str) -> int:
    with closing(psycopg2.connect(arena.admin_url("invoices"))) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM outbox WHERE {where}")
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def _is_ready(arena: Arena) -> bool:
    return requests.get(f"{arena.stack.url}/readyz", timeout=5).status_code == 200


def _seconds_until(condition: Callable[[], bool]) -> float:
    began = monotonic_seconds()
    wait_until(condition, "it", timeout_seconds=LONGEST_SECONDS, every_seconds=0.05)
    return monotonic_seconds() - began


if __name__ == "__main__":
    sys.exit(main())
