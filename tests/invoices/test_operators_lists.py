"""The operator's lists among many rows: pages have no gaps, and a call reads a bounded number of rows."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from hashlib import md5
from typing import Any, Final
from uuid import UUID

import psycopg2
import pytest

from services.invoices.domain.states import DealStatus, InvoiceStatus
from services.invoices.operations import reading
from services.invoices.store import finding
from services.invoices.store.deal_lists import DealFilter, deals
from services.invoices.store.invoice_lists import InvoiceFilter, InvoiceList, Place, newest_invoices
from tests.invoices.conftest import World
from tests.support.databases import Snapshot, past_all_rules

ROWS: Final = 20_000
MERCHANTS: Final = 20

# An invoice a minute, each with a deal; one in a thousand pending, its deal marked paid.
FILL: Final = f"""
INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, created_at,
                      expires_at, finished_at, event_id, deal_id)
SELECT md5('i' || n)::uuid, md5('m' || n %% {MERCHANTS})::uuid, md5('k')::uuid, 'old-' || n, n %% 5000 + 0.5, 'EUR',
       CASE WHEN n %% 1000 = 0 THEN 'pending' ELSE 'success' END,
       CASE WHEN n %% 1000 = 0 THEN 'p-' || n ELSE 'c-' || n %% 500 END,
       %(now)s - n * interval '1 minute', %(now)s, CASE WHEN n %% 1000 > 0 THEN %(now)s END,
       CASE WHEN n %% 1000 > 0 THEN md5('e' || n)::uuid END, md5('d' || n)::uuid
FROM generate_series(1, {ROWS}) AS n;
INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,
                   currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent,
                   requisite_id, created_at, expires_at, merchant_usdt, finished_at, mark_paid_at, confirm_before,
                   reference, takes_reference, sender_name, sender_words, seal)
SELECT md5('d' || n)::uuid, md5('i' || n)::uuid, md5('m' || n %% {MERCHANTS})::uuid,
       CASE WHEN n %% 1000 = 0 THEN 'pending' ELSE 'completed' END,
       CASE WHEN n %% 1000 = 0 THEN 'awaiting_confirmation' ELSE 'successfully_paid' END,
       'card_eur', 'Card', 'EUR', 2, n %% 5000 + 0.5, n %% 5000 + 0.75, 0.92, 0, 0,
       (SELECT id FROM requisites ORDER BY id LIMIT 1), %(now)s - n * interval '1 minute', %(now)s,
       CASE WHEN n %% 1000 > 0 THEN 1 END, CASE WHEN n %% 1000 > 0 THEN %(now)s END,
       CASE WHEN n %% 1000 = 0 THEN %(now)s END, CASE WHEN n %% 1000 = 0 THEN %(now)s END,
       CASE WHEN n %% 1000 > 0 THEN '00000000' ELSE lpad('' || n, 8, '0') END, true, 'Name ' || n, 'name ' || n,
       sha256('')
