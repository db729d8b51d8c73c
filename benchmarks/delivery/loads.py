"""Events of every kind, made in bulk, and what their delivery took."""

from __future__ import annotations

import json
import statistics
import threading
from collections.abc import Sequence
from contextlib import closing

import psycopg2
from sqlalchemy import text
from sqlalchemy.orm import Session

from benchmarks.delivery.stack import Bench, Shop
from deploy.local.waiting import wait_until
from kit.base.clock import monotonic_seconds
from services.webhooks.domain import EventTerms, destination_of
from services.webhooks.events import finished_invoice_from_message
from services.webhooks.operations import queueing

WAIT_SECONDS = 300.0

# Due for a minute: an engine reads events that became due in the last half second with the new ones, so the start of
# the engine would be measured with the first arrivals.
_DUE = text("""
INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url, destination,
    payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)
SELECT gen_random_uuid(), gen_random_uuid(), :merchant_id, :key_id, 'invoice.success', 'pending',
    urls[1 + number % cardinality(urls)], destinations[1 + number % cardinality(urls)],
    convert_to(repeat('x', 600), 'UTF8'), 0, 0, now() - interval '1 minute', now(), now()
FROM generate_series(1, :count) AS number,
    (SELECT CAST(:urls AS text[]) AS urls, CAST(:destinations AS text[]) AS destinations) AS places
""")

_HISTORY = text("""
WITH event AS (
    INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url,
        destination, payload, auto_attempts, manual_attempts, created_at, updated_at)
    SELECT gen_random_uuid(), gen_random_uuid(), :merchant_id, :key_id, 'invoice.success', 'dead',
        'https://shop.example.com/hook', 'shop.example.com:443', convert_to(repeat('x', 600), 'UTF8'), 8, 0,
        now() - interval '1 year', now() - interval '1 year'
    FROM generate_series(1, :events)
    RETURNING id
)
INSERT INTO attempts (event_id, try_number, trigger, status, http_status, response_headers, response_body,
    error_message, duration_ms, created_at)
SELECT id, number, 'auto', 'failure', 500,
    jsonb_build_object('Date', now(), 'Server', 'nginx', 'Content-Type', 'text/html', 'Content-Length', '144'),
    repeat('<html>', 24), 'HTTP status 500', 42, now() - interval '1 year'
FROM event, generate_series(1, 8) AS number
""")


def empty(bench: Bench) -> None:
    """As the superuser: neither the service nor its database's owner deletes events."""
    with closing(psycopg2.connect(bench.admin_url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("TRUNCATE events, attempts RESTART IDENTITY")


def queue_due(bench: Bench, shop: Shop, urls: Sequence[str], count: int) -> None:
    """A backlog of due events, evenly over the endpoints."""
    with bench.deps.db.transaction() as tx:
        tx.execute(text("SET LOCAL statement_timeout = '120s'"))
        tx.execute(
            _DUE,
            {
                "merchant_id": shop.merchant_id,
                "key_id": shop.key_id,
                "urls": list(urls),
                "destinations": [destination_of(url) for url in urls],
                "count": count,
            },
        )
        _seal(bench, tx)
    with bench.deps.db.autocommit() as connection:
        connection.execute(text("ANALYZE events"))


_UNSEALED = text("""
SELECT id, payload_event_id, invoice_id, merchant_id, key_id, event_type, callback_url, destination, payload
FROM events WHERE seal IS NULL
""")
_SEAL = text("""
UPDATE events SET seal = sealed.seal FROM json_to_recordset(:sealed) AS sealed (id bigint, seal text)
WHERE events.id = sealed.id
""")


def _seal(bench: Bench, tx: Session) -> None:
    """As the process that makes an event does."""
    seals, rows = bench.deps.seals, tx.execute(_UNSEALED)
    sealed = []
    for id, *terms, payload in rows:
        sealed.append({"id": id, "seal": seals.seal(EventTerms(*[*terms, bytes(payload)]))})
    tx.execute(_SEAL, {"sealed": json.dumps(sealed)})


def add_history(bench: Bench, attempts: int) -> list[str]:
    """A year old: events that died after eight attempts each; the ids of some of their invoices."""
    with bench.deps.db.transaction() as tx:
        tx.execute(text("SET LOCAL statement_timeout = '300s'"))
        tx.execute(
            _HISTORY,
            {
                "merchant_id": bench.shop.merchant_id,
                "key_id": bench.shop.key_id,
                "events": attempts // 8,
            },
        )
    with bench.deps.db.autocommit() as connection:
        connection.execute(text("SET statement_timeout = '120s'"))
        connection.execute(text("VACUUM ANALYZE events, attempts"))  # as it would be after a year
        some = connection.execute(text("SELECT invoice_id FROM events ORDER BY random() LIMIT 1000")).all()
        connection.execute(text("RESET statement_timeout"))
        return [str(id) for (id,) in some]


def old_attempts(bench: Bench) -> int:
    """How many are left of the history."""
    return int(_number(bench, "SELECT count(*) FROM attempts WHERE created_at < now() - interval '90 days'"))


def drained_per_second(bench: Bench, count: int, *, processes: int) -> float:
    """Of a backlog, by so many processes: the middle four fifths by when they were recorded, for all run then."""
    empty(bench)
    queue_due(bench, bench.shop, [bench.receiver_url], count)
    with bench.work_processes(processes):
        wait_until(
            # An index's last entry: counting would take from what is measured.
            lambda: _number(bench, "SELECT max(id) FROM attempts") >= count,
            f"{count} deliveries",
            timeout_seconds=WAIT_SECONDS,
            every_seconds=0.25,
        )
    recorded = _number(
        bench,
        "SELECT count(*) FROM attempts JOIN events ON events.id = event_id WHERE events.status = 'success'",
    )
    if recorded != count:
        raise RuntimeError(f"{recorded} attempts recorded of {count}")
    middle = _number(
        bench,
        "SELECT extract(epoch FROM percentile_disc(0.9) WITHIN GROUP (ORDER BY updated_at)"
        " - percentile_disc(0.1) WITHIN GROUP (ORDER BY updated_at)) FROM events",
    )
    return 0.8 * count / middle


def _number(bench: Bench, query: str) -> float:
    with bench.deps.db.autocommit() as connection:
        return float(connection.scalar(text(query)) or 0)


def steady_latencies_ms(bench: Bench, *, per_second: int, seconds: int) -> list[float]:
    """From commit to arrival, of fresh events at an even pace, while the engine runs."""
    begun: dict[str, float] = {}
    pace, tick = threading.Event(), monotonic_seconds()
    for number in range(per_second * seconds):
        pace.wait(max(0.0, tick + number / per_second - monotonic_seconds()))
        message = bench.message()
        with bench.deps.db.transaction() as tx:
            queueing.queue_webhook(bench.deps, tx, finished_invoice_from_message(message))
        begun[message.event_id] = monotonic_seconds()
    arrivals: dict[str, float] = {}

    def all_came() -> bool:
        arrivals.update(bench.arrivals())
        return begun.keys() <= arrivals.keys()

    wait_until(all_came, "the last arrivals", timeout_seconds=60, every_seconds=0.5)
    return [max(0.0, 1000 * (arrivals[key] - at)) for key, at in begun.items()]


def p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100)[98]
