"""The event chain through its worst hours, on a whole stack: NATS away, and all that NATS had stored lost.

The outbox holds facts of a busy week when the stream is lost: every one is announced again, and those that somebody
misses must not wait for the rest.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import psycopg2
import requests

from benchmarks.report import Row, below, show
from deploy.local.waiting import wait_until
from kit.clock import monotonic_seconds
from kit.ids import new_id
from tests.e2e.market import Shop
from tests.faults import checker
from tests.faults.arena import Arena
from tests.faults.trade import Trade
from tests.support.receiver import Receiver

OUTAGES: Final = 3
SOLD: Final = 20
OLD_FACTS: Final = 50_000
LONGEST_SECONDS: Final = 300


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="fiatgate-chain-") as folder,
        Arena(Path(folder)) as arena,
        Trade(arena, Shop.opened(arena.stack)) as trade,
        Receiver() as receiver,
    ):
        sales = Sales(trade, receiver)
        rows = _away(arena, sales) + _lost(arena, sales)
    return show("The event chain", rows)


class Sales:
    """Purchases, each with a path of the receiver to itself."""

    def __init__(self, trade: Trade, receiver: Receiver) -> None:
        self.trade = trade
        self._receiver = receiver
        self._paths: list[str] = []

    def sell(self) -> None:
        """20 purchases up to the operator's confirmation."""
        for _ in range(SOLD):
            self._paths.append(new_id().hex)
            self.trade.sell(self._receiver.url(self._paths[-1]))

    @property
    def doubled(self) -> int:
        """Webhooks that came again."""
        return sum(len(self._receiver.received(path)) - 1 for path in self._paths)


def _away(arena: Arena, sales: Sales) -> list[Row]:
    """NATS stops, business goes on, NATS is back."""
    noticed, through = [], []
    for _ in range(OUTAGES):
        arena.stack.stop_program("nats")
        noticed.append(_seconds_until(lambda: not _is_ready(arena)))
        sales.sell()
        arena.stack.start_program("nats")
        through.append(_seconds_until(lambda: _arrived(arena, sales.trade.shop)))
        arena.stack.wait_until_ready()
    return [
        below("NATS stops: /readyz says so, worst of 3", max(noticed), 5, "s"),
        below(f"NATS is back: {SOLD} facts of meanwhile arrived, worst of 3", max(through), 30, "s"),
        Row("the same, median", f"{statistics.median(through):.1f} s"),
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
