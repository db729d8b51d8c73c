"""Payment references: every deal has one, deals that carry one may share an account, and operators find them by it."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import exc, text

from fiatgate.catalog.v1 import catalog_pb2
from kit.base.codes import new_code, parse_code
from kit.base.ids import new_id
from kit.db.database import TransactionConflict
from kit.rpc.errors import Refused
from services.invoices.domain.names import is_name, words_of_name
from services.invoices.domain.places import REFERENCE_RESTS, NewDeal
from services.invoices.domain.rates import RateBasis, rate_basis_to_json
from services.invoices.operations import checkout, desk, reading, requisites
from services.invoices.store import opening
from services.invoices.store.deal_lists import ids_of_sender
from services.invoices.store.finding import SEARCHES
from services.invoices.store.views import DealView
from tests.invoices.conftest import PAYMENT_MINUTES, World, with_settings
from tests.support.acting import refusal
from tests.support.clock import START
from tests.support.databases import owner_url

PRICE = "49.90"


@pytest.fixture
def sharing(world: World) -> Iterator[World]:
    """The world with transfers of card_eur that carry references, on two accounts; one merchant may hold all places."""
    _takes_reference(world, True)
    (first, *_) = requisites.list_requisites(world.deps, method_code="card_eur")
    requisites.disable_requisite(world.deps, requisite_id=str(first.id))
    yield with_settings(world, method_share_percent=100)
    _takes_reference(world, False)


def _takes_reference(world: World, takes: bool) -> None:
    methods = world.catalog.GetCatalog(catalog_pb2.GetCatalogRequest()).methods
    method = next(each for each in methods if each.method_code == "card_eur")
    method.takes_reference = takes
    world.catalog.SetPaymentMethod(catalog_pb2.SetPaymentMethodRequest(method=method))
    world.deps.catalog._load()


def chosen(world: World, method: str = "card_eur", **changes: Any) -> DealView:
    """A new customer's deal. Raises Refused."""
    new = world.create(**changes)
    view, _ = checkout.select_payment_method(world.deps, invoice_id=str(new.id), method_code=method)
    assert view.deal is not None
    return view.deal


def listed(world: World, **wanted: Any) -> list[DealView]:
    return [each.deal for each in desk.list_deals(world.deps, limit=0, **wanted).deals]


# -- sharing accounts


def test_four_customers_at_one_price_on_two_accounts_are_all_served(sharing: World) -> None:
    ids = [str(sharing.create(amount=PRICE).id) for _ in range(4)]

    def choose(invoice_id: str) -> DealView | None:
        view, _ = checkout.select_payment_method(sharing.deps, invoice_id=invoice_id, method_code="card_eur")
        return view.deal

    with ThreadPoolExecutor(4) as threads:
        deals = [deal for deal in threads.map(choose, ids) if deal is not None]
    assert Counter(Counter(deal.requisite_id for deal in deals).values()) == {2: 2}, "spread evenly"
    rows = desk.list_deals(sharing.deps, limit=0).deals
    assert {row.deal.amount_fiat for row in rows} == {Decimal("51.15")}
    assert len({(row.account, row.deal.amount_fiat) for row in rows}) == 2
    assert len({(row.account, row.deal.amount_fiat, row.deal.reference) for row in rows}) == 4
    assert all(row.deal.takes_reference and parse_code(row.deal.reference) for row in rows)


def test_fifty_customers_at_one_price_at_once_get_all_places_and_no_more(sharing: World) -> None:
    ids = [str(sharing.create(amount=PRICE).id) for _ in range(50)]

    def choose(invoice_id: str) -> str:
        try:
            checkout.select_payment_method(sharing.deps, invoice_id=invoice_id, method_code="card_eur")
        except Refused as refused:
            return refused.reason
        return "taken"

    with ThreadPoolExecutor(30) as threads:
        outcomes = Counter(threads.map(choose, ids))
    assert outcomes == {"taken": 20, "NO_AVAILABLE_REQUISITES": 30}
    deals = listed(sharing)
    assert len({deal.reference for deal in deals}) == len(deals) == 20


