"""A merchant's list of invoices with its exact total: three merchants with 10,000, 1,000,000 and 5,000,000.

    python -m benchmarks.bench_lists [--invoices 10000 1000000 5000000]

Limit: with every filter, on the first, the middle and the deepest page, the list of the larger merchants takes at most
1.5 times as long as that of the smallest. Each figure is the median of requests made in turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg2

from benchmarks.bench_api import running_stack
from benchmarks.desk.years import NOT_SUMMED, filling
from benchmarks.report import Row, show
from deploy.local.waiting import wait_until
from kit.base.clock import monotonic_seconds
from tests.support.authors import act_as
from tests.support.databases import COUNT_ANEW
from tests.support.stack import Stack

MOST = 1.5
REPEATS = 15
PER_PAGE = 20
COUNT_SECONDS = 240

# Two fifths succeed, a tenth is in another currency than most. Each merchant has 40 in a rare status and 40 in a rare
# currency.
_INVOICES: Final = """
INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, created_at,
                      expires_at, finished_at, event_id)
SELECT gen_random_uuid(), %(merchant)s, md5('k')::uuid, 'order-' || lpad(n::text, 8, '0'), n %% 50000 / 7.0 + 10,
       CASE WHEN n %% (%(invoices)s / 40) = 7 THEN 'JPY' WHEN n %% 10 = 3 THEN 'GBP' ELSE 'EUR' END,
       CASE WHEN n %% (%(invoices)s / 40) = 4 THEN 'fail' WHEN n %% 5 < 2 THEN 'success' WHEN n %% 3 = 0 THEN 'expired'
         ELSE 'canceled' END,
       'customer-' || n %% 400000, at, at + interval '30 minutes', at + interval '10 minutes', gen_random_uuid()
FROM generate_series(1, %(invoices)s) AS n
CROSS JOIN LATERAL (
  SELECT now() - interval '1 hour' - interval '1 year' * (%(invoices)s - n) / %(invoices)s AS at
) AS its
"""
_UNCOUNTED: Final = """
SELECT EXISTS (SELECT FROM invoices, segment_place
               WHERE (created_at, id) > (invoice_at, invoice_id) AND created_at < now() - interval '10 minutes')
"""
_COUNTED: Final = "VACUUM ANALYZE invoice_segments"

FILTERS: Final[dict[str, dict[str, str]]] = {
    "no filter": {},
    "a status": {"status": "success"},
    "a rare status": {"status": "fail"},
    "a currency": {"currency": "EUR"},
    "a rare currency": {"currency": "JPY"},
    "status and currency": {"status": "expired", "currency": "GBP"},
}


@dataclass
class Shop:
    """A merchant with so many invoices, and the times of its pages in ms."""

    invoices: int
    merchant_id: str
    api_key: str
    took: dict[tuple[str, str], list[float]] = field(default_factory=dict)


def _opened(stack: Stack, invoices: int) -> Shop:
    options = ("--owner", f"owner-{invoices}@shop.example", "--active", "--category", "standard")
    merchant = stack.cli("merchants", "create", f"Shop {invoices}", *options)["merchant_id"]
    return Shop(invoices, merchant, stack.cli("keys", "create", merchant)["api_key"])


def _fill(stack: Stack, shops: Sequence[Shop]) -> None:
    with filling(stack) as cursor:
        cursor.execute(NOT_SUMMED)
        for shop in shops:
            cursor.execute(_INVOICES, {"merchant": shop.merchant_id, "invoices": shop.invoices})


def _count(stack: Stack) -> float:
    """Returns the seconds until the worker has counted all of them."""
    with closing(psycopg2.connect(stack.superuser_url("invoices"))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:

            def value(statement: str) -> Any:
                cursor.execute(statement)
                return cursor.fetchone()

            cursor.execute(COUNT_ANEW)
            began = monotonic_seconds()
            wait_until(
                lambda: value(_UNCOUNTED) == (False,), "all to be counted", timeout_seconds=COUNT_SECONDS
            )
            took = monotonic_seconds() - began
            cursor.execute(_COUNTED)
            return took


def _get(stack: Stack, shop: Shop, filters: dict[str, str], page: int) -> tuple[int, float]:
    """Returns the number of all that match, and the ms of the request."""
    began = monotonic_seconds()
    query = {**filters, "page": str(page), "per_page": str(PER_PAGE)}
    answer = stack.request("GET", "/api/v1/invoices", api_key=shop.api_key, params=query)
    assert answer.status_code == 200, f"{query}: {answer.status_code} {answer.text[:200]}"
    return answer.json()["total"], 1000 * (monotonic_seconds() - began)


def _pages(stack: Stack, shop: Shop, filters: dict[str, str]) -> dict[str, int]:
    total, _ = _get(stack, shop, filters, 1)
    assert filters or total == shop.invoices, f"{total} in place of {shop.invoices}"
    pages = -(-total // PER_PAGE)
    return {"first": 1, "middle": (pages + 1) // 2, "deepest": pages}


def _time_lists(stack: Stack, shops: Sequence[Shop]) -> None:
    for name, filters in FILTERS.items():
        pages = [_pages(stack, shop, filters) for shop in shops]
        for page in ("first", "middle", "deepest"):
            for number in range(REPEATS + 2):
                for shop, its in zip(shops, pages, strict=True):
                    took = _get(stack, shop, filters, its[page])[1]
                    if number >= 2:  # the first ones read what is not in memory yet
                        shop.took.setdefault((name, page), []).append(took)


def _rows(shops: Sequence[Shop]) -> list[Row]:
    smallest, *larger = shops
    rows = []
    for shop in larger:
        for name in FILTERS:
            ratios = {
                page: statistics.median(took) / statistics.median(smallest.took[name, page])
                for (its, page), took in shop.took.items()
                if its == name
            }
            page, ratio = max(ratios.items(), key=lambda each: each[1])
            what = f"{shop.invoices:,} / {smallest.invoices:,}, {name}, slowest page"
            rows.append(Row(what, f"{ratio:.2f} ({page})", f"<= {MOST}", ratio <= MOST))
    for shop in shops:
        times = [statistics.median(shop.took["no filter", page]) for page in ("first", "middle", "deepest")]
        shown = ", ".join(f"{each:.1f}" for each in times)
        rows.append(Row(f"{shop.invoices:,}: first, middle, deepest page", f"{shown} ms"))
    return rows


def measure(sizes: Sequence[int]) -> list[Row]:
    with running_stack(FIATGATE_RATE_LIMIT_PER_MINUTE="0") as stack:
        shops = [_opened(stack, invoices) for invoices in sizes]
        began = monotonic_seconds()
        _fill(stack, shops)
        filled_seconds = monotonic_seconds() - began
        counted_seconds = _count(stack)
        _time_lists(stack, shops)
    return [
        *_rows(shops),
        Row("time to make all of them", f"{filled_seconds:.0f} s"),
        Row("time to count them once", f"{counted_seconds:.0f} s"),
        Row("load average while measuring", f"{os.getloadavg()[0]:.1f}"),
    ]


def main() -> int:
    act_as("benchmarks@harness")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--invoices", type=int, nargs="+", default=[10_000, 1_000_000, 5_000_000])
    return show("Lists", measure(sorted(parser.parse_args().invoices)))


if __name__ == "__main__":
    sys.exit(main())
