"""Many invoices whose time ends at the same moment, until the last webhook of them is queued.

    python -m benchmarks.bench_expiry [--invoices 100000] [--deals 10000]

Two crowds, one after the other: `invoices` without a method, and then `deals` with an unpaid deal. The rows are made by
SQL and end together. Another load creates invoices all the time, each request over a connection of its own. The
merchant's endpoint answers every webhook, and delivery goes on beside. Limits, for the first crowd: 60 s from the
moment of the end until all webhooks are queued (an event row of each), and create-invoice's p99 meanwhile at most twice
its p99 alone.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg2

from benchmarks.bench_api import running_stack
from benchmarks.processor import processor_seconds
from benchmarks.report import Row, options, show
from benchmarks.walls.victim import Request, Series, Victim
from deploy.local.ports import free_ports
from kit.base.clock import SystemClock
from tests.support.stack import Stack

MOST_SECONDS: Final = 60
MOST_TIMES: Final = 2.0
ALONE_SECONDS: Final = 15
CHUNK_SECONDS: Final = 3
GIVE_UP_SECONDS: Final = 600
ROWS_PER_SECOND: Final = 3000
"""The pace at which rows are made at least."""
ACCOUNTS: Final = 100
CREATE: Final = "create-invoice"

# As purchases leave them: an id begins with its time, as kit.base.ids makes it.
_INVOICES: Final = """
INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, callback_url,
                      created_at, expires_at, deal_id)
SELECT gen_random_uuid(), %(merchant)s, %(key)s, %(crowd)s || '-' || n, 100 + n / 100.0, 'EUR', 'pending',
       %(crowd)s || '-buyer-' || n, %(callback_url)s, now() - n * interval '1 millisecond', %(ends_at)s,
       CASE WHEN %(deals)s THEN gen_random_uuid() END
FROM generate_series(1, %(count)s) AS n
"""
_ACCOUNTS: Final = f"""
INSERT INTO requisites (id, method_code, holder, account, max_deals, open_deals, enabled, created_at)
SELECT md5('account' || n)::uuid, 'eur-card', 'Holder ' || n, '4000' || lpad(n::text, 12, '0'), 1000000, 0, true, now()
FROM generate_series(0, {ACCOUNTS - 1}) AS n ON CONFLICT DO NOTHING
"""
_DEALS: Final = f"""
INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,
                   currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent,
                   requisite_id, created_at, expires_at, reference, takes_reference, seal)
SELECT deal_id, id, merchant_id, 'pending',
       'awaiting_payment', 'eur-card', 'Card', 'EUR', 2,
       amount, amount, 0.91, 0, 6, md5('account' || abs(hashtext(id::text)) %% {ACCOUNTS})::uuid, created_at,
       expires_at, NULL, true, sha256('')
