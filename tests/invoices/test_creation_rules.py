"""The rules of create-invoice stand in Python (domain) and in SQL (store.create_if_allowed): here both decide the same
cases, which are made around each bound. The order of the refusals is that of docs/api.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.base.ids import new_id
from kit.db.database import Database
from services.invoices.clients import CurrencyTerms
from services.invoices.domain import creating, places, states
from services.invoices.domain.creating import CreationFacts, CreationRefusal, CustomerLimit, NewInvoice
from services.invoices.domain.places import Room, Wanted
from services.invoices.domain.states import (
    AWAITING_CONFIRMATION,
    AWAITING_PAYMENT,
    CONFIRMATION_OVERDUE,
    DealState,
    InvoiceStatus,
)
from services.invoices.models import Deal, Invoice, Requisite
from services.invoices.store.invoices import create_if_allowed
from tests.support.clock import START

NOW: Final = START
TICK: Final = timedelta(microseconds=1)
WINDOW: Final = timedelta(minutes=60)
TERMS: Final = CurrencyTerms("EUR", 2, Decimal("10.00"), Decimal("500.00"), ())
AMOUNT_FIAT: Final = Decimal("105.00")
"""The amount that the customer would send, on which accounts differ."""


@dataclass(frozen=True)
class Waiting:
    """The customer's pending invoice; its time is over `late` after or before now. `deal` is the state of its deal."""

    deal: DealState | None
    late: timedelta


@dataclass(frozen=True)
class Account:
    """A requisite with open deals. `holder` has the one with the wanted amount."""

    free: int
    enabled: bool
    own: int
    of_others: int
    holder: str | None

    @property
    def taken(self) -> int:
        return self.own + self.of_others + (self.holder is not None)


@dataclass(frozen=True)
class Case:
    terms: CurrencyTerms | None
    amount: Decimal
    missing_urls: list[str]
    wanted: bool
    system_enabled: bool
    duplicate: bool
    waiting: Waiting | None
    earlier: list[tuple[InvoiceStatus, timedelta]]
    limit: int
    accounts: list[Account]
    share_percent: int


STATES: Final = st.sampled_from([None, AWAITING_PAYMENT, AWAITING_CONFIRMATION, CONFIRMATION_OVERDUE])
AROUND: Final = st.sampled_from([-TICK, timedelta(), TICK])
ENDED: Final = st.sampled_from([status for status in InvoiceStatus if status != InvoiceStatus.PENDING])
ACCOUNTS: Final = st.builds(
    Account,
    free=st.integers(0, 2),
    enabled=st.sampled_from([True, True, True, False]),
    own=st.integers(0, 2),
    of_others=st.integers(0, 2),
    holder=st.sampled_from([None, None, "own", "another"]),
).filter(lambda account: account.free + account.taken > 0)
AMOUNTS: Final = [Decimal(text) for text in ("0.00", "9.99", "10.00", "500.00", "500.01")]
RIGHT: Final[dict[str, st.SearchStrategy[Any]]] = {
    "terms": st.just(TERMS),
    "amount": st.just(Decimal("100.00")),
    "missing_urls": st.just([]),
    "wanted": st.just(True),
    "system_enabled": st.just(True),
    "duplicate": st.just(False),
    "waiting": st.none(),
    "earlier": st.just([]),
    "accounts": st.just([Account(free=1, enabled=True, own=0, of_others=0, holder=None)]),
}
VARIED: Final[dict[str, st.SearchStrategy[Any]]] = {
    "terms": st.sampled_from([None, replace(TERMS, has_rate=False)]),
    "amount": st.sampled_from(AMOUNTS),
    "missing_urls": st.just(["fail_url"]),
    "wanted": st.just(False),
    "system_enabled": st.just(False),
    "duplicate": st.just(True),
    "waiting": st.builds(Waiting, STATES, AROUND),
    "earlier": st.lists(st.tuples(ENDED, AROUND), min_size=1, max_size=3),
    "accounts": st.lists(ACCOUNTS, max_size=3),
}
# Few things are wrong at a time: among many reasons the lack of one would not show.
CASES: Final = st.sets(st.sampled_from(sorted(VARIED)), max_size=2).flatmap(
    lambda names: st.builds(
        Case,
        limit=st.integers(1, 3),
        share_percent=st.sampled_from([1, 50, 80, 100]),
        **(RIGHT | {name: VARIED[name] for name in names}),
    )
)


