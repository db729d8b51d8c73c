"""What SQL under the role of invoices writes is paid to nobody and credits nobody."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import psycopg2
import pytest

from kit.base.ids import new_id
from kit.base.seals import Seals
from kit.rpc.errors import Refused
from services.invoices.domain.creating import NewInvoice
from services.invoices.operations import checkout, desk, requisites
from services.invoices.store.decisions import seal_of_invoice
from tests.invoices.conftest import ACCOUNTS, World, make_merchant
from tests.support.acting import refusal
from tests.support.databases import past_all_rules


def execute(world: World, statement: str, **values: Any) -> None:
    url = world.deps.settings.database_url
    with closing(psycopg2.connect(url)) as database, database, database.cursor() as cursor:
        cursor.execute(statement, {name: str(value) for name, value in values.items()})
        assert cursor.rowcount == 1


def test_a_deal_with_terms_that_nobody_locked_is_not_confirmed(world: World) -> None:
    genuine, waiting, forged = world.with_deal(), world.create(), new_id()
    execute(
        world,
        "INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,"
        " currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent,"
        " requisite_id, created_at, expires_at, seal, reference, takes_reference)"
        " SELECT %(forged)s, %(invoice)s, merchant_id, status, sub_status, method_code, method_name, currency_code,"
        " currency_decimals, invoice_amount, amount_fiat, 0.01, client_percent, merchant_percent, requisite_id,"
        " created_at, expires_at, seal, '7K3M9QTX', true FROM deals WHERE id = %(genuine)s",
        forged=forged,
        invoice=waiting.id,
        genuine=genuine.id,
    )
    execute(world, "UPDATE invoices SET deal_id = %(deal)s WHERE id = %(id)s", deal=forged, id=waiting.id)
    assert refusal(desk.confirm_deal, world.deps, deal_id=str(forged)).reason == "NOT_DECIDED"
    assert desk.confirm_deal(world.deps, deal_id=str(genuine.id)).status == "completed"


def test_a_deal_whose_reference_sql_changed_is_not_confirmed(world: World) -> None:
    deal = world.with_deal()
    with closing(psycopg2.connect(past_all_rules(world.deps.settings.database_url))) as owner, owner:
        owner.cursor().execute("UPDATE deals SET reference = '7K3M9QTX' WHERE id = %s", (str(deal.id),))
    assert refusal(desk.confirm_deal, world.deps, deal_id=str(deal.id)).reason == "NOT_DECIDED"


@pytest.mark.parametrize(
    "change", ["merchant_id = %(other)s", "amount = amount + 1", "callback_url = 'https://evil.example/'"]
)
def test_an_invoice_that_was_changed_is_neither_paid_nor_credited(world: World, change: str) -> None:
    waiting, opened = world.create(), world.with_deal()
    other, _ = make_merchant(world.merchants)
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
        changed = {"ids": (str(waiting.id), str(opened.invoice_id)), "other": other.merchant_id}
        cursor.execute(f"UPDATE invoices SET {change} WHERE id IN %(ids)s", changed)
    assert (
        refusal(
            checkout.select_payment_method, world.deps, invoice_id=str(waiting.id), method_code="sepa_eur"
        ).reason
        == "NO_AVAILABLE_REQUISITES"
    )
    assert refusal(desk.confirm_deal, world.deps, deal_id=str(opened.id)).reason == "NOT_DECIDED"
    assert desk.reject_deal(world.deps, deal_id=str(opened.id), note="").status == "failed"


def test_the_page_shows_no_deal_of_another_invoice_and_no_account_that_sql_wrote(world: World) -> None:
    mine, other = world.with_deal(), world.with_deal()
    execute(
        world, "UPDATE invoices SET deal_id = %(deal)s WHERE id = %(id)s", deal=other.id, id=mine.invoice_id
    )
    assert checkout.get_checkout(world.deps, invoice_id=str(mine.invoice_id)).invoice.deal is None
    assert (
        refusal(checkout.mark_paid, world.deps, invoice_id=str(mine.invoice_id), deal_id=str(other.id)).reason
        == "DEAL_STATE_CONFLICT"
    )
    execute(
        world, "UPDATE invoices SET deal_id = %(deal)s WHERE id = %(id)s", deal=mine.id, id=mine.invoice_id
    )
    assert not desk.get_deal(world.deps, deal_id=str(mine.id)).account_undecided
    execute(world, "UPDATE requisites SET max_deals = 77 WHERE id = %(id)s", id=mine.requisite_id)
    page = checkout.get_checkout(world.deps, invoice_id=str(mine.invoice_id))
    assert page.requisite is None
    assert desk.get_deal(world.deps, deal_id=str(mine.id)).account_undecided, "the desk marks it"
    assert page.offers
    again = checkout.select_payment_method(
        world.deps, invoice_id=str(mine.invoice_id), method_code=mine.method_code
    )
    assert again[1].id != mine.requisite_id
    assert checkout.get_checkout(world.deps, invoice_id=str(mine.invoice_id)).requisite == again[1]


def test_an_account_that_sql_adds_keeps_no_customer_from_the_others(world: World) -> None:
    forged = new_id()
    execute(
        world,
        "INSERT INTO requisites (id, method_code, holder, account, max_deals, open_deals, enabled, created_at)"
        " VALUES (%(id)s, 'sepa_eur', 'Eve', 'GB33BUKB20201555555555', 500, 0, true, now())",
        id=forged,
    )
    for _ in range(ACCOUNTS + 1):
        shown = checkout.select_payment_method(
            world.deps, invoice_id=str(world.create().id), method_code="sepa_eur"
        )
        assert shown[1].id != forged
    assert not requisites.get_requisite(world.deps, requisite_id=str(forged), days=1).requisite.enabled


def test_an_account_that_sql_adds_or_enables_is_shown_to_no_customer(world: World) -> None:
    # Added now: an act may be some seconds late, so a value from before the last act counts that long.
    known = requisites.add_requisite(
        world.deps, method_code="sepa_eur", holder="A. Holder", account="77", bank=None, max_deals=5
    )
    for each in requisites.list_requisites(world.deps, method_code="sepa_eur"):
        requisites.disable_requisite(world.deps, requisite_id=str(each.id))
    forged = new_id()
    execute(
        world,
        "INSERT INTO requisites (id, method_code, holder, account, max_deals, open_deals, enabled, created_at)"
        " VALUES (%(id)s, 'sepa_eur', 'Eve', 'GB33BUKB20201555555555', 5, 0, true, now())",
        id=forged,
    )

    def choose() -> str:
        id = str(world.create().id)
        with pytest.raises(Refused) as refused:
            checkout.select_payment_method(world.deps, invoice_id=id, method_code="sepa_eur")
        return refused.value.reason

    assert choose() == "NO_AVAILABLE_REQUISITES"
    execute(world, "UPDATE requisites SET enabled = false WHERE id = %(id)s", id=forged)
    execute(world, "UPDATE requisites SET enabled = true WHERE id = %(id)s", id=known.id)
    assert choose() == "NO_AVAILABLE_REQUISITES"


def test_an_account_that_sql_changed_is_not_enabled(world: World) -> None:
    id = world.with_deal().requisite_id
    requisites.disable_requisite(world.deps, requisite_id=str(id))
    execute(world, "UPDATE requisites SET max_deals = max_deals + 1 WHERE id = %(id)s", id=id)
    with pytest.raises(Refused, match="NOT_DECIDED"):
        requisites.enable_requisite(world.deps, requisite_id=str(id))
    execute(world, "UPDATE requisites SET max_deals = max_deals - 1 WHERE id = %(id)s", id=id)
    assert requisites.enable_requisite(world.deps, requisite_id=str(id)).enabled


@pytest.mark.parametrize("end", [desk.confirm_deal, partial(desk.reject_deal, note="no money")])
def test_a_deal_that_sql_took_back_from_an_appeal_is_not_ended(
    world: World, end: Callable[..., object]
) -> None:
    deal = world.with_deal()
    checkout.mark_paid(world.deps, invoice_id=str(deal.invoice_id), deal_id=str(deal.id))
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="less came")
    back = "UPDATE deals SET status = 'pending', sub_status = 'awaiting_confirmation' WHERE id = %(id)s"
    execute(world, back, id=deal.id)
    assert refusal(lambda: end(world.deps, deal_id=str(deal.id))).reason == "NOT_DECIDED"


def test_the_seal_of_an_invoice_of_before_stays_right() -> None:
    at = datetime(2026, 11, 28, tzinfo=UTC)
    new = NewInvoice(
        id=UUID(int=1),
        merchant_id=UUID(int=2),
        key_id=UUID(int=3),
        external_id="order-1",
        amount=Decimal("49.90"),
        currency_code="EUR",
        customer_id="customer-1",
        purpose=None,
        callback_url=None,
        success_url=None,
        fail_url=None,
        created_at=at,
        expires_at=at + timedelta(hours=1),
    )
    sealed = seal_of_invoice(Seals(["QUFB" * 8]), new)
    assert sealed.hex() == "49950e9ab0c648d615780af06a6cd1889d8173c9a96d52ab97da6c5a555831f2"
