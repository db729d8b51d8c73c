"""The dashboard: what a member of a merchant reads and does there, by role, and nothing of another merchant."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, Final

import pytest
import requests

from console.surfaces import DASHBOARD
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from kit.base.ids import new_id
from tests.console.conftest import Open, with_cookies
from tests.console.house import House, Person, title_of
from tests.console.looks import looks_right
from tests.gateway.desk import HTTP_SECONDS, SETTLE_SECONDS, Desk, Shop, unique
from tests.support.receiver import Receiver
from tests.support.stack import Stack

ACCOUNT: Final = "4000 0025 0000 3155"
ROLES: Final = tuple(DASHBOARD.roles)


@dataclass(frozen=True)
class Market:
    """Two shops, each with a paid invoice whose webhook was delivered, and members of both."""

    desk: Desk
    method: str
    shop: Shop
    other: Shop
    paid: Any
    theirs: Any
    sender: str
    members: dict[str, Person]
    stranger: Person
    receiver: Receiver


@pytest.fixture(scope="module")
def market(stack: Stack, house: House) -> Iterator[Market]:
    with Desk(stack) as desk, Receiver() as receiver:
        currency = desk.currency()
        method = desk.method(currency, name="Bank transfer")
        desk.requisite(method, account=ACCOUNT)
        shop, other = desk.open_shop(currency, name="Lamps"), desk.open_shop(currency, name="Chairs")
        sender = unique("Payer")

        def paid(of: Shop) -> Any:
            created = of.create(callback_url=receiver.url())
            requests.get(created["payment_link"], timeout=HTTP_SECONDS)
            deal = desk.mark_paid(created["invoice_id"], method, sender_name=sender)
            desk.deals.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal.deal_id))
            return created

        ours, theirs = paid(shop), paid(other)
        receiver.wait_for(2)
        members = {role: house.person(role, merchant=shop.merchant_id, name=f"Mary {role}") for role in ROLES}
        stranger = house.person("owner", merchant=other.merchant_id)
        yield Market(desk, method, shop, other, ours, theirs, sender, members, stranger, receiver)


def titles(page: str) -> list[str]:
    return [
        unescape(re.sub("<[^>]+>", "", found)) for found in re.findall(r"<div><strong>(.*?)</strong>", page)
    ]


def settled_timeline(person: Person, invoice_id: str, *wanted: str) -> str:
    """The page of the invoice once its timeline has these titles."""
    page = f"/invoices/{invoice_id}"
    wait_until(
        lambda: {*wanted} <= {*titles(person.get(page).text)},
        f"{wanted} in the timeline",
        timeout_seconds=SETTLE_SECONDS,
    )
    return person.get(page).text


def ids_in(page: str, path: str) -> list[str]:
    """The ids of the things that the rows of a list link to."""
    return list(dict.fromkeys(re.findall(rf'href="/{path}/([0-9a-f-]+)"', page)))


OPENED: Final[dict[str, Sequence[str]]] = {
    "/": ROLES,
    "/invoices": ROLES,
    "/people": ("owner",),
    "/audit": ("owner",),
}
"""The roles that open each page of the navigation: docs/merchants.md has the same table."""


@pytest.mark.parametrize("role", ROLES)
def test_each_role_opens_the_pages_of_its_row_and_no_others(market: Market, role: str) -> None:
    person = market.members[role]
    home = person.get("/").text
    for path, roles in OPENED.items():
        answer = person.get(path)
        assert answer.status_code == (200 if role in roles else 403), path
        assert path == "/" or (f'href="{path}"' in home) == (role in roles), path


# -- invoices


def test_a_member_sees_the_timeline_without_what_is_for_operators(
    market: Market, open_page: Open, house: House
) -> None:
    id, owner = market.paid["invoice_id"], market.members["owner"]
    page = settled_timeline(owner, id, "Credited to the merchant", "Webhook attempt 1 delivered")
    assert titles(page)[:6] == [
        "Invoice created",
        "Payment page opened for the first time",
        "Payment method chosen",
        "Marked paid",
        "Payment confirmed",
        "Invoice paid",
    ]
    assert "by <bdi>the operator</bdi>" in page
    assert "by <bdi>API key test (" in page
    whole = page + owner.get(f"/invoices/{id}/timeline.csv").text
    for hidden in (
        ACCOUNT,
        market.sender,
        "eve@laptop",
        "cli:",
        "rate from",
        "/deals/",
        "/merchants/",
        "/cases/",
    ):
        assert hidden not in whole, hidden
    browser = with_cookies(open_page(), owner)
    for name, address in (("invoice", f"/invoices/{id}"), ("invoices", "/invoices")):
        browser.goto(house.dashboard + address)
        looks_right(browser, f"dashboard-{name}")


def test_a_developer_sees_no_credit_and_finance_no_key(market: Market) -> None:
    id = market.paid["invoice_id"]
    settled_timeline(market.members["finance"], id, "Credited to the merchant")
    assert "Credited to the merchant" not in market.members["developer"].get(f"/invoices/{id}").text
    assert "API key test (" in market.members["developer"].get(f"/invoices/{id}").text
    assert "API key test (" not in market.members["finance"].get(f"/invoices/{id}").text


def test_the_list_has_the_merchants_own_invoices_by_each_filter(market: Market) -> None:
    owner, shop = market.members["owner"], market.shop
    waiting, chosen = shop.create(customer_id=unique("zoe")), shop.create(amount="777.77")
    market.desk.choose(chosen["invoice_id"], market.method)

    def listed(**filters: str) -> list[str]:
        return ids_in(owner.get("/invoices", params=filters).text, "invoices")

    assert listed()[:2] == [chosen["invoice_id"], waiting["invoice_id"]]
    assert listed(order=chosen["external_id"]) == [chosen["invoice_id"]]
    assert listed(customer=waiting["customer_id"]) == [waiting["invoice_id"]]
    assert listed(amount_from="777.77", amount_to="777.77") == [chosen["invoice_id"]]
    assert listed(method=market.method, status="pending") == [chosen["invoice_id"]]
    assert listed(currency=shop.currency, status="success") == [market.paid["invoice_id"]]
    lines = list(csv.DictReader(io.StringIO(owner.get("/invoices.csv").text)))
    assert {line["merchant_id"] for line in lines} == {shop.merchant_id}
    assert {line["sender_name"] for line in lines} == {""}, "who paid from which account is for the operator"
    assert market.paid["invoice_id"] in {line["invoice_id"] for line in lines}
    assert market.members["viewer"].get("/invoices.csv").status_code == 403
    # The merchant of the address counts for nothing.
    assert market.theirs["invoice_id"] not in listed(merchant=market.other.merchant_id)


# -- another merchant


def test_what_is_another_merchants_answers_as_what_does_not_exist(market: Market) -> None:
    owner = market.members["owner"]
    theirs, nothing = market.theirs["invoice_id"], str(new_id())
    addresses = (
        "/invoices/{}",
        "/invoices/{}/timeline.csv",
        "/invoices?after={}",
        "/invoices.csv?after={}",
    )
    for address in addresses:
        found, unknown = owner.get(address.format(theirs)), owner.get(address.format(nothing))
        assert (found.status_code, title_of(found)) == (unknown.status_code, title_of(unknown)), address
        assert market.theirs["external_id"] not in found.text, address
    assert owner.get(f"/invoices/{theirs}").status_code == 404
    assert market.stranger.get(f"/invoices/{theirs}").status_code == 200
    for form in ("/invoices/{}/cancel", "/deals/{}/confirm", "/merchants/{}/keys"):
        assert owner.post(form.format(theirs)).status_code == 404, form
