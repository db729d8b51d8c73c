"""The proof of the invoices' own books (kit.db.books): what follows from the terms, and rows without their acts."""

from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal

import psycopg2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kit.base.ids import new_id
from kit.db import books
from kit.db.database import Database
from kit.rpc.values import LIST_MOST_ROWS
from services.invoices.domain import money
from services.invoices.operations import cases, checkout, desk, switch
from services.invoices.store.books import PARTS
from tests.invoices.conftest import World
from tests.support.clock import START
from tests.support.databases import past_all_rules

NAMES = [part.name for part in PARTS]


def part(name: str) -> books.Part:
    return next(each for each in PARTS if each.name == name)


def checked(db: Database, name: str, *, limit: int = LIST_MOST_ROWS) -> list[books.Page]:
    """All pages of a part."""
    pages = [books.check_page(db, part(name), after="", limit=limit)]
    while pages[-1].more:
        pages.append(books.check_page(db, part(name), after=pages[-1].last, limit=limit))
    return pages


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_pages_of_any_length_check_every_row_once(world: World, limit: int) -> None:
    for _ in range(3):
        world.with_deal()
    pages = checked(world.deps.db, "deals", limit=limit)
    assert sum(page.checked for page in pages) == 3
    assert [page.problems for page in pages if page.problems] == []


def test_a_row_that_is_gone_is_named_on_whichever_page_it_was(world: World) -> None:
    deals = [world.with_deal() for _ in range(3)]
    for deal in deals:
        desk.confirm_deal(world.deps, deal_id=str(deal.id))
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        cursor.execute("DELETE FROM deals WHERE invoice_id = %s", (str(deals[1].invoice_id),))
    found = [each for page in checked(world.deps.db, "deals", limit=1) for each in page.problems]
    assert [(each.subject, each.field, each.found) for each in found] == [
        (f"deal {deals[1].id}", "row", "deleted")
    ]


def test_an_appeal_that_no_act_ended_is_named(world: World) -> None:
    deal = world.with_deal()
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="less came")
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        cursor.execute("UPDATE deals SET status = 'pending', sub_status = 'awaiting_payment'")
        cursor.execute(  # an act that no process of the service wrote excuses nothing
            "INSERT INTO acts SELECT gen_random_uuid(), at, actor_kind, actor_name, person_id, session_id, surface,"
            " on_behalf_of, 'invoice.accept', 'invoice:' || %s, merchant_id, '[]', note, request_id, refused, seal"
            " FROM acts LIMIT 1",
            (str(deal.invoice_id),),
        )
    (page,) = checked(world.deps.db, "deals")
    assert (f"deal {deal.id}", "status", "pending") in {
        (each.subject, each.field, each.found) for each in page.problems
    }


def test_a_switch_that_was_deleted_is_named(world: World) -> None:
    switch.set_deals_system(world.deps, enabled=False)
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        cursor.execute("DELETE FROM switches")
    (page,) = checked(world.deps.db, "switches")
    assert [(each.subject, each.field, each.found) for each in page.problems] == [
        ("switch deals", "row", "deleted")
    ]


def test_a_credit_that_was_changed_is_named_by_its_terms_and_by_its_act(world: World) -> None:
    deal = world.with_deal()
    credited = desk.confirm_deal(world.deps, deal_id=str(deal.id)).merchant_usdt
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        cursor.execute("UPDATE deals SET merchant_usdt = 22.7")
    (page,) = checked(world.deps.db, "deals")
    due = f"{credited:f}".rstrip("0").rstrip(".")
    assert [(each.field, each.found, each.due) for each in page.problems] == [
        ("merchant_usdt", "22.7", due),
        ("merchant_usdt", "22.7", f"{due}, by the last act about it"),
    ]


def test_a_case_that_no_operator_answered_and_a_deleted_one_are_named(world: World) -> None:
    numbers = []
    for _ in range(4):
        deal = world.with_deal()
        desk.reject_deal(world.deps, deal_id=str(deal.id), note="")
        opened = cases.open_case(world.deps, invoice_id=str(deal.invoice_id), note="", picture=None)
        numbers.append(opened.number)
    answered, rewritten, deleted, forged = numbers
    for number in (answered, rewritten, deleted):
        cases.resolve_case(world.deps, number=number, outcome="Sent back", ended_as="return")
    assert [page.problems for page in checked(world.deps.db, "cases", limit=1) if page.problems] == []
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        cursor.execute("UPDATE cases SET actor = 'eve' WHERE number = %s", (rewritten,))
        cursor.execute("DELETE FROM cases WHERE number = %s", (deleted,))
        cursor.execute(
            "UPDATE cases SET resolved_at = now(), outcome = 'No', actor = 'eve', ended_as = 'credit'"
            " WHERE number = %s",
            (forged,),
        )
    found = [each for page in checked(world.deps.db, "cases", limit=1) for each in page.problems]
    assert {(each.subject, each.field, each.found) for each in found} == {
        (f"case {rewritten}", "actor", "eve"),
        (f"case {deleted}", "row", "deleted"),
        (f"case {forged}", "act", "none"),
    }