def test_without_references_an_account_takes_an_amount_once(world: World) -> None:
    world = with_settings(world, method_share_percent=100)
    deals = [chosen(world, amount=PRICE) for _ in range(3)]
    assert len({deal.requisite_id for deal in deals}) == 3
    assert not any(deal.takes_reference for deal in deals)
    assert refusal(chosen, world, amount=PRICE).reason == "NO_AVAILABLE_REQUISITES"


def test_deals_with_and_without_references_never_share(sharing: World) -> None:
    first = chosen(sharing, amount=PRICE)
    _takes_reference(sharing, False)
    alone = chosen(sharing, amount=PRICE)
    assert alone.requisite_id != first.requisite_id, "the other account has no deal of the amount"
    assert refusal(chosen, sharing, amount=PRICE).reason == "NO_AVAILABLE_REQUISITES"
    _takes_reference(sharing, True)
    assert {chosen(sharing, amount=PRICE).requisite_id for _ in range(3)} == {first.requisite_id}


def test_the_share_of_a_merchant_counts_deals_that_share_too(sharing: World) -> None:
    world = with_settings(sharing, method_share_percent=80)
    taken = 0
    with pytest.raises(Refused):
        for _ in range(30):
            chosen(world, amount=PRICE)
            taken += 1
    assert taken == 16


# -- references


def test_every_deal_has_a_reference_which_stays(world: World) -> None:
    deal = chosen(world)
    assert parse_code(deal.reference) == deal.reference
    checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id="")
    assert desk.confirm_deal(world.deps, deal_id=str(deal.id)).reference == deal.reference
    invoice = reading.get_invoice(
        world.deps, merchant_id=world.merchant.merchant_id, invoice_ref=str(deal.invoice_id)
    )
    assert invoice.deal is not None
    assert invoice.deal.reference == deal.reference


@pytest.mark.parametrize("column", ["reference", "takes_reference"])
def test_the_database_refuses_another_reference(world: World, column: str) -> None:
    deal = chosen(world)
    with (
        pytest.raises(exc.ProgrammingError, match="permission denied"),
        world.deps.db.autocommit() as connection,
    ):
        connection.execute(text(f"UPDATE deals SET {column} = {column} WHERE id = '{deal.id}'"))
    with closing(psycopg2.connect(owner_url(world.deps.settings.database_url))) as owner:
        value = f"'{new_code()}'" if column == "reference" else "NOT takes_reference"
        with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="keep their value"):
            owner.cursor().execute(f"UPDATE deals SET {column} = {value} WHERE id = '{deal.id}'")


RATE_BASIS = rate_basis_to_json(
    RateBasis(origin="operator", source_rate="0.92", markup="0", taken_at=START, sources=[])
)


def open_with(world: World, references: list[str], method: str = "card_eur") -> DealView | None:
    """Opens a deal with these candidates; None when none is fresh."""
    invoice = world.create()
    now = world.deps.clock.now()
    new = NewDeal(
        id=new_id(),
        invoice_id=invoice.id,
        merchant_id=invoice.merchant_id,
        method_code=method,
        method_name=method,
        currency_code="EUR",
        currency_decimals=2,
        invoice_amount=invoice.amount,
        amount_fiat=invoice.amount,
        conversion_rate=Decimal("0.92"),
        client_percent=Decimal(0),
        merchant_percent=Decimal(5),
        created_at=now,
        expires_at=now + timedelta(minutes=PAYMENT_MINUTES),
        takes_reference=False,
        references=references,
        rate_basis=RATE_BASIS,
    )
    with world.deps.db.transaction() as tx:
        opening.queue_for_requisites(tx, [method])
        opened = opening.open_deal(tx, new, actor="customer", share_percent=80)
    return desk.get_deal(world.deps, deal_id=str(new.id)).deal if opened else None


