"""The lists and searches of the desk at a million rows: none reads or sorts a large part of a table.

A new list is one line in `LISTS`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import Connection, text

from kit.audit import approval_lists
from kit.audit.approvals import State
from kit.audit.listing import Filter, list_acts
from kit.db.finding import OwnSearch
from kit.db.queues import waiting
from services.identity.config import IdentitySettings
from services.identity.domain.merchants import MerchantFilter, MerchantStatus
from services.identity.operations import merchants, owners
from services.identity.store import finding as merchants_finding
from services.identity.wiring import wire as wire_merchants
from services.invoices.config import InvoicesSettings
from services.invoices.domain.states import DealStatus, InvoiceStatus
from services.invoices.operations import cases, desk, reading, reports, requisites
from services.invoices.store import deal_lists
from services.invoices.store import finding as invoices_finding
from services.invoices.store import queues as invoices_queues
from services.invoices.store.daily import By
from services.invoices.wiring import wire as wire_invoices
from services.webhooks.config import WebhooksSettings
from services.webhooks.domain import EventStatus
from services.webhooks.operations import desk as webhooks_desk
from services.webhooks.operations import reading as webhooks_reading
from services.webhooks.store import finding as webhooks_finding
from services.webhooks.store import queues as webhooks_queues
from services.webhooks.store.lists import EventFilter
from services.webhooks.wiring import wire as wire_webhooks
from services.withdrawals.config import WithdrawalsSettings
from services.withdrawals.domain import Stage, WithdrawalStatus
from services.withdrawals.operations import days, ledger, statements
from services.withdrawals.operations import reading as withdrawals_reading
from services.withdrawals.operations.reading import Wanted
from services.withdrawals.store import finding as withdrawals_finding
from services.withdrawals.store import queues as withdrawals_queues
from services.withdrawals.wiring import wire as wire_withdrawals
from tests.lists.crowds import FILLS, NOW, fill, id_of
from tests.lists.plans import List, faults_of, nodes, plans_of, statements_of
from tests.support.serving import TEST_MASTER_KEY
from tests.support.signing import SIGNING_KEY

M: Final = id_of("m", 7)
DAYS: Final[dict[str, Any]] = {
    "created_from": NOW - timedelta(days=3),
    "created_before": NOW - timedelta(days=2),
}
MONTH: Final[dict[str, Any]] = {"created_from": NOW - timedelta(days=31), "created_before": NOW}
WORDS: Final = (
    "49.50",
    "49.75",
    "order-77",
    "customer-77",
    "name 77",
    "40000000 1025",
    id_of("i", 9)[:13],
    "1001",
    id_of("e", 9),
    "T77",
    "0000077J",
)
TRANSFERS: Final[dict[str, Any]] = {
    **dict.fromkeys(("merchant_id", "invoice_id", "withdraw_uuid", "after_transfer_id"), ""),
    "created_from": None,
    "created_before": None,
    "limit": 50,
    "with_balances": True,
    "after_balance": None,
}
OPEN_DEALS: Final[dict[str, Any]] = {"marked_paid": True, "limit": 50}


def events_of(**wanted: Any) -> List:
    return lambda deps: webhooks_desk.list_events(deps, EventFilter(**wanted), limit=50)


def own_invoices(**wanted: Any) -> List:
    filters: dict[str, Any] = {"status": None, "currency_code": None, "ascending": False, "page": 1}
    return lambda deps: reading.list_invoices(deps, merchant_id=M, per_page=20, **(filters | wanted))


def invoices_of(**wanted: Any) -> List:
    return lambda deps: reading.list_all_invoices(deps, limit=50, **wanted)


def deals_of(**wanted: Any) -> List:
    return lambda deps: desk.list_deals(deps, limit=50, **wanted)


def requisite_deals_of(status: DealStatus | None = None) -> List:
    rest: dict[str, Any] = {"created_from": None, "created_before": None, "after_deal_id": "", "limit": 50}
    return lambda deps: requisites.list_requisite_deals(
        deps, requisite_id=id_of("r", 7), status=status, **rest
    )


def requests_of(deps: Any, **wanted: Any) -> object:
    with deps.db.transaction() as tx:
        return approval_lists.page(tx, approval_lists.Filter(**wanted), limit=50)


def withdrawals_of(wanted: Wanted = Wanted(), **given: Any) -> List:  # noqa: B008  it is frozen
    rest: dict[str, Any] = {"limit": 50, "after_withdraw_uuid": "", "oldest_first": False} | given
    return lambda deps: withdrawals_reading.list_all_withdrawals(deps, wanted, **rest)


LISTS: Final[Mapping[str, dict[str, List]]] = {
    "invoices": {
        "deals: queue": lambda deps: desk.list_deals(deps, **OPEN_DEALS),
        "deals: queue, next page": lambda deps: desk.list_deals(
            deps, after_deal_id=id_of("d", 82), **OPEN_DEALS
        ),
        "deals: queue by amount": lambda deps: desk.list_deals(
            deps, by_amount=True, after_deal_id=id_of("d", 82), **OPEN_DEALS
        ),
        "deals: queue of a merchant": lambda deps: desk.list_deals(deps, merchant_id=M, **OPEN_DEALS),
        "deals: queue of a method": lambda deps: desk.list_deals(deps, method_code="method_1", **OPEN_DEALS),
        "deals: queue of an account": lambda deps: desk.list_deals(
            deps, account="4000 0000 0000 1007", **OPEN_DEALS
        ),
        "deals: queue of an amount": lambda deps: desk.list_deals(
            deps, amount_from="100", amount_to="101", **OPEN_DEALS
        ),
        "deals: queue of a sender": lambda deps: desk.list_deals(deps, sender_name="name 77", **OPEN_DEALS),
        "deals: queue of a reference": lambda deps: desk.list_deals(deps, reference="0000077J", **OPEN_DEALS),
        "deals: queue of a customer": lambda deps: desk.list_deals(
            deps, customer_id="customer-77", **OPEN_DEALS
        ),
        "deals: queue of an order": lambda deps: desk.list_deals(deps, external_id="order-77", **OPEN_DEALS),
        "deals: appeals": lambda deps: desk.list_deals(
            deps, status=DealStatus.APPEAL, limit=50, oldest_first=True
        ),
        "deals: all": lambda deps: desk.list_deals(deps, limit=50),
        "deals: days": lambda deps: desk.list_deals(deps, limit=50, **DAYS),
        "deals: of a reference": lambda deps: desk.list_deals(deps, limit=50, reference="0000077J"),
        "deals: of a sender": lambda deps: desk.list_deals(deps, limit=50, sender_name="name 777"),
        "deals: of an account": deals_of(account="4000 0000 0000 1007"),
        "deals: of a customer": deals_of(customer_id="customer-777"),
        "deals: of an order": deals_of(external_id="order-777"),
        "deals: of a merchant": deals_of(merchant_id=M),
        "deals: of a merchant's customer": deals_of(merchant_id=M, customer_id="customer-777"),
        "deals: of a method": deals_of(method_code="method_1"),
        "deals: of a currency, oldest first": deals_of(currency_code="GBP", oldest_first=True),
        "deals: between two amounts": deals_of(amount_from="777", amount_to="778"),
        "deals: of an amount": deals_of(amount_from="777.75", amount_to="777.75", merchant_id=M),
        "deals: of a rare state": deals_of(status=DealStatus.FAILED, merchant_id=M),
        "deals: of a rare sub-state": deals_of(sub_status="canceled_by_operator"),
        "deals: days of an account": deals_of(account="4000 0000 0000 1007", **DAYS),
        "deals: of a usual name": lambda deps: desk.list_deals(deps, limit=50, sender_name="name"),
        "deals: queue of a usual name": lambda deps: desk.list_deals(deps, sender_name="n 1", **OPEN_DEALS),
        "deals: one": lambda deps: desk.get_deal(deps, deal_id=id_of("d", 777)),
        "cases: open": lambda deps: cases.list_cases(deps, open_only=True, limit=50, oldest_first=True),
        "cases: all": lambda deps: cases.list_cases(deps, open_only=False, limit=50),
        "cases: days": lambda deps: cases.list_cases(
            deps,
            open_only=False,
            limit=50,
            opened_from=DAYS["created_from"],
            opened_before=DAYS["created_before"],
        ),
        "invoices: all": invoices_of(),
        "invoices: next page": invoices_of(after_invoice_id=id_of("i", 777)),
        "invoices: days": invoices_of(**DAYS),
        "invoices: of a merchant": invoices_of(merchant_id=M),
        "invoices: pending of a merchant": invoices_of(merchant_id=M, status=InvoiceStatus.PENDING),
        "invoices: successes": invoices_of(status=InvoiceStatus.SUCCESS),
        "invoices: of an amount": invoices_of(amount="777.50"),
        "invoices: a merchant's own": own_invoices(),
        "invoices: a merchant's own, deepest page": own_invoices(page=2, ascending=True),
        "invoices: a merchant's own of a status": own_invoices(status=InvoiceStatus.CANCELED),
        "invoices: a merchant's own of a currency": own_invoices(currency_code="EUR"),
        "invoices: a merchant's own that wait": own_invoices(status=InvoiceStatus.PENDING),
        "invoices: a merchant's own of a customer": own_invoices(customer_id="customer-507"),
        "invoices: a merchant's own of a month": own_invoices(**MONTH),
        "invoices: a merchant's own after one": own_invoices(after_invoice_id=id_of("i", 7)),
        "requisites: all": lambda deps: requisites.list_requisites(deps, method_code=""),
        "invoices: of an order": invoices_of(external_id="order-777"),
        "invoices: of a customer": invoices_of(customer_id="customer-777"),
        "invoices: of a merchant's customer": invoices_of(customer_id="customer-777", merchant_id=M),
        "invoices: between two amounts": invoices_of(amount_from="777", amount_to="778"),
        "invoices: of a rare state": invoices_of(status=InvoiceStatus.FAIL),
        "invoices: of a method": invoices_of(method_code="method_3"),
        "invoices: of a currency": invoices_of(currency_code="GBP"),
        "invoices: days of a merchant": invoices_of(merchant_id=M, **DAYS),
        "invoices: one": lambda deps: reading.get_invoice_story(deps, invoice_id=id_of("i", 777)),
        "requisites: deals of one": requisite_deals_of(),
        "requisites: ended deals of one": requisite_deals_of(status=DealStatus.FAILED),
        "requisites: use of 30 days": lambda deps: requisites.get_requisite(
            deps, requisite_id=id_of("r", 7), days=30
        ),
        "requests: waiting": lambda deps: requests_of(deps, states=[State.PENDING], oldest_first=True),
        "requests: waiting of a merchant": lambda deps: requests_of(
            deps, states=[State.PENDING], merchant_id=UUID(M)
        ),
        "requests: decided": lambda deps: requests_of(deps, states=[State.APPROVED, State.REJECTED]),
        "requests: of a deal": lambda deps: requests_of(deps, object=f"deal:{id_of('d', 77)}"),
        "acts: all": lambda deps: list_acts(deps.db, Filter(), after=None, limit=50),
    },
    "withdrawals": {
        "withdrawals: all": withdrawals_of(),
        "withdrawals: next page": withdrawals_of(after_withdraw_uuid=id_of("w", 777)),
        "withdrawals: requested": withdrawals_of(Wanted(stage=Stage.REQUESTED), oldest_first=True),
        "withdrawals: requested, by amount": withdrawals_of(Wanted(stage=Stage.REQUESTED), by_amount=True),
        "withdrawals: done": withdrawals_of(Wanted(stage=Stage.DONE)),
        "withdrawals: waiting": withdrawals_of(Wanted(status=WithdrawalStatus.PENDING)),
        "withdrawals: of a merchant": withdrawals_of(Wanted(merchant_id=M)),
        "withdrawals: to an address": withdrawals_of(Wanted(address="TJRabPrwbZy45sbavfcjinPJC18kjpRTv8")),
        "withdrawals: of a transaction": withdrawals_of(Wanted(external_tx_id="ab" * 32)),
        "withdrawals: of an amount": withdrawals_of(Wanted(amount_from="777", amount_to="778")),
        "withdrawals: days": withdrawals_of(Wanted(**DAYS)),
        "ledger: a merchant's month": lambda deps: statements.list_transfers(
            deps, **TRANSFERS | MONTH | {"merchant_id": M}
        ),
        "ledger: of an invoice": lambda deps: statements.list_transfers(
            deps, **TRANSFERS | {"invoice_id": id_of("i", 777)}
        ),
        "ledger: sums of a month": lambda deps: statements.get_statement(deps, merchant_id=M, **MONTH),
        "ledger: days that are over": lambda deps: days.close_days(deps, days.Pass()),
        "ledger: balance": lambda deps: ledger.get_balance(deps, merchant_id=M),
    },
    "webhooks": {
        "webhooks: all": events_of(),
        "webhooks: dead": events_of(status=EventStatus.DEAD),
        "webhooks: dead of a merchant": events_of(status=EventStatus.DEAD, merchant_id=UUID(M)),
        "webhooks: pending": events_of(status=EventStatus.PENDING),
        "webhooks: pending of a merchant": events_of(
            status=EventStatus.PENDING, merchant_id=UUID(M), attempted=True
        ),
        "webhooks: delivered of a merchant": events_of(status=EventStatus.SUCCESS, merchant_id=UUID(M)),
        "webhooks: of a merchant": events_of(merchant_id=UUID(M)),
        "webhooks: of a type of a merchant": events_of(merchant_id=UUID(M), event_type="invoice.expired"),
        "webhooks: of the invoice": events_of(invoice_id=UUID(id_of("i", 507))),
        "webhooks: days": events_of(**DAYS),
        "webhooks: stuck": lambda deps: webhooks_desk.list_stuck_events(deps, overdue_seconds=60, limit=50),
        "webhooks: of an invoice": lambda deps: webhooks_reading.list_invoice_events(
            deps, merchant_id=M, invoice_id=id_of("i", 507)
        ),
    },
    "identity": {
        "merchants: all": merchants.list_merchants,
        "merchants: next page": lambda deps: merchants.list_merchants(deps, older_than_merchant_id=M),
        "merchants: banned": lambda deps: merchants.list_merchants(
            deps, filters=MerchantFilter(status=MerchantStatus.BANNED)
        ),
        "merchants: by name": lambda deps: merchants.list_merchants(
            deps, filters=MerchantFilter(name="shop 777")
        ),
        "merchants: of a category": lambda deps: merchants.list_merchants(
            deps, filters=MerchantFilter(category_code="category-7")
        ),
        "merchants: of an owner": lambda deps: merchants.list_merchants(
            deps, filters=MerchantFilter(owner_email="owner-7@example.com")
        ),
        "owners: one": lambda deps: owners.get_owner(deps, owner="owner-7@example.com"),
        "names of merchants": lambda deps: merchants.name_merchants(
            deps, merchant_ids=[id_of("m", n) for n in range(100)]
        ),
    },
}


def searches(service: str) -> dict[str, List]:
    """Each search of the service for each kind of text, of operators and of one merchant."""
    of_service = {
        "invoices": invoices_finding.SEARCHES,
        "withdrawals": withdrawals_finding.SEARCHES,
        "webhooks": webhooks_finding.SEARCHES,
        "identity": merchants_finding.SEARCHES,
    }

    def run(search: Any, words: str) -> List:
        def within(deps: Any) -> object:
            with deps.db.autocommit() as connection:
                return search(connection, words, 11)

        return within

    own: Mapping[str, Sequence[OwnSearch]] = {
        "invoices": invoices_finding.OWN_SEARCHES,
        "withdrawals": withdrawals_finding.OWN_SEARCHES,
        "webhooks": webhooks_finding.OWN_SEARCHES,
    }
    every: dict[str, Any] = {each.__name__: each for each in of_service[service]}
    for search in own.get(service, ()):
        every[f"own {search.__name__}"] = partial(_of_one, search)
    return {f"{name} {words}": run(each, words) for name, each in every.items() for words in WORDS}


def _of_one(search: OwnSearch, connection: Connection, words: str, limit: int) -> object:
    return search(connection, UUID(M), words, limit)


def queues(service: str) -> dict[str, List]:
    """The count of each queue that waits for an operator."""
    of_service = {
        "invoices": invoices_queues.QUEUES,
        "withdrawals": withdrawals_queues.QUEUES,
        "webhooks": webhooks_queues.QUEUES,
        "identity": (),
    }

    def count(queue: Any) -> List:
        def within(deps: Any) -> object:
            with deps.db.autocommit() as connection:
                return waiting(connection, [queue], now=NOW)

        return within

    return {f"queue {each.name}": count(each) for each in of_service[service]}


@pytest.fixture(scope="module")
def wired(database_url: Callable[[str], str]) -> Iterator[Callable[[str], Any]]:
    """`wired("invoices")` -> the service with its million rows; nothing else runs."""
    made: dict[str, Any] = {}
    common: dict[str, Any] = {"bind": "127.0.0.1:0"}
    away: dict[str, Any] = {"nats_url": "nats://127.0.0.1:1"}

    def deps(service: str) -> Any:
        if service not in made:
            url = database_url(service)
            fill(url, service)
            made[service] = WIRES[service](url, common, away)
        return made[service]

    yield deps
    for each in made.values():
        each.db.dispose()


def _invoices(url: str, common: dict[str, Any], away: dict[str, Any]) -> Any:
    nowhere: dict[str, Any] = {"identity_address": "127.0.0.1:1", "catalog_address": "127.0.0.1:1"}
    return wire_invoices(
        InvoicesSettings(database_url=url, fact_signing_key=SIGNING_KEY, **nowhere, **common, **away)
    )


WIRES: Final[Mapping[str, Callable[[str, dict[str, Any], dict[str, Any]], Any]]] = {
    "invoices": _invoices,
    "withdrawals": lambda url, common, away: wire_withdrawals(
        WithdrawalsSettings(database_url=url, fact_public_keys=(SIGNING_KEY,), **common, **away)
    ),
    "webhooks": lambda url, common, away: wire_webhooks(
        WebhooksSettings(
            database_url=url,
            fact_public_keys=(SIGNING_KEY,),
            seal_keys=(SIGNING_KEY,),
            identity_address="127.0.0.1:1",
            **common,
            **away,
        )
    ),
    "identity": lambda url, common, away: wire_merchants(
        IdentitySettings(
            database_url=url,
            master_keys=(TEST_MASTER_KEY,),
            desk_url="http://localhost:8081",
            dashboard_url="http://localhost:8082",
            **common,
        )
    ),
}


@pytest.mark.parametrize("service", list(LISTS))
def test_lists_and_searches_read_indexes(wired: Callable[[str], Any], service: str) -> None:
    deps, large = wired(service), FILLS[service][1]
    plans = {name: plans_of(deps, run) for name, run in (LISTS[service] | queues(service)).items()}
    assert all(plans.values()), "a list whose statement is not seen here is not proved"
    # A search makes no statement for a text that its thing can't have.
    plans |= {name: plans_of(deps, run) for name, run in searches(service).items()}
    wrong = [f"{name}: {fault}" for name, each in plans.items() for fault in faults_of(each, large)]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("merchant", ["", M])
def test_a_report_begins_where_the_sums_end(wired: Callable[[str], Any], merchant: str) -> None:
    deps = wired("invoices")
    with deps.db.transaction() as tx:
        tx.execute(text("UPDATE daily_place SET invoice_at = :at"), {"at": NOW - timedelta(minutes=10)})

    def report(deps: Any) -> object:
        return reports.get_report(
            deps, first_day="2026-01-09", last_day="2026-01-15", by=By.MERCHANT, merchant_id=merchant
        )

    *_, plan = plans_of(deps, report).values()
    read = {(each["Relation Name"], each.get("Index Name"), each.get("Index Cond")) for each in nodes(plan)}
    by_key = {(table, index) for table, index, condition in read if condition}
    assert {("deal_transitions", "pk_deal_transitions"), ("invoices", "ix_invoices_all")} <= by_key, read


@pytest.mark.parametrize("words", ["name", "n 1"])
def test_a_search_for_words_that_many_names_have_reads_few_deals(
    wired: Callable[[str], Any], words: str
) -> None:
    deps = wired("invoices")

    def search(deps: Any) -> None:
        with deps.db.autocommit() as connection:
            assert len(invoices_finding._deals_by_sender(connection, words, 11)) == 11

    with statements_of(deps) as made:
        search(deps)
    with deps.db.autocommit() as connection:
        for statement, values in made:
            explain = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}"
            (plan,) = connection.exec_driver_sql(explain, values).scalar_one()
            for each in nodes(plan["Plan"]):
                assert each["Actual Rows"] * each["Actual Loops"] <= deal_lists.NEWEST_READ, statement


def test_a_list_without_an_index_is_noticed(wired: Callable[[str], Any]) -> None:
    deps, large = wired("invoices"), FILLS["invoices"][1]

    def made(statement: str) -> List:
        def run(deps: Any) -> object:
            with deps.db.autocommit() as connection:
                return connection.exec_driver_sql(statement).all()

        return run

    for statement, fault in (
        ("SELECT id FROM invoices WHERE purpose = 'x' LIMIT 1", "reads all of invoices"),
        ("SELECT id FROM deals ORDER BY merchant_usdt LIMIT 1", "Sort of "),
        ("SELECT count(*) FROM deals WHERE created_at > '2025-06-01'", "Aggregate of "),
    ):
        found = faults_of(plans_of(deps, made(statement)), large)
        assert any(each.startswith(fault) for each in found), f"{statement}: {found}"
