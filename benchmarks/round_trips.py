"""Counts the round trips to PostgreSQL and the calls between the processes of one purchase, step by step.

    python -m benchmarks.round_trips

docs/scaling.md has its table. PostgreSQL logs each message that it answers; those that come at rest as well, such as a
timer's, are subtracted. The purchases are made one after the other: under load, facts and deliveries share messages.
"""

from __future__ import annotations

import asyncio
import re
import sys
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any, TypeVar

import psycopg2
import uvloop

from benchmarks.bench_api import running_stack
from benchmarks.bench_latency import LATE_SECONDS, buying
from benchmarks.report import Row, show
from kit.base.clock import monotonic_seconds
from tests.support.authors import act_as
from tests.support.stack import Stack

PURCHASES = 20
REST_SECONDS = 10
SETTLE_SECONDS = 1.5
"""Longer than the acts of a step wait for their entry in the chain."""

_MESSAGE = re.compile(r"^(\w+)\|LOG:\s+duration: [\d.]+ ms  statement: ", re.MULTILINE)
_CALLS = re.compile(r'^fiatgate_rpc_seconds_count\{[^}]*method="([^"]+)"[^}]*\} (\S+)$', re.MULTILINE)

T = TypeVar("T")
Step = tuple[dict[str, float], Counter[str]]
"""Messages by database, and calls by method, of all purchases."""


class Counted:
    """Counts the statements and calls that the stack makes in a step."""

    def __init__(self, stack: Stack) -> None:
        self._log = stack.home.logs / "postgres.log"
        self._metrics = [
            f"http://{each}/metrics"
            for addresses in stack.home.running_stack()["metrics"].values()
            for each in addresses
        ]
        self._at_rest: Counter[str] = Counter()

    async def rest(self) -> None:
        """Counts the messages of a stack without purchases."""
        start = self._log.stat().st_size
        await asyncio.sleep(REST_SECONDS)
        self._at_rest = self._messages(start)

    async def of(self, step: Callable[[T], Awaitable[Any]], each_of: list[T]) -> tuple[list[Any], Step]:
        start, before = self._log.stat().st_size, self._calls()
        started_seconds = monotonic_seconds()
        results = [await step(each) for each in each_of]
        await asyncio.sleep(SETTLE_SECONDS)
        of_rest = (monotonic_seconds() - started_seconds) / REST_SECONDS
        messages = {
            database: max(0.0, count - self._at_rest[database] * of_rest)
            for database, count in self._messages(start).items()
        }
        return results, (messages, self._calls() - before)

    def _messages(self, start: int) -> Counter[str]:
        """Returns the numbers of messages by database since a place in the log."""
        with self._log.open(errors="replace") as log:
            log.seek(start)
            return Counter(_MESSAGE.findall(log.read()))

    def _calls(self) -> Counter[str]:
        calls: Counter[str] = Counter()
        for url in self._metrics:
            with urllib.request.urlopen(url, timeout=5) as answer:
                for method, count in _CALLS.findall(answer.read().decode()):
                    calls[method.rpartition("/")[2]] += int(float(count))
        return calls


def _log_messages(stack: Stack) -> None:
    with closing(psycopg2.connect(stack.home.running_stack()["postgres_url"])) as connection:
        connection.autocommit = True
        for setting in ("log_min_duration_statement = 0", "log_line_prefix = '%d|'"):
            connection.cursor().execute(f"ALTER SYSTEM SET {setting}")
        connection.cursor().execute("SELECT pg_reload_conf()")


async def _measure(stack: Stack) -> list[Row]:
    counted = Counted(stack)
    async with buying(stack) as (shop, buyer):
        for number in range(PURCHASES):
            await buyer.buy(10_000 + number)  # everything is planned, and kept for a moment
        _log_messages(stack)
        await asyncio.sleep(SETTLE_SECONDS)
        await counted.rest()
        created, of_create = await counted.of(buyer.create, list(range(PURCHASES)))
        chosen, of_choice = await counted.of(buyer.choose, [invoice_id for _, invoice_id in created])

        async def confirm_and_deliver(place: int) -> None:
            await buyer.confirm(chosen[place])
            async with asyncio.timeout(LATE_SECONDS):
                await shop.has_seen({created[place][0]})

        _, of_end = await counted.of(confirm_and_deliver, list(range(PURCHASES)))
    steps = {"create-invoice": of_create, "choice of a method": of_choice, "confirmation to delivery": of_end}
    return [row for name, step in steps.items() for row in _rows(name, step)]


def _rows(name: str, step: Step) -> list[Row]:
    messages, calls = step
    return [
        Row(f"{name}: round trips", f"{sum(messages.values()) / PURCHASES:.1f}"),
        *(Row(f"  {database}", f"{count / PURCHASES:.1f}") for database, count in sorted(messages.items())),
        *(
            Row(f"  call {method}", f"{count / PURCHASES:.1f}")
            for method, count in calls.most_common()
            if count >= PURCHASES / 2
        ),
    ]


def main() -> int:
    act_as("benchmarks@harness")
    with running_stack() as stack:
        return show("Round trips of a purchase", uvloop.run(_measure(stack)))


if __name__ == "__main__":
    sys.exit(main())