def test_a_reference_in_use_goes_to_no_other_deal_and_no_place_is_lost(world: World) -> None:
    one, other = new_code(), new_code()
    first, second = open_with(world, [one, other]), open_with(world, [one, other])
    assert first is not None
    assert second is not None
    assert (first.reference, second.reference) == (one, other)
    assert open_with(world, [one, other]) is None
    assert sum(row.open_deals for row in requisites.list_requisites(world.deps, method_code="")) == 2


def test_the_reference_of_a_deal_that_ended_rests_for_half_a_year(world: World) -> None:
    one, other = new_code(), new_code()
    first = open_with(world, [one])
    assert first is not None
    desk.reject_deal(world.deps, deal_id=str(first.id), note="")
    world.clock.advance(days=REFERENCE_RESTS.days)
    world.clock.advance(seconds=-1)
    second = open_with(world, [one, other])
    assert second is not None
    assert second.reference == other
    world.clock.advance(seconds=1)
    third = open_with(world, [one])
    assert third is not None
    assert {deal.id for deal in listed(world, reference=one)} == {first.id, third.id}


def test_two_methods_that_draw_one_reference_at_once_get_different_ones(world: World) -> None:
    one, other = new_code(), new_code()

    def choose(method: str) -> str:
        for candidates in ([one], [one, other]):
            try:
                deal = open_with(world, candidates, method)
            except TransactionConflict:  # the second of two at once; the operation tries again
                continue
            if deal is not None:
                return deal.reference
        raise AssertionError("no reference")

    with ThreadPoolExecutor(2) as threads:
        assert set(threads.map(choose, ("card_eur", "sepa_eur"))) == {one, other}


def test_operators_find_a_deal_by_its_reference_however_they_type_it(world: World) -> None:
    deal, _ = chosen(world), chosen(world)
    typed = f"{deal.reference[:4]}-{deal.reference[4:]}".lower().replace("0", "o").replace("1", "l")
    assert [each.id for each in listed(world, reference=typed)] == [deal.id]
    assert found(world, typed) == {(deal.id, "reference")}
    assert refusal(listed, world, reference="hello").metadata["field"] == "reference"


def found(world: World, text: str) -> set[tuple[UUID, str]]:
    """Returns the finds of the operator's search: ids of deals, with the field."""
    with world.deps.db.autocommit() as connection:
        things = [thing for search in SEARCHES for thing in search(connection, text, 10)]
    return {(UUID(thing.id), thing.field) for thing in things if thing.kind == "deal"}


# -- the sender's name


def paid_by(world: World, name: str) -> DealView:
    deal = chosen(world)
    checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id=str(deal.id), sender_name=name)
    return desk.get_deal(world.deps, deal_id=str(deal.id)).deal


def test_the_senders_name_is_kept_as_it_was_first_given(world: World) -> None:
    deal = paid_by(world, "  Zoë   Müller ")
    assert deal.sender_name == "Zoë Müller"
    again = checkout.mark_paid(
        world.deps, invoice_id=str(deal.invoice_id), deal_id="", sender_name="Another Name"
    )
    assert again.deal is not None
    assert again.deal.sender_name == "Zoë Müller"
    with (
        closing(psycopg2.connect(owner_url(world.deps.settings.database_url))) as owner,
        pytest.raises(psycopg2.errors.InsufficientPrivilege, match="are set once"),
    ):
        owner.cursor().execute("UPDATE deals SET sender_name = 'Another Name'")


@pytest.mark.parametrize("name", ["", "   "])
def test_the_senders_name_is_optional(world: World, name: str) -> None:
    assert paid_by(world, name).sender_name is None


@pytest.mark.parametrize(
    "name",
    [
        "<b>Eve</b> & 'Co'",
        "محمد عبد الله",
        "می\u200cخواهم",
        "राजेश कुमार",
        "王小明",
        "O'Brien-Łukasz",
        "x" * 128,
    ],
)
def test_names_of_all_scripts_are_stored_as_typed_and_found(world: World, name: str) -> None:
    deal = paid_by(world, name)
    assert deal.sender_name == name
    assert [each.id for each in listed(world, sender_name=name)] == [deal.id]