@pytest.fixture(scope="module")
def db(database_url: Callable[[str], str]) -> Iterator[Database]:
    database = Database(database_url("invoices"), name="invoices", pool_size=2)
    yield database
    database.dispose()


# -- the case in Python


def refusals(case: Case, facts: CreationFacts) -> set[CreationRefusal]:
    of_request = creating.refusals_of_request(
        case.amount, case.terms, missing_urls=case.missing_urls, wanted=wanted(case, "method")
    )
    return of_request | creating.refusals_of_facts(facts, CustomerLimit(case.limit, WINDOW))


def wanted(case: Case, method_code: str) -> list[Wanted]:
    return [Wanted(method_code, AMOUNT_FIAT)] if case.wanted else []


def facts_of(case: Case, known: Known) -> CreationFacts:
    limit = CustomerLimit(case.limit, WINDOW)
    unpaid = [
        NOW - WINDOW + since
        for status, since in case.earlier
        if status != InvoiceStatus.SUCCESS and NOW - WINDOW + since > limit.window_start(NOW)
    ]
    if case.waiting is not None:
        unpaid.append(NOW - timedelta(minutes=1))
    newest = sorted(unpaid, reverse=True)[: case.limit]
    facts = CreationFacts(
        created=False,
        system_enabled=case.system_enabled,
        duplicate_id=known.duplicate_id,
        duplicate_status="pending" if case.duplicate else None,
        duplicate_amount=Decimal("100.00") if case.duplicate else None,
        duplicate_currency="EUR" if case.duplicate else None,
        waiting_id=known.waiting_id,
        waiting_overdue=case.waiting is not None and is_overdue(case.waiting),
        unpaid=len(newest),
        oldest_unpaid_at=min(newest, default=None),
        requisite_free=case.wanted and room(case).refusal(case.share_percent) == places.PLACE_IS_FREE,
    )
    return replace(facts, created=not refusals(case, facts))


def is_overdue(waiting: Waiting) -> bool:
    ends = NOW - waiting.late
    if waiting.deal is None:
        return states.invoice_overdue(has_deal=False, invoice_expires_at=ends, now=NOW)
    return states.deal_overdue(waiting.deal, ends, NOW)


def room(case: Case) -> Room:
    accounts = [account for account in case.accounts if account.enabled]
    return Room(
        method_code="method",
        taken=sum(account.taken for account in accounts),
        free=sum(account.free for account in accounts),
        own=sum(account.own + (account.holder == "own") for account in accounts),
        accounts=len(accounts),
        free_accounts=sum(account.holder is None and account.free > 0 for account in accounts),
        own_accounts=sum(account.holder == "own" for account in accounts),
    )


# -- the case in the database, for a merchant and a method of its own


@dataclass(frozen=True)
class Known:
    duplicate_id: UUID | None
    waiting_id: UUID | None


