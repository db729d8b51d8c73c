"""The operator's lists and searches among many rows: each statement reads an index, and pages have no gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

import psycopg2
import pytest
from sqlalchemy import event, text

from kit.db.finding import Search
from services.invoices.domain.states import DealStatus, InvoiceStatus
from services.invoices.operations import cases, desk, reading
from services.invoices.store import finding
from services.invoices.store import requisites as store
from services.invoices.store.invoice_lists import InvoiceFilter, InvoiceList, Place, newest_invoices
from services.invoices.store.requisites import DealsOfRequisite
from tests.invoices.conftest import World
from tests.support.databases import past_all_rules

ROWS: Final = 20_000
MERCHANTS: Final = 20
SCAN: Final = "Seq Scan on "

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
                   reference, takes_reference, sender_name, sender_words)
SELECT md5('d' || n)::uuid, md5('i' || n)::uuid, md5('m' || n %% {MERCHANTS})::uuid,
       CASE WHEN n %% 1000 = 0 THEN 'pending' ELSE 'completed' END,
       CASE WHEN n %% 1000 = 0 THEN 'awaiting_confirmation' ELSE 'successfully_paid' END,
       'card_eur', 'Card', 'EUR', 2, n %% 5000 + 0.5, n %% 5000 + 0.75, 0.92, 0, 0,
       (SELECT id FROM requisites ORDER BY id LIMIT 1), %(now)s - n * interval '1 minute', %(now)s,
       CASE WHEN n %% 1000 > 0 THEN 1 END, CASE WHEN n %% 1000 > 0 THEN %(now)s END,
       CASE WHEN n %% 1000 = 0 THEN %(now)s END, CASE WHEN n %% 1000 = 0 THEN %(now)s END,
       CASE WHEN n %% 1000 > 0 THEN '00000000' ELSE lpad('' || n, 8, '0') END, true, 'Name ' || n, 'name ' || n
FROM generate_series(1, {ROWS}) AS n;
ANALYZE invoices, deals, requisites;
"""


@pytest.fixture
def crowd(world: World) -> World:
    """The world with many finished invoices and deals of several merchants."""
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(FILL, {"now": world.clock.now()})
    return world


@contextmanager
def statements(world: World) -> Iterator[list[tuple[str, Any]]]:
    """The SELECTs of this service's database while the block runs, with their values."""
    found: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool) -> None:
        found.append((statement, values))

    engine = world.deps.db._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


def plans(world: World, run: Callable[[], object]) -> str:
    """Returns how PostgreSQL runs the statements of `run`."""
    with statements(world) as made:
        run()
    with world.deps.db.autocommit() as connection:
        return "\n".join(
            line
            for statement, values in made
            for line in connection.exec_driver_sql(f"EXPLAIN {statement}", values).scalars()
        )


def lists(world: World) -> dict[str, Callable[[], object]]:
    now = world.clock.now()
    span = {"created_from": now - timedelta(days=3), "created_before": now - timedelta(days=2)}
    with world.deps.db.autocommit() as connection:
        merchant, invoice = map(
            str, connection.execute(text("SELECT merchant_id, id FROM invoices OFFSET 500 LIMIT 1")).one()
        )
        deal = str(connection.execute(text("SELECT id FROM deals OFFSET 500 LIMIT 1")).scalar_one())
        requisite = connection.execute(text("SELECT id FROM requisites ORDER BY id LIMIT 1")).scalar_one()
        some = connection.execute(text("SELECT id FROM deals WHERE confirm_before IS NOT NULL LIMIT 1"))
        marked = str(some.scalar_one())

    def invoices(**wanted: Any) -> Callable[[], object]:
        return lambda: reading.list_all_invoices(world.deps, limit=50, **wanted)

    def deals(**wanted: Any) -> Callable[[], object]:
        return lambda: desk.list_deals(world.deps, limit=50, **wanted)

    def requisite_deals(status: DealStatus) -> Callable[[], object]:
        wanted = DealsOfRequisite(requisite_id=requisite, status=status, created_before=now)

        def run() -> object:
            with world.deps.db.autocommit() as connection:
                return store.deals_of_requisite(connection, wanted, 50, most=1000)

        return run

    def use() -> object:
        with world.deps.db.autocommit() as connection:
            return store.use_since(connection, [requisite], now - timedelta(days=1))

    return {
        "all invoices": invoices(),
        "invoices of a time": invoices(**span),
        "invoices after another": invoices(after_invoice_id=invoice),
        "invoices of an amount": invoices(amount="49.50"),
        "invoices of amounts": invoices(amount_from="49.50", amount_to="60", currency_code="EUR"),
        "invoices of an order": invoices(external_id="old-77"),
        "invoices of a customer": invoices(customer_id="c-77", created_from=now - timedelta(days=300)),
        "invoices of a customer of a merchant": invoices(customer_id="c-77", merchant_id=merchant),
        "invoices of a method": invoices(method_code="card_eur", after_invoice_id=invoice),
        "rare invoices": invoices(status=InvoiceStatus.FAIL),
        "invoices of a merchant": invoices(merchant_id=merchant, status=InvoiceStatus.SUCCESS),
        "successful invoices": invoices(status=InvoiceStatus.SUCCESS, after_invoice_id=invoice),
        "all deals": deals(),
        "deals of a time": deals(**span),
        "the queue": deals(marked_paid=True, amount_from="100", customer_id="c-77"),
        "the queue after another": deals(marked_paid=True, after_deal_id=marked),
        "appeals": deals(status=DealStatus.APPEAL, oldest_first=True, merchant_id=merchant),
        "deals of an account": deals(status=DealStatus.PENDING, account="4000 0025"),
        "states of deals": lambda: desk.list_deal_states(world.deps, deal_ids=[deal, marked]),
        "a deal with those near it": lambda: desk.get_deal(world.deps, deal_id=deal),
        "deals after another": deals(after_deal_id=deal, status=DealStatus.COMPLETED),
        "deals of a requisite": requisite_deals(status=DealStatus.COMPLETED),
        "appeals of a requisite": requisite_deals(status=DealStatus.APPEAL),
        "use of a requisite": use,
        "cases": lambda: cases.list_cases(world.deps, open_only=True, limit=50),
    }


def test_lists_and_searches_read_indexes(crowd: World) -> None:
    def search(search: Search, text: str) -> Callable[[], object]:
        def run() -> object:
            with crowd.deps.db.autocommit() as connection:
                return search(connection, text, 11)

        return run

    searches = {
        f"{each.__name__} {text}": search(each, text)
        for each in finding.SEARCHES
        for text in (
            "49.50",
            "49.75",
            "old-77",
            "c-77",
            "name 77",
            "0000 0000",
            "3f0c7b1e-6d7e",
            "4000 0025",
            "1001",
        )
    }
    for name, run in (lists(crowd) | searches).items():
        plan = plans(crowd, run)
        # A table with a page or two is read whole: requisites and cases are few here.
        assert f"{SCAN}invoices" not in plan, f"{name}:\n{plan}"
        assert f"{SCAN}deals" not in plan, f"{name}:\n{plan}"


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
    of_order = finding._invoices_by_order
    with crowd.deps.db.autocommit() as connection:
        (one,) = of_order(connection, "old-77", 11)
        newest = finding._invoices_by_customer(connection, "c-77", 11)
    assert (one.value, one.field) == ("old-77", "order")
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