FROM invoices WHERE external_id LIKE %(crowd)s || '-%%'
"""
_STEPS: Final = """
INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
SELECT deals.id, deals.created_at, deals.status, 'awaiting_payment', 'customer', ''
FROM deals JOIN invoices ON invoices.id = deals.invoice_id WHERE external_id LIKE %(crowd)s || '-%%'
"""
_TAKEN: Final = """
UPDATE requisites SET open_deals = held.deals
FROM (SELECT requisite_id, count(*) AS deals FROM deals WHERE finished_at IS NULL GROUP BY requisite_id) AS held
WHERE held.requisite_id = requisites.id
"""
# Those that open invoices of other merchants hold stay out of it.
_LEFT_OPEN: Final = (
    "SELECT count(*) FROM invoices WHERE external_id LIKE %(crowd)s || '-%%' AND status = 'pending'"
)
_QUEUED: Final = "SELECT count(*), max(created_at) FROM events WHERE created_at >= %(ends_at)s"


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Rows that end together: `name` begins their external ids."""

    name: str
    count: int
    ends_at: datetime
    has_deals: bool = False


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The time until the last was ended and its webhook queued, and the processor time of each by program."""

    seconds: float
    alone: Series
    meanwhile: Series
    took_ms: dict[str, float]


@contextmanager
def _endpoint() -> Iterator[str]:
    port = free_ports(1)[0]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.delivery.receiver", str(port)])
    try:
        yield f"http://127.0.0.1:{port}/hook"
    finally:
        process.terminate()
        process.wait(10)


def _creations(stack: Stack) -> Iterator[Request]:
    headers = {"X-Api-Key": stack.demo["api_key"]}
    while True:
        name = secrets.token_hex(8)
        body = {"amount": "100.50", "currency_code": "EUR", "customer_id": name, "external_id": name}
        yield Request("POST", "/api/v1/create-invoice", headers, body=body)


def _make(stack: Stack, crowd: Crowd, callback_url: str) -> None:
    values: dict[str, Any] = {
        "merchant": stack.demo["merchant_id"],
        "key": stack.demo["key_id"],
        "crowd": crowd.name,
        "count": crowd.count,
        "ends_at": crowd.ends_at,
        "deals": crowd.has_deals,
        "callback_url": callback_url,
    }
    statements = [_INVOICES]
    if crowd.has_deals:
        statements += [_ACCOUNTS, _DEALS, _STEPS, _TAKEN]
    with (
        closing(psycopg2.connect(stack.superuser_url("invoices"))) as connection,
        connection.cursor() as cursor,
    ):
        connection.autocommit = True
        for statement in statements:
            cursor.execute(statement, values)
        cursor.execute("VACUUM ANALYZE invoices")
        cursor.execute("VACUUM ANALYZE deals")
        cursor.execute("CHECKPOINT")


def _one_row(stack: Stack, service: str, query: str, crowd: Crowd) -> tuple[Any, ...]:
    values = {"crowd": crowd.name, "ends_at": crowd.ends_at}
    with closing(psycopg2.connect(stack.superuser_url(service))) as connection, connection.cursor() as cursor:
        cursor.execute(query, values)
        row = cursor.fetchone()
    assert row is not None
    return row


def _is_over(stack: Stack, crowd: Crowd) -> bool:
    return bool(_one_row(stack, "webhooks", _QUEUED, crowd)[0] >= crowd.count)


def _over_at(stack: Stack, crowd: Crowd) -> datetime:
    queued_at: datetime = _one_row(stack, "webhooks", _QUEUED, crowd)[1]
    assert _one_row(stack, "invoices", _LEFT_OPEN, crowd)[0] == 0
    return queued_at


def _seconds_to(moment: datetime) -> float:
    return (moment - SystemClock().now()).total_seconds()


def _measure(stack: Stack, name: str, count: int, callback_url: str, *, has_deals: bool) -> Measured:
    ends_at = SystemClock().now() + timedelta(
        seconds=ALONE_SECONDS + 2 * CHUNK_SECONDS + 5 + count / ROWS_PER_SECOND
    )
    crowd = Crowd(name=name, count=count, ends_at=ends_at, has_deals=has_deals)
    _make(stack, crowd, callback_url)
    victim = Victim(stack.url, {CREATE: _creations(stack)})
    victim.work({CREATE: Series()}, seconds=CHUNK_SECONDS)
    alone, meanwhile = Series(), Series()
    victim.work({CREATE: alone}, seconds=ALONE_SECONDS)
    assert _seconds_to(ends_at) > 0, "the rows took too long to make"
    while _seconds_to(ends_at) > 0:
        victim.work({CREATE: Series()}, seconds=1)
    before = processor_seconds(stack)
    while not _is_over(stack, crowd):
        assert _seconds_to(ends_at) > -GIVE_UP_SECONDS, f"{name}: not over after {GIVE_UP_SECONDS} s"
        victim.work({CREATE: meanwhile}, seconds=CHUNK_SECONDS)
    after = processor_seconds(stack)
    return Measured(
        seconds=(_over_at(stack, crowd) - ends_at).total_seconds(),
        alone=alone,
        meanwhile=meanwhile,
        took_ms={each: 1000 * (after[each] - before[each]) / count for each in after},
    )


def _rows(what: str, count: int, measured: Measured, *, limited: bool) -> list[Row]:
    times = measured.meanwhile.p99_ms / measured.alone.p99_ms
    failed = sum((measured.alone.failures + measured.meanwhile.failures).values())
    limit, most = (f"<= {MOST_SECONDS} s", f"<= {MOST_TIMES:g} x") if limited else ("", "")
    return [
        Row(f"{count:,} {what}", f"{measured.seconds:.1f} s", limit, measured.seconds <= MOST_SECONDS),
        Row("  a second", f"{count / measured.seconds:,.0f}"),
        Row(
            "  create-invoice's p99 alone, meanwhile",
            f"{measured.alone.p99_ms:.0f} ms, {measured.meanwhile.p99_ms:.0f} ms",
        ),
        Row("  its p99 meanwhile / alone", f"{times:.1f} x", most, times <= MOST_TIMES),
        Row("  failed requests", str(failed), "0", failed == 0),
        Row("  processor time of each, all", f"{sum(measured.took_ms.values()):.2f} ms"),
        *(
            Row(f"    {name}", f"{took_ms:.2f} ms")
            for name, took_ms in sorted(measured.took_ms.items())
            if took_ms >= 0.01
        ),
    ]


def measure(invoices: int, deals: int) -> list[Row]:
    rows = []
    with _endpoint() as callback_url, running_stack(FIATGATE_RATE_LIMIT_PER_MINUTE="0") as stack:
        if invoices:
            waiting = _measure(stack, "waiting", invoices, callback_url, has_deals=False)
            rows += _rows("without a method, to the last webhook", invoices, waiting, limited=True)
        if deals:
            unpaid = _measure(stack, "unpaid", deals, callback_url, has_deals=True)
            rows += _rows("with an unpaid deal, to the last webhook", deals, unpaid, limited=False)
    return [*rows, Row("load average while measuring", f"{os.getloadavg()[0]:.1f}")]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--invoices", type=int, default=100_000)
    parser.add_argument("--deals", type=int, default=10_000)
    given = parser.parse_args()
    return show("Expiry", measure(given.invoices, given.deals))


if __name__ == "__main__":
    sys.exit(main())