class Story:
    """Writes a case's rows. A second customer and a second merchant have the rows that must not count."""

    def __init__(self, tx: Session, merchant_id: UUID, method_code: str) -> None:
        self._tx = tx
        self._merchant_id = merchant_id
        self._method_code = method_code
        self._amount = Decimal(1)

    def write(self, case: Case) -> Known:
        self._tx.execute(
            text(
                "INSERT INTO switches (name, enabled, changed_at, actor) VALUES ('deals', :enabled, now(), 'test') "
                "ON CONFLICT (name) DO UPDATE SET enabled = :enabled"
            ),
            {"enabled": case.system_enabled},
        )
        spare = self._requisite(free=50, taken=1, enabled=True, method_code="another")
        for account in case.accounts:
            self._account(account)
        for status, since in case.earlier:
            self._invoice(customer_id="customer", created_at=NOW - WINDOW + since, status=status)
        duplicate = self._invoice(external_id="order") if case.duplicate else None
        waiting = self._waiting(case.waiting, spare) if case.waiting else None
        return Known(duplicate.id if duplicate else None, waiting.id if waiting else None)

    def _waiting(self, waiting: Waiting, requisite: Requisite) -> Invoice:
        if waiting.deal is None:
            return self._invoice(customer_id="customer", expires_at=NOW - waiting.late)
        # With a deal the deal's time counts; the invoice's own is always over here.
        invoice = self._invoice(customer_id="customer", expires_at=NOW)
        self._deal(invoice, requisite, waiting.deal, expires_at=NOW - waiting.late)
        return invoice

    def _account(self, account: Account) -> None:
        requisite = self._requisite(free=account.free, taken=account.taken, enabled=account.enabled)
        for number in range(account.own + account.of_others):
            self._amount += 1
            owner = self._merchant_id if number < account.own else new_id()
            self._deal(self._invoice(merchant_id=owner), requisite, AWAITING_PAYMENT, amount=self._amount)
        if account.holder is not None:
            owner = self._merchant_id if account.holder == "own" else new_id()
            self._deal(self._invoice(merchant_id=owner), requisite, AWAITING_PAYMENT, amount=AMOUNT_FIAT)

    def _requisite(self, *, free: int, taken: int, enabled: bool, method_code: str = "") -> Requisite:
        requisite = Requisite(
            id=new_id(),
            method_code=method_code or self._method_code,
            holder="A. Holder",
            account="1",
            max_deals=free + taken,
            open_deals=taken,
            enabled=enabled,
            created_at=NOW,
        )
        self._tx.add(requisite)
        return requisite

    def _invoice(
        self,
        *,
        merchant_id: UUID | None = None,
        customer_id: str = "",
        external_id: str = "",
        status: InvoiceStatus = InvoiceStatus.PENDING,
        created_at: datetime = NOW - timedelta(minutes=1),
        expires_at: datetime = NOW + timedelta(minutes=1),
    ) -> Invoice:
        ended = status != InvoiceStatus.PENDING
        invoice = Invoice(
            id=new_id(),
            merchant_id=merchant_id or self._merchant_id,
            key_id=new_id(),
            external_id=external_id or str(new_id()),
            amount=Decimal("100.00"),
            currency_code="EUR",
            status=status,
            customer_id=customer_id or str(new_id()),
            created_at=created_at,
            expires_at=expires_at,
            finished_at=NOW if ended else None,
            event_id=new_id() if ended else None,
        )
        self._tx.add(invoice)
        self._tx.flush()
        return invoice

    def _deal(
        self,
        invoice: Invoice,
        requisite: Requisite,
        state: DealState,
        *,
        amount: Decimal = AMOUNT_FIAT,
        expires_at: datetime = NOW + timedelta(minutes=1),
    ) -> None:
        marked = state != AWAITING_PAYMENT
        deal = Deal(
            id=new_id(),
            invoice_id=invoice.id,
            merchant_id=invoice.merchant_id,
            status=state.status,
            sub_status=state.sub_status,
            method_code=requisite.method_code,
            method_name="Card",
            currency_code="EUR",
            currency_decimals=2,
            invoice_amount=invoice.amount,
            amount_fiat=amount,
            conversion_rate=Decimal("0.92"),
            client_percent=Decimal("2.50"),
            merchant_percent=Decimal("2.50"),
            seal=bytes(32),
            requisite_id=requisite.id,
            created_at=NOW - timedelta(minutes=1),
            expires_at=expires_at,
            mark_paid_at=NOW if marked else None,
            confirm_before=NOW if marked else None,
        )
        self._tx.add(deal)
        invoice.deal_id = deal.id
        self._tx.flush()