def test_an_operators_whole_work_leaves_no_problem(world: World) -> None:
    adjusted, rejected, replaced = (world.with_deal() for _ in range(3))
    desk.open_appeal(world.deps, deal_id=str(adjusted.id), note="less came")
    world.adjust(adjusted, "90.01")
    desk.reject_deal(world.deps, deal_id=str(rejected.id), note="")
    checkout.select_payment_method(world.deps, invoice_id=str(replaced.invoice_id), method_code="sepa_eur")
    for enabled in (False, True):
        switch.set_deals_system(world.deps, enabled=enabled)
    for name in NAMES:
        (page,) = checked(world.deps.db, name)
        assert list(page.problems) == [], name


# -- amounts, computed by the domain and by the proof


_AMOUNTS = st.decimals(min_value=Decimal("0.01"), max_value=Decimal(10) ** 15, places=2)
_PERCENTS = st.decimals(min_value=0, max_value=Decimal("99.99"), places=2)

_PLANT = """
WITH invoice AS (
  INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, created_at,
    expires_at, finished_at, deal_id, event_id)
  VALUES (%(invoice)s, %(invoice)s, %(invoice)s, 'x', %(amount)s, 'EUR', 'success', 'x', %(at)s, %(at)s, %(at)s,
    %(deal)s, %(deal)s)
), step AS (
  INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
  VALUES (%(deal)s, %(at)s, 'pending', 'awaiting_payment', '', ''),
         (%(deal)s, %(at)s, 'completed', 'successfully_paid', '', '')
)
INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,
  currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent, merchant_usdt,
  requisite_id, created_at, expires_at, finished_at, seal)
SELECT %(deal)s, %(invoice)s, %(invoice)s, 'completed', 'successfully_paid', method_code, 'x', 'EUR', %(decimals)s,
  %(amount)s, %(amount_fiat)s, %(rate)s, %(client)s, %(merchant)s, %(merchant_usdt)s, id, %(at)s, %(at)s, %(at)s,
  sha256('')
FROM requisites LIMIT 1
"""


@pytest.fixture
def plant(world: World) -> Iterator[Callable[..., None]]:
    """Puts a completed deal with these terms in place of all others."""
    url = world.deps.settings.database_url
    with (
        closing(psycopg2.connect(past_all_rules(url))) as emptying,
        closing(psycopg2.connect(url)) as planting,
    ):

        def planted(**terms: object) -> None:
            with emptying, emptying.cursor() as cursor:
                cursor.execute("DELETE FROM deal_transitions; DELETE FROM deals; DELETE FROM invoices")
            ids = {"invoice": str(new_id()), "deal": str(new_id()), "at": START}
            with planting, planting.cursor() as cursor:
                cursor.execute(_PLANT, terms | ids)

        yield planted


def wrong_amounts(db: Database) -> list[str]:
    """A planted deal has neither acts nor a right seal."""
    found = [each.field for page in checked(db, "deals") for each in page.problems]
    return [field for field in found if field in ("amount_fiat", "merchant_usdt")]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    amount=_AMOUNTS,
    rate=st.decimals(min_value=Decimal("0.01"), max_value=Decimal(10) ** 6, places=2),
    client=_PERCENTS,
    merchant=_PERCENTS,
    decimals=st.sampled_from([0, 2]),
)
@example(  # PostgreSQL's / keeps some 16 digits
    amount=Decimal("20202020202.03"),
    rate=Decimal("0.02"),
    client=Decimal(0),
    merchant=Decimal("0.01"),
    decimals=0,
)
def test_the_proof_computes_what_the_domain_does(
    world: World,
    plant: Callable[..., None],
    amount: Decimal,
    rate: Decimal,
    client: Decimal,
    merchant: Decimal,
    decimals: int,
) -> None:
    terms = {"amount": amount, "rate": rate, "client": client, "merchant": merchant, "decimals": decimals}
    sends = money.customer_amount(amount, client, decimals)
    gets = money.merchant_usdt(amount, rate, merchant)
    plant(**terms, amount_fiat=sends, merchant_usdt=gets)
    assert wrong_amounts(world.deps.db) == []

    plant(**terms, amount_fiat=sends + 1, merchant_usdt=gets + Decimal("0.000001"))
    assert sorted(wrong_amounts(world.deps.db)) == ["amount_fiat", "merchant_usdt"]