@pytest.mark.parametrize("typed", ["MULLER ZOE", "mull", "zoë", "Müller, Zoë"])
def test_a_sender_is_found_as_banks_write_the_name(world: World, typed: str) -> None:
    deal, _ = paid_by(world, "Zoë Müller"), paid_by(world, "Max Huber")
    assert [each.id for each in listed(world, sender_name=typed)] == [deal.id]
    assert found(world, typed) == {(deal.id, "sender")}


def test_of_a_name_that_many_have_the_newest_are_found_and_few_of_the_others(world: World) -> None:
    ids = [paid_by(world, f"Ivana {each}").id for each in ("A", "B", "C", "D")]

    def of_sender(words: str, limit: int) -> set[UUID]:
        with world.deps.db.autocommit() as connection:
            return set(ids_of_sender(connection, words, limit, newest_read=2, most=1))

    assert of_sender("ivana", 2) == set(ids[2:])
    assert of_sender("ivana a", 2) == {ids[0]}
    older = of_sender("ivana", 3)
    assert older >= set(ids[2:]) and len(older) <= 3


@given(st.text(max_size=128))
def test_the_words_of_any_name_can_be_stored(name: str) -> None:
    words = words_of_name(name)
    assert "\n" not in words or not is_name(name)
    assert not is_name(name) or words.strip()


# -- which methods are taken


def openings(world: World, invoice_id: Any, **choosing: bool) -> dict[str, tuple[bool, Any]]:
    page = checkout.get_checkout(world.deps, invoice_id=str(invoice_id), **choosing)
    return {each.offer.method.method_code: (each.taken, each.free_from) for each in page.offers}


def test_a_method_whose_accounts_all_have_a_deal_of_the_amount_is_shown_as_taken(world: World) -> None:
    world = with_settings(world, method_share_percent=100)
    invoice = world.create(amount=PRICE)
    assert openings(world, invoice.id) == {"card_eur": (False, None), "sepa_eur": (False, None)}
    first = chosen(world, amount=PRICE)
    world.clock.advance(minutes=5)
    for _ in range(2):
        chosen(world, amount=PRICE)
    assert openings(world, invoice.id) == {"card_eur": (True, first.expires_at), "sepa_eur": (False, None)}
    other = world.create()
    assert openings(world, other.id)["card_eur"] == (False, None), "another amount has room"
    checkout.mark_paid(world.deps, invoice_id=str(first.invoice_id), deal_id="")
    later = first.expires_at + timedelta(minutes=5)
    assert openings(world, invoice.id)["card_eur"] == (True, later), "time does not end a deal that is marked"


def test_a_full_method_says_when_a_place_may_become_free(sharing: World) -> None:
    deals = [chosen(sharing, amount=PRICE) for _ in range(20)]
    invoice = sharing.create(amount="88.00")
    assert openings(sharing, invoice.id) == {
        "card_eur": (True, deals[0].expires_at),
        "sepa_eur": (False, None),
    }
    for deal in deals:
        checkout.mark_paid(sharing.deps, invoice_id=str(deal.invoice_id), deal_id="")
    assert openings(sharing, invoice.id)["card_eur"] == (True, None), "only operators end these"
    checkout.select_payment_method(sharing.deps, invoice_id=str(invoice.id), method_code="sepa_eur")
    assert openings(sharing, invoice.id)["card_eur"] == (False, None), (
        "not needed for the page of the payment"
    )
    assert openings(sharing, invoice.id, choosing=True)["card_eur"] == (True, None)


def test_the_method_of_the_open_deal_is_not_taken_for_its_own_customer(world: World) -> None:
    world = with_settings(world, method_share_percent=100)
    deals = [chosen(world, amount=PRICE) for _ in range(3)]
    mine = openings(world, deals[0].invoice_id, choosing=True)
    assert mine == {"card_eur": (False, None), "sepa_eur": (False, None)}