def decided(db: Database, case: Case, merchant_id: UUID, method_code: str) -> CreationFacts:
    """The facts of the statement that decides and inserts."""
    url = "https://shop.example"
    new = NewInvoice(
        id=new_id(),
        merchant_id=merchant_id,
        key_id=new_id(),
        external_id="order",
        amount=case.amount,
        currency_code="EUR",
        customer_id="customer",
        purpose=None,
        callback_url=url,
        success_url=url,
        fail_url=url,
        created_at=NOW,
        expires_at=NOW + WINDOW,
    )
    places = wanted(case, method_code)
    of_request = creating.refusals_of_request(
        case.amount, case.terms, missing_urls=case.missing_urls, wanted=places
    )
    return create_if_allowed(
        db,
        new,
        seal=bytes(32),
        acceptable=not of_request,
        wanted=places,
        share_percent=case.share_percent,
        window_start=CustomerLimit(case.limit, WINDOW).window_start(NOW),
        customer_limit=case.limit,
    )


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=CASES)
def test_python_and_sql_decide_alike(db: Database, case: Case) -> None:
    merchant_id, method_code = new_id(), str(new_id())
    with db.transaction() as tx:
        known = Story(tx, merchant_id, method_code).write(case)
    expected = facts_of(case, known)
    found = decided(db, case, merchant_id, method_code)
    assert found == expected
    assert found.created is (creating.first_refusal(refusals(case, found)) is None)


NO_FACTS: Final = CreationFacts(
    created=False,
    system_enabled=True,
    duplicate_id=None,
    duplicate_status=None,
    duplicate_amount=None,
    duplicate_currency=None,
    waiting_id=None,
    waiting_overdue=False,
    unpaid=0,
    oldest_unpaid_at=None,
    requisite_free=True,
)


def test_each_reason_has_one_rule() -> None:
    limit = CustomerLimit(1, WINDOW)
    all_wrong = CreationFacts(
        created=False,
        system_enabled=False,
        duplicate_id=new_id(),
        duplicate_status="pending",
        duplicate_amount=Decimal("100.00"),
        duplicate_currency="EUR",
        waiting_id=new_id(),
        waiting_overdue=False,
        unpaid=1,
        oldest_unpaid_at=NOW,
        requisite_free=False,
    )
    found = set(creating.refusals_of_facts(all_wrong, limit))
    for amount, terms in (("9.99", TERMS), ("500.01", TERMS), ("100.00", None)):
        found |= creating.refusals_of_request(Decimal(amount), terms, missing_urls=["fail_url"], wanted=[])
    assert found == set(CreationRefusal)
    unpriced = replace(TERMS, has_rate=False)
    assert creating.refusals_of_request(
        Decimal("100.00"), unpriced, missing_urls=[], wanted=[Wanted("method", None)]
    ) == {CreationRefusal.DEALS_SYSTEM_DISABLED}
    fits = creating.refusals_of_request(
        Decimal("100.00"), TERMS, missing_urls=[], wanted=[Wanted("method", None)]
    )
    assert fits | creating.refusals_of_facts(NO_FACTS, limit) == set()


def test_the_first_reason_is_the_first_in_the_contract() -> None:
    contract = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()
    _, _, order = contract.partition("**Order of checks** after [those of every request]")
    steps = re.findall(r"\[`([A-Z_]+)`\]", order.partition("<a id")[0])
    assert [str(refusal) for refusal in CreationRefusal] == steps
    for number, reason in enumerate(CreationRefusal):
        assert creating.first_refusal(list(CreationRefusal)[number:]) is reason
    assert creating.first_refusal([]) is None
