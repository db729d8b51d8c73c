"""Webhook delivery: a backlog beside a bare aiohttp loop, and what must not disturb them.

    python -m benchmarks.bench_webhooks [--events 50000] [--attempts 1000000] [--only NAME ...]

Real PostgreSQL (with every wait for the disk), NATS, merchants and receiver in processes of their own. Every delivery
is signed, sent, and recorded as the history shows it. Limits:

    throughput  a backlog of due events, by one process, >= 0.50 of the bare loop to the same receiver in the same run;
                by two processes more than by one
    fairness    99 % of others' events, while one merchant's 10,000 hang for 15 s each, at one endpoint and at 200, or
                their answers drip: < 1 s, and < 2 times of what they take alone; < 1 s while all of them are refused
    history     endpoint 4's query over a million attempts: 99 % < 100 ms; while those attempts are deleted, at the
                pace of the worker and the command, fresh events take < 2 times of what they took before
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise

import aiohttp
import uvloop

from benchmarks.delivery import loads
from benchmarks.delivery.loads import p99
from benchmarks.delivery.receiver import DRIP, FAIL, HANG
from benchmarks.delivery.stack import Bench, running_bench
from benchmarks.report import Row, at_least, below, options, show
from kit.base.clock import monotonic_seconds
from services.webhooks import workers
from services.webhooks.domain import signature
from services.webhooks.operations import reading

LEAST_RATIO = 0.50
MOST_OTHERS_MS = 1000.0
MOST_OTHERS_RATIO = 2.0
MOST_HISTORY_MS = 100.0
BARE_CONCURRENCY = 64
ROUNDS = 3
BAD_EVENTS = 10_000
ALONE = "alone"
AT_WORK = "10,000 at one endpoint are refused at once"
BAD: Mapping[str, tuple[str, int]] = {
    ALONE: ("", 0),
    "10,000 hang for 15 s each at one endpoint": (HANG, 1),
    "10,000 hang so at 200 endpoints": (HANG, 200),
    "10,000 at 200 endpoints get an answer that drips": (DRIP, 200),
    AT_WORK: (FAIL, 1),
}
PER_SECOND = 50
SECONDS = 8


async def _bare_loop(url: str, count: int) -> float:
    """Deliveries per second of aiohttp alone: the same signed body, nothing read from or written to a database."""
    body = b'{"event_id":"%s"}' % (b"x" * 600)
    left = iter(range(count))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def send() -> None:
            for number in left:
                headers = {
                    "Content-Type": "application/json",
                    "X-Idempotency-Key": f"bare-{number}",
                    "X-Signature": signature("secret", "1700000000", body),
                    "X-Signature-Timestamp": "1700000000",
                }
                async with session.post(url, data=body, headers=headers) as answer:
                    await answer.read()

        started = monotonic_seconds()
        await asyncio.gather(*(send() for _ in range(BARE_CONCURRENCY)))
        return count / (monotonic_seconds() - started)


def throughput(bench: Bench, given: argparse.Namespace) -> list[Row]:
    """Round by round, for the machine's mood changes: beside each stands the bare loop just before and after it."""

    def bare() -> float:
        return uvloop.run(_bare_loop(bench.receiver_url, given.events // 4))

    alone, one, two = [bare()], [], []
    for _ in range(ROUNDS):
        one.append(loads.drained_per_second(bench, given.events, processes=1))
        alone.append(bare())
        two.append(loads.drained_per_second(bench, given.events, processes=2))
    around = [(before + after) / 2 for before, after in pairwise(alone)]
    ratio = statistics.median(engine / loop for engine, loop in zip(one, around, strict=True))
    gain = statistics.median(more / less for more, less in zip(two, one, strict=True))
    return [
        Row("bare aiohttp loop", f"{statistics.median(alone):,.0f}/s"),
        Row(f"backlog of {given.events:,}, one process", f"{statistics.median(one):,.0f}/s"),
        Row(f"backlog of {given.events:,}, two processes", f"{statistics.median(two):,.0f}/s"),
        at_least(f"one process / bare loop, median of {ROUNDS}", ratio, LEAST_RATIO),
        at_least(f"two processes / one, median of {ROUNDS}", gain, 1.0),
    ]


def fairness(bench: Bench, given: argparse.Namespace) -> list[Row]:
    took: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for what, (path, endpoints) in BAD.items():
            loads.empty(bench)
            if endpoints:
                loads.queue_due(bench, bench.attacker, bench.bad_urls(path, endpoints), BAD_EVENTS)
            with bench.workers():
                latencies = loads.steady_latencies_ms(bench, per_second=PER_SECOND, seconds=SECONDS)
            took.setdefault(what, []).append(p99(latencies))
    alone = took.pop(ALONE)
    rows = [Row(f"{PER_SECOND}/s, p99, alone, median of {ROUNDS}", f"{statistics.median(alone):.1f} ms")]
    for what, others in took.items():
        rows.append(below(f"the same while {what}", statistics.median(others), MOST_OTHERS_MS, "ms"))
        ratio = statistics.median(each / best for each, best in zip(others, alone, strict=True))
        # To be refused as quickly as can be is work like any other, and work is all that it costs the others.
        rows.append(
            Row("  to alone", f"{ratio:.1f} x")
            if what == AT_WORK
            else below("  to alone", ratio, MOST_OTHERS_RATIO, "x")
        )
    return rows


def history(bench: Bench, given: argparse.Namespace) -> list[Row]:
    loads.empty(bench)
    invoices = loads.add_history(bench, given.attempts)
    took = []
    for invoice_id in invoices:
        started = monotonic_seconds()
        reading.list_invoice_events(
            bench.deps, merchant_id=str(bench.shop.merchant_id), invoice_id=invoice_id
        )
        took.append(1000 * (monotonic_seconds() - started))
    before, during, pruned, pruning_seconds = [], [], 0, 0.0
    pruning = workers.retention(bench.deps)
    for _ in range(ROUNDS):  # in turns, for the machine's mood changes
        with bench.workers():
            before.append(p99(loads.steady_latencies_ms(bench, per_second=PER_SECOND, seconds=SECONDS)))
        old, started = loads.old_attempts(bench), monotonic_seconds()
        with bench.workers(pruning):
            during.append(p99(loads.steady_latencies_ms(bench, per_second=PER_SECOND, seconds=SECONDS)))
        pruning_seconds += monotonic_seconds() - started
        pruned += old - loads.old_attempts(bench)
    ratio = statistics.median(
        while_they_go / alone for while_they_go, alone in zip(during, before, strict=True)
    )
    return [
        below(f"history of an invoice, {given.attempts:,} attempts, p99", p99(took), MOST_HISTORY_MS, "ms"),
        Row(f"{PER_SECOND}/s, p99, before old attempts go", f"{statistics.median(before):.1f} ms"),
        Row(f"the same while {pruned / pruning_seconds:,.0f}/s go", f"{statistics.median(during):.1f} ms"),
        below(f"  to before, median of {ROUNDS}", ratio, MOST_OTHERS_RATIO, "x"),
    ]


PARTS: dict[str, Callable[[Bench, argparse.Namespace], list[Row]]] = {
    "throughput": throughput,
    "fairness": fairness,
    "history": history,
}


def main() -> int:
    """Measures, prints the table, returns 1 when a limit is missed."""
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=50_000, help="backlog to drain")
    parser.add_argument("--attempts", type=int, default=1_000_000, help="in the history")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    given = parser.parse_args()
    with running_bench() as bench:
        rows = [row for part in given.only for row in PARTS[part](bench, given)]
    return show("webhooks", rows)


if __name__ == "__main__":
    sys.exit(main())
