"""Bank lines among 10,000 open deals: the time until each has its proposal, and the desk's list of them.

    python -m benchmarks.bench_bank [--lines 50000] [--open 10000]

One CSV file; a fifth of its lines pay an open deal, the others have texts without a reference. Limits: all lines are
proposed in 30 s at 50,000, and the list is shown in 150 ms (p95).
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from contextlib import closing

import psycopg2

from benchmarks.bench_api import running_stack
from benchmarks.bench_desk import desk, operator, p95, took_ms
from benchmarks.desk import years
from benchmarks.processor import processor_seconds
from benchmarks.report import Row, below, options, show
from deploy.local.waiting import wait_until
from fiatgate.bank.v1 import bank_pb2
from fiatgate.bank.v1.bank_pb2_grpc import BankServiceStub
from kit.base.clock import monotonic_seconds
from kit.rpc.client import channel
from tests.support.stack import Stack

LINES_PER_SECOND = 50_000 / 30
PAGE_MS = 150
PROFILE = {
    "columns": {"account": 1, "day": 2, "amount": 3, "text": 4, "counterparty_name": 5},
    "has_header": False,
    "currency": "EUR",
    "day_form": "%Y-%m-%d",
    "delimiter": ";",
    "decimal_mark": ".",
}


def _file(lines: int, open_deals: int) -> bytes:
    """Lines as banks write them; every fifth pays an open deal with its exact amount."""
    chance = random.Random(1)
    rows = []
    for number in range(lines):
        deal = number // 5 % open_deals + 1
        account = f"4000{deal % years.ACCOUNTS:012}"
        if number % 5 or number >= 5 * open_deals:
            text, amount = f"INVOICE {chance.randrange(10**9)} of customer {number}", f"{number % 997}.77"
        else:
            text, amount = f"SVWZ+order {years.reference_of(deal)} thank you", f"{20000 + deal / 100:.2f}"
        rows.append(f"{account};2026-11-28;{amount};{text};Payer {number}")
    return "\n".join(rows).encode()


def _states(stack: Stack) -> dict[str, int]:
    with closing(psycopg2.connect(stack.superuser_url("bank"))) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(tier, state), count(*) FROM lines GROUP BY 1")
        return dict(cursor.fetchall())


def _proposed(stack: Stack, content: bytes) -> list[Row]:
    """Imports the file and waits until no line waits."""
    lines = content.count(b"\n") + 1
    began = monotonic_seconds()
    with channel(stack.addresses["bank"], name="bank") as connected:
        request = bank_pb2.ImportFileRequest(
            content=content, file_name="bench.csv", profile=json.dumps(PROFILE)
        )
        bank = BankServiceStub(connected)
        asked = bank_pb2.GetImportRequest(import_id=bank.ImportFile(request).file.import_id)
        while (file := bank.GetImport(asked).file).state == bank_pb2.IMPORT_STATE_WAITING:
            threading.Event().wait(0.2)
    assert file.lines == lines, file
    taken, before = monotonic_seconds(), processor_seconds(stack, ("bank", "invoices", "postgres"))
    done = "all lines to be proposed"
    wait_until(lambda: "waiting" not in _states(stack), done, timeout_seconds=300, every_seconds=0.5)
    seconds, after = monotonic_seconds() - taken, processor_seconds(stack, before)
    certain = _states(stack).get("certain", 0)
    cost = ", ".join(f"{name} {after[name] - before[name]:.1f}" for name in before)
    return [
        Row(f"{lines:,} lines: the file is taken", f"{taken - began:.1f} s"),
        below("all of them are proposed", seconds, lines / LINES_PER_SECOND, "s"),
        Row("certain ones", f"{certain:,}", f"= {lines // 5:,}", certain == lines // 5),
        Row("processor time of proposals", f"{cost} s"),
    ]


def measure(lines: int, open_deals: int) -> list[Row]:
    with running_stack(FIATGATE_DESK_REQUESTS_PER_MINUTE="0") as stack, desk(stack) as house:
        years.make(stack, years.Years(open_deals, open_deals, open_deals))
        rows = _proposed(stack, _file(lines, open_deals))
        person = operator(house)
        for state in ("proposed", "unmatched"):
            took = took_ms(person, "/bank", state=state)
            rows.append(below(f"list of {state} lines, p95", p95(took), PAGE_MS, "ms"))
    return [*rows, Row("load average while measuring", f"{os.getloadavg()[0]:.1f}")]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--open", type=int, default=10_000)
    given = parser.parse_args()
    return show("Bank", measure(given.lines, given.open))


if __name__ == "__main__":
    sys.exit(main())
