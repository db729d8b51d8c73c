"""The money of a deal: what withdrawals asks before it corrects or refunds."""

from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from typing import Any

import psycopg2
import pytest

from kit.base.ids import new_id
from services.invoices import rpc
from services.invoices.models import Deal
from services.invoices.operations import checkout, desk
from services.invoices.operations.deal_money import DealMoney, Received, get_deal_money
from services.withdrawals.clients import InvoicesClient
from tests.invoices.conftest import World
from tests.support.acting import refusal
from tests.support.databases import past_all_rules
from tests.support.serving import serving


def money_of(world: World, deal: Deal, **given: Any) -> DealMoney:
    return get_deal_money(world.deps, deal_id=str(deal.id), **given)


def confirmed(world: World) -> Deal:
    deal = world.with_deal(amount="200.00")
    desk.confirm_deal(world.deps, deal_id=str(deal.id))
    return deal


def test_an_amount_that_came_pays_for_its_part_of_the_order(world: World) -> None:
    # 200.00 EUR, 5 % of which the client pays half: it sends 205.00, and the merchant is credited 195.00 / 0.92.
    deal = confirmed(world)
    found = money_of(world, deal, received_amount="205")
    assert (found.deal.amount_fiat, found.deal.conversion_rate) == (Decimal("205.00"), Decimal("0.92"))
    assert found.received == Received(
        order_amount=Decimal("200.00"),
        credit_usdt=Decimal("211.956521"),
    )
    assert not found.refunds_return_commission


def test_money_of_an_ended_deal_is_credited_at_its_rate_or_at_the_one_that_is_given(world: World) -> None:
    deal = world.with_deal(amount="200.00")
    checkout.cancel_checkout(world.deps, invoice_id=str(deal.invoice_id))
    by_invoice = get_deal_money(world.deps, invoice_id=str(deal.invoice_id), received_amount="205.00")
    other = money_of(world, deal, received_amount="205.00", conversion_rate="0.46")
    assert by_invoice.deal.id == other.deal.id == deal.id
    received = [each.received for each in (by_invoice, other)]
    assert [each and each.credit_usdt for each in received] == [Decimal("211.956521"), Decimal("423.913043")]
    assert money_of(world, deal).received is None


def test_after_an_adjustment_what_came_counts_as_paid(world: World) -> None:
    deal = world.with_deal(amount="200.00")
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="")
    world.adjust(deal, "100.00")
    assert money_of(world, deal).deal.amount_fiat == Decimal("102.50")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "VALIDATION_ERROR"),
        ({"invoice_id": "no-uuid"}, "INVOICE_NOT_FOUND"),
        ({"deal_id": "no-uuid"}, "DEAL_NOT_FOUND"),
        ({"received_amount": "0"}, "VALIDATION_ERROR"),
        ({"received_amount": "1.001"}, "VALIDATION_ERROR"),
        ({"received_amount": "1e3"}, "VALIDATION_ERROR"),
        ({"received_amount": "9" * 19}, "VALIDATION_ERROR"),
        ({"received_amount": "1", "conversion_rate": "0"}, "VALIDATION_ERROR"),
        ({"received_amount": "1", "conversion_rate": "0.001"}, "VALIDATION_ERROR"),
    ],
)
def test_what_names_no_deal_and_no_amount_is_refused(
    world: World, given: dict[str, str], reason: str
) -> None:
    named = {"invoice_id": str(world.with_deal().invoice_id)} if "received_amount" in given else {}
    assert refusal(get_deal_money, world.deps, **named, **given).reason == reason


def test_an_invoice_without_this_deal_has_no_money_of_it(world: World) -> None:
    unknown, waiting = str(new_id()), world.create()
    assert refusal(get_deal_money, world.deps, invoice_id=unknown).reason == "INVOICE_NOT_FOUND"
    assert refusal(get_deal_money, world.deps, deal_id=unknown).reason == "DEAL_NOT_FOUND"
    assert refusal(get_deal_money, world.deps, invoice_id=str(waiting.id)).reason == "DEAL_NOT_FOUND"
    replaced = world.with_deal()
    checkout.select_payment_method(world.deps, invoice_id=str(replaced.invoice_id), method_code="sepa_eur")
    assert refusal(money_of, world, replaced).reason == "DEAL_NOT_FOUND"


def appealed(world: World) -> Deal:
    deal = world.with_deal()
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="")
    return deal


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (confirmed, "UPDATE deals SET merchant_usdt = merchant_usdt + 1 WHERE id = %(deal)s"),
        (confirmed, "UPDATE deals SET amount_fiat = amount_fiat + 1 WHERE id = %(deal)s"),
        (confirmed, "UPDATE deals SET conversion_rate = 0.01 WHERE id = %(deal)s"),
        (
            confirmed,
            "UPDATE deals SET status = 'failed', sub_status = 'rejected_by_operator', merchant_usdt = NULL"
            " WHERE id = %(deal)s",
        ),
        (confirmed, "UPDATE invoices SET merchant_id = id WHERE id = %(invoice)s"),
        (
            confirmed,
            "DELETE FROM facts WHERE event_id IN (SELECT event_id FROM invoices WHERE id = %(invoice)s)",
        ),
        (
            appealed,
            "UPDATE deals SET status = 'pending', sub_status = 'awaiting_confirmation' WHERE id = %(deal)s",
        ),
    ],
)
def test_what_sql_wrote_is_no_money(world: World, make: Callable[[World], Deal], change: str) -> None:
    deal = make(world)
    money_of(world, deal)
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(change, {"deal": str(deal.id), "invoice": str(deal.invoice_id)})
        assert cursor.rowcount
    assert refusal(money_of, world, deal).reason == "NOT_DECIDED"


def test_withdrawals_gets_it_by_a_call(world: World) -> None:
    deal = confirmed(world)
    with serving(rpc.add_to, world.deps) as address:
        client = InvoicesClient(address)
        found = client.deal_money(invoice_id=deal.invoice_id, received_amount=Decimal("102.5"))
        refused = refusal(client.deal_money, deal_id=deal.id, received_amount=Decimal(0))
        assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", "received_amount")
        assert client.deal_money(deal_id=deal.id).received is None
    assert (found.invoice_status, found.status, found.sub_status) == (
        "success",
        "completed",
        "successfully_paid",
    )
    assert (found.paid_amount, found.merchant_usdt) == (Decimal("205.00"), Decimal("211.956521"))
    assert found.received is not None
    assert found.received.order_amount == Decimal("100.00")