FROM generate_series(1, {ROWS}) AS n;
ANALYZE invoices, deals, requisites;
"""


@pytest.fixture(scope="module")
def crowd(module_world: World, beginning: Snapshot) -> Iterator[World]:
    """The world with many finished invoices and deals of several merchants."""
    beginning.restore()
    url = past_all_rules(module_world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(FILL, {"now": module_world.clock.now()})
        yield module_world
        cursor.execute("TRUNCATE invoices, deals CASCADE")


def test_all_pages_together_are_the_list(crowd: World) -> None:
    since = crowd.clock.now() - timedelta(minutes=500)
    found: list[Any] = []
    while True:
        after = str(found[-1].id) if found else ""
        page = reading.list_all_invoices(
            crowd.deps, limit=70, created_from=since, after_invoice_id=after
        ).invoices
        found += page
        if len(page) < 70:
            break
    times = [invoice.created_at for invoice in found]
    assert times == sorted(times, reverse=True)
    assert len({invoice.id for invoice in found}) == len(found) == 500
    some = [str(each.id) for each in found[3:9]]
    named = reading.list_all_invoices(crowd.deps, limit=10, invoice_ids=some).invoices
    assert [str(each.id) for each in named] == some
    owner = str(found[3].merchant_id)
    of_one = reading.list_all_invoices(crowd.deps, limit=10, invoice_ids=some, merchant_id=owner).invoices
    assert [each.id for each in of_one] == [each.id for each in named if str(each.merchant_id) == owner]
    of_order = finding._invoices_by_order
    with crowd.deps.db.autocommit() as connection:
        (one,) = of_order(connection, "old-77", 11)
        newest = finding._invoices_by_customer(connection, "c-77", 11)
        customers = {
            each.value for each in finding._invoices_by_part_of_customer(connection, "c-7", limit=1000)
        }
        assert finding._invoices_by_part_of_customer(connection, "c-", 11) == (), "too short"
    assert (one.value, one.field) == ("old-77", "order")
    assert customers and all(each.startswith("c-7") and each != "c-7" for each in customers)
    assert [each.facts["external_id"] for each in newest] == [f"old-{77 + 500 * n}" for n in range(11)]


def test_a_list_reads_a_bounded_number_of_invoices_and_goes_on_where_it_stopped(crowd: World) -> None:
    def one(after: Place | None, **wanted: Any) -> InvoiceList:
        with crowd.deps.db.autocommit() as connection:
            return newest_invoices(connection, InvoiceFilter(after=after, **wanted), 10, read_most=700)

    rare: list[str] = []
    places: list[Place | None] = [None]
    while len(places) == 1 or places[-1] is not None:
        found = one(places[-1], amount_from=Decimal("4000"), amount_to=Decimal("4000.90"))
        rare += [each.external_id for each in found.invoices]
        places.append(found.reached)
    # One in five thousand; each call read 700, the last one the rest.
    assert rare == ["old-4000", "old-9000", "old-14000", "old-19000"]
    assert len(places) == ROWS // 700 + 2
    assert places[1] is not None
    assert places[1][0] == crowd.clock.now() - timedelta(minutes=700)

    full = one(None, status=InvoiceStatus.SUCCESS)
    assert (len(full.invoices), full.reached) == (10, None)
    # An order is found at once, however old it is.
    (old,) = one(None, external_id="old-19999").invoices
    assert old.external_id == "old-19999"
    customers = one(None, customer_id="c-77", amount_to=Decimal("77.50"))
    assert [each.external_id for each in customers.invoices] == [
        "old-77",
        "old-5077",
        "old-10077",
        "old-15077",
    ]


def test_the_invoices_of_a_customer_of_many_merchants_are_one_list_of_which_a_call_reads_some(
    crowd: World,
) -> None:
    url = past_all_rules(crowd.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as past_rules, past_rules, past_rules.cursor() as cursor:
        cursor.execute("UPDATE invoices SET customer_id = 'guest' WHERE amount < 40 AND status = 'success'")
        guests = cursor.rowcount
    found: list[Any] = []
    after: Place | None = None
    for _ in range(guests):
        with crowd.deps.db.autocommit() as connection:
            wanted = InvoiceFilter(customer_id="guest", after=after)
            page = newest_invoices(connection, wanted, 50, of_each_most=3)
        found += page.invoices
        assert len(page.invoices) <= 3 * MERCHANTS
        after = page.reached
        if after is None:
            break
    assert len({each.id for each in found}) == len(found) == guests
    assert found == sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)


def test_a_list_of_ended_deals_reads_a_bounded_number_and_goes_on_where_it_stopped(crowd: World) -> None:
    def orders(wanted: DealFilter, **options: Any) -> tuple[list[str], Any]:
        with crowd.deps.db.autocommit() as connection:
            found = deals(connection, wanted, 10, **options)
        return [each.external_id for each in found.deals], found.reached

    rare = ["old-4000", "old-9000", "old-14000", "old-19000"]
    amounts: dict[str, Any] = {"amount_from": Decimal("4000"), "amount_to": Decimal("4000.90")}
    for oldest_first in (False, True):
        seen: list[str] = []
        calls, after = 0, None
        while calls == 0 or after is not None:
            wanted = DealFilter(after=after, **amounts)
            more, after = orders(wanted, oldest_first=oldest_first, read_most=700)
            seen, calls = seen + more, calls + 1
        assert seen == (rare[::-1] if oldest_first else rare)
        assert calls == ROWS // 700 + 1
    assert orders(DealFilter(amount_from=Decimal("4000.75"), amount_to=Decimal("4000.75"))) == (rare, None)
    newest = [f"old-{n}" for n in range(77, 5000, 500)]
    assert orders(DealFilter(customer_id="c-77"))[0] == newest
    assert orders(DealFilter(status=DealStatus.COMPLETED, external_id="old-77"), read_most=80) == (
        ["old-77"],
        (crowd.clock.now() - timedelta(minutes=80), UUID(md5(b"d80", usedforsecurity=False).hexdigest())),
    )
    # Open deals are all read, however old: their index is short.
    assert orders(DealFilter(status=DealStatus.PENDING, external_id="old-19000"), read_most=80) == (
        ["old-19000"],
        None,
    )
