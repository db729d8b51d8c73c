"""Payment links: a fresh invoice at each payment, until they are canceled or their time is over; verify finds what SQL
changed.
"""

from contextlib import closing
from functools import partial
from typing import Any
from uuid import UUID

import psycopg2
import pytest

from kit.base.actors import Actor
from kit.base.codes import new_code
from services.invoices.domain.states import LinkStatus
from services.invoices.operations import checkout, desk, links, reading
from services.invoices.store.views import LinkView
from tests.invoices.conftest import World, make_merchant
from tests.invoices.test_books import checked
from tests.support.acting import acting, refusal
from tests.support.databases import past_all_rules


def made(world: World, **changes: Any) -> LinkView:
    given: dict[str, Any] = {
        "merchant_id": world.merchant.merchant_id,
        "amount": "100.5",
        "currency_code": "EUR",
    }
    given |= {"purpose": "Entry", "note": "the fair", "valid_days": 0}
    return links.create_link(world.deps, **given | changes)


def listed(world: World, **changes: Any) -> list[tuple[Any, ...]]:
    given: dict[str, Any] = {"merchant_id": world.merchant.merchant_id, "link_id": "", "status": None}
    page = links.list_links(world.deps, **given | {"after_link_id": "", "limit": 0} | changes)
    return [(each.link.id, each.link.status(page.now), each.payments) for each in page.links]


def problems(world: World) -> list[str]:
    parts = ("links", "invoices")
    found = [each for name in parts for page in checked(world.deps.db, name) for each in page.problems]
    return [f"{each.subject.split()[-1]} {each.field} {each.found}" for each in found]


def test_each_payment_is_an_invoice_of_its_own_and_counts_when_it_is_paid(world: World) -> None:
    link = made(world)
    first, second = (links.pay_link(world.deps, link_id=str(link.id)) for _ in range(2))
    assert {first.link_id, second.link_id} == {link.id} and first.external_id != second.external_id
    assert first.external_id.startswith(f"link-{link.code}-")
    assert (first.amount, first.purpose, first.callback_url) == (
        link.amount,
        "Entry",
        "https://shop.example/hook",
    )
    checkout.select_payment_method(world.deps, invoice_id=str(first.id), method_code="card_eur")
    deal = world.newest_deal(first.id)
    checkout.mark_paid(world.deps, invoice_id=str(first.id), deal_id=str(deal.id))
    desk.confirm_deal(world.deps, deal_id=str(deal.id))
    assert listed(world) == [(link.id, LinkStatus.OPEN, 1)]
    by_hand = reading.list_all_invoices(
        world.deps, merchant_id=world.merchant.merchant_id, by_hand=True, limit=0
    )
    assert by_hand.invoices == [], "the list of single links has none of them"
    assert problems(world) == []


def test_a_link_ends_by_its_time_or_by_a_cancellation_and_its_invoices_go_on(world: World) -> None:
    week = made(world, valid_days=7)
    world.clock.advance(seconds=1)
    canceled = made(world)
    waiting = links.pay_link(world.deps, link_id=str(canceled.id))
    first = links.cancel_link(world.deps, link_id=str(canceled.id))
    assert links.cancel_link(world.deps, link_id=str(canceled.id)) == first, "again changes nothing"
    assert links.get_link(world.deps, link_id=str(week.id)).status is LinkStatus.OPEN
    checkout.select_payment_method(world.deps, invoice_id=str(waiting.id), method_code="card_eur")
    world.clock.advance(days=7)
    for link in (week, canceled):
        assert refusal(links.pay_link, world.deps, link_id=str(link.id)).reason == "LINK_ENDED"
    expected = [(canceled.id, LinkStatus.CANCELED, 0), (week.id, LinkStatus.EXPIRED, 0)]
    assert listed(world) == expected
    for row in expected:
        assert listed(world, status=row[1]) == [row]
    assert listed(world, status=LinkStatus.OPEN) == []
    assert listed(world, after_link_id=str(canceled.id)) == expected[1:]
    assert problems(world) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"amount": "100.555"}, "VALIDATION_ERROR"),
        ({"amount": "9.99"}, "AMOUNT_BELOW_MIN"),
        ({"amount": "100000.01"}, "AMOUNT_ABOVE_MAX"),
        ({"amount": "10"}, "PAYMENT_METHOD_NOT_FOUND"),
        ({"currency_code": "XXX"}, "CURRENCY_INVALID"),
        ({"valid_days": 91}, "VALIDATION_ERROR"),
        ({"note": "x" * 501}, "VALIDATION_ERROR"),
        ({"purpose": "x" * 513}, "VALIDATION_ERROR"),
    ],
)
def test_a_link_that_no_invoice_could_follow_is_refused(
    world: World, changes: dict[str, Any], reason: str
) -> None:
    assert refusal(made, world, **changes).reason == reason
    assert listed(world) == []


def test_a_link_has_so_many_open_invoices_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "OPEN_MOST", 2)
    link = made(world)
    first, _ = (links.pay_link(world.deps, link_id=str(link.id)) for _ in range(2))
    assert refusal(links.pay_link, world.deps, link_id=str(link.id)).reason == "LINK_BUSY"
    checkout.cancel_checkout(world.deps, invoice_id=str(first.id))
    links.pay_link(world.deps, link_id=str(link.id))


def test_a_member_of_another_merchant_finds_no_link_to_cancel(world: World) -> None:
    link, (other, _) = made(world), make_merchant(world.merchants)
    stranger = Actor(
        kind="person", name="eve@example.com", surface="dashboard", merchant_id=UUID(other.merchant_id)
    )
    cancel = partial(links.cancel_link, world.deps, link_id=str(link.id))
    assert refusal(acting, stranger, cancel).reason == "LINK_NOT_FOUND"
    assert (
        refusal(listed, world, merchant_id=other.merchant_id, link_id=str(link.id)).reason == "LINK_NOT_FOUND"
    )
    assert listed(world) == [(link.id, LinkStatus.OPEN, 0)]


@pytest.mark.parametrize(
    "change",
    ["merchant_id = %(other)s", "amount = 1", "expires_at = now() + interval '90 days'", "code = %(code)s"],
)
def test_a_link_that_sql_changed_is_named_by_verify_and_makes_no_invoice(world: World, change: str) -> None:
    link, (other, _) = made(world, valid_days=1), make_merchant(world.merchants)
    with (
        closing(psycopg2.connect(past_all_rules(world.deps.settings.database_url))) as owner,
        owner,
        owner.cursor() as cursor,
    ):
        values = {"id": str(link.id), "other": other.merchant_id, "code": new_code()}
        cursor.execute(f"UPDATE links SET {change} WHERE id = %(id)s", values)
    assert [each.split()[:2] for each in problems(world)] == [[str(link.id), change.split(maxsplit=1)[0]]]
    for call in (links.get_link, links.pay_link):
        assert refusal(call, world.deps, link_id=str(link.id)).reason == "NOT_DECIDED"


def test_an_invoice_that_sql_gave_to_another_link_is_named_by_verify(world: World) -> None:
    link, other = made(world), made(world)
    invoice = links.pay_link(world.deps, link_id=str(link.id))
    with (
        closing(psycopg2.connect(past_all_rules(world.deps.settings.database_url))) as owner,
        owner,
        owner.cursor() as cursor,
    ):
        cursor.execute("UPDATE invoices SET link_id = %s WHERE id = %s", (str(other.id), str(invoice.id)))
    assert [each.split()[:2] for each in problems(world)] == [[str(invoice.id), "terms"]]
