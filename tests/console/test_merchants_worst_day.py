"""A merchant's worst day in browsers, without the operator: its server is down for an hour, a key leaks, an employee
goes.
"""

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import psycopg2
import pytest
import requests
from playwright.sync_api import Page, expect

from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2
from tests.console.conftest import Open, with_cookies
from tests.console.house import House, Person, signed_out
from tests.console.looks import looks_right
from tests.gateway.desk import HTTP_SECONDS, SETTLE_SECONDS, Desk, Shop, code_of, settled
from tests.support.receiver import Answer, Receiver
from tests.support.stack import Stack
from tests.webhooks.house import signed_by

RETRYING: Final = "/webhooks?state=retrying"
ORDERS: Final = 3
ATTEMPTS: Final = 8
"""Automatic ones of an event; the last seven come within an hour and two minutes."""
# All times of the events go back by what is left to the next attempt, so it is due now and the history is true.
TURN: Final = """
SET LOCAL session_replication_role = replica;
WITH waiting AS (
  SELECT id, next_retry_at - now() AS rest FROM events
  WHERE merchant_id = %(merchant_id)s AND status = 'pending' AND lease_until IS NULL AND next_retry_at > now()
  FOR UPDATE
), tried AS (
  UPDATE attempts SET created_at = created_at - rest FROM waiting WHERE event_id = waiting.id
)
UPDATE events SET created_at = created_at - rest, updated_at = updated_at - rest, next_retry_at = now()
FROM waiting WHERE events.id = waiting.id
"""


class Outage:
    """An hour in which the merchant's server answers 503. It passes while other tests run."""

    def __init__(self, desk: Desk, merchant_id: str) -> None:
        self._url = desk.stack.superuser_url("webhooks")
        self._merchant_id = merchant_id
        self._threads = ThreadPoolExecutor(1)
        self._hour: Future[None] | None = None

    def begin(self) -> None:
        self._hour = self._hour or self._threads.submit(self._pass)

    def end(self) -> None:
        """Returns when the hour is over and every event was given up."""
        self.begin()
        assert self._hour is not None
        self._hour.result()

    def _pass(self) -> None:
        wait_until(
            lambda: self._turn() == 0,
            "the last automatic attempts",
            timeout_seconds=2 * SETTLE_SECONDS,
            every_seconds=0.2,
        )

    def _turn(self) -> int:
        """Turns the clock to the next attempts; returns the number of events that wait for one."""
        count = "SELECT count(*) FROM events WHERE merchant_id = %s AND status = 'pending'"
        with closing(psycopg2.connect(self._url)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(TURN, {"merchant_id": self._merchant_id})
            cursor.execute(count, (self._merchant_id,))
            (left,) = cursor.fetchone() or (0,)
        return int(left)


@dataclass(frozen=True)
class Day:
    """shop      with the key that will leak
    secrets   signing secrets, newest last: that of the leaked key, and later that of the new one
    orders    invoices that were paid while the server was down
    open      an invoice of the same key that is not paid yet; its webhook goes to `paid_later`
    """

    desk: Desk
    method: str
    shop: Shop
    secrets: list[str]
    receiver: Receiver
    outage: Outage
    orders: list[str]
    open: str
    owner: Person
    developer: Person
    finance: Person
    employee: Person


@pytest.fixture(scope="module")
def day(stack: Stack, house: House) -> Iterator[Day]:
    with Desk(stack) as desk, Receiver() as receiver:
        currency = desk.currency()
        method = desk.method(currency, name="Bank transfer")
        desk.requisite(method)
        desk.open_shop(currency, name="Another")  # with an invoice that ends, so the currency is known
        opened = desk.shop(currency, name="Lamps")
        request = merchants_pb2.CreateApiKeyRequest(merchant_id=opened.merchant_id, name="laptop")
        key = desk.merchants.CreateApiKey(request)
        shop = replace(opened, key_id=key.key_id, api_key=key.api_key)
        receiver.answer(Answer(status=503, body=b"no space left on device"))
        orders = [shop.create(callback_url=receiver.url())["invoice_id"] for _ in range(ORDERS)]
        for each in orders:
            desk.confirm(each, method)
        receiver.wait_for(ORDERS)
        waiting = shop.create(callback_url=receiver.url("paid_later"))["invoice_id"]

        def member(role: str, name: str) -> Person:
            made = house.person(role, merchant=shop.merchant_id, name=name)
            made.add_factors()
            return made

        owner, developer = member("owner", "Mary Somerville"), member("developer", "Ada Lovelace")
        finance, employee = member("finance", "Emmy Noether"), member("developer", "Charles Babbage")
        outage = Outage(desk, shop.merchant_id)
        yield Day(
            *(desk, method, shop, [key.secret], receiver, outage, orders, waiting),
            *(owner, developer, finance, employee),
        )
        outage.end()


def opened(open_page: Open, person: Person, path: str = "/") -> Page:
    page = with_cookies(open_page(), person)
    page.goto(person.url + path)
    return page


def api_status(shop: Shop, api_key: str) -> int:
    answer = requests.get(
        f"{shop.url}/api/v1/currencies", headers={"X-Api-Key": api_key}, timeout=HTTP_SECONDS
    )
    if not answer.ok:
        assert code_of(answer) == "API_KEY_INVALID"
    return answer.status_code


# -- the server fails, and the hour begins


def test_the_start_page_says_that_webhooks_fail_and_why(day: Day, open_page: Open) -> None:
    settled(
        lambda: all(each in day.developer.get(RETRYING).text for each in day.orders), "the first attempts"
    )
    page = opened(open_page, day.developer)
    failing = page.get_by_role("status").filter(has_text="of the last hour failed")
    expect(failing).to_contain_text(
        f"{ORDERS} webhooks of the last hour failed so far, and will be tried again."
    )
    failing.get_by_role("link", name="See why").click()
    expect(page.locator("tbody tr")).to_have_count(ORDERS)
    page.locator("tbody tr th a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("retrying")
    attempt = page.locator(".attempt")
    expect(attempt).to_contain_text("Your server answered 503 (Service Unavailable).")
    expect(attempt).to_contain_text("look into its log at this time, mend it, then resend")
    day.outage.begin()


# -- an employee goes


def test_a_removed_employee_is_out_at_the_next_click_and_in_open_forms(
    day: Day, house: House, open_page: Open
) -> None:
    house.step_up(day.owner)
    house.step_up(day.employee)
    employee = opened(open_page, day.employee, "/keys")
    employee.get_by_label("Name").fill("for later")
    other = employee.context.new_page()
    other.goto(f"{house.dashboard}/invoices")
    keys = day.owner.get("/keys.csv").text
    page = opened(open_page, day.owner, "/people")
    page.get_by_role("link", name="Charles Babbage").click()
    page.get_by_text("Remove from the members").click()
    page.get_by_role("button", name="Remove the person").click()
    expect(page.get_by_role("status")).to_contain_text("no longer a member")
    expect(page.locator("main")).not_to_contain_text("Charles Babbage")
    employee.get_by_role("button", name="Make a key").click()
    expect(employee.get_by_role("heading", level=1)).to_have_text("Sign in")
    other.locator("tbody th a").first.click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert signed_out(day.employee.sign_in())
    assert day.owner.get("/keys.csv").text == keys, "the form made no key"
    assert not signed_out(day.finance.get("/balance"))
    page.goto(f"{house.dashboard}/audit?act=person.roles")
    removal = page.locator("[data-row]").first
    expect(removal).to_contain_text(day.owner.email)


# -- a key leaks


def test_a_leaked_key_is_replaced_and_refused_and_old_invoices_are_signed_by_the_new_one(
    day: Day, house: House, open_page: Open
) -> None:
    house.end_step_up(day.developer.email)
    page = opened(open_page, day.developer, "/keys")
    page.get_by_label("Name").fill("server")
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Confirm that it is you")
    page.get_by_label("Code").fill(day.developer.code())
    page.get_by_role("button", name="Confirm").click()
    api_key, secret = (page.get_by_label(name).input_value() for name in ("API key", "Signing secret"))
    page.get_by_role("link", name="Done").click()
    assert (api_status(day.shop, day.shop.api_key), api_status(day.shop, api_key)) == (200, 200)
    leaked = page.locator("[data-row]").filter(has_text="laptop")
    leaked.get_by_text("Deactivate", exact=True).click()
    expect(leaked).to_contain_text("Webhooks of invoices that it made are signed by the newest active key")
    leaked.get_by_role("button", name="Deactivate laptop").click()
    page.get_by_role("button", name="Deactivate it anyway").click()  # it was used a moment ago
    expect(page.get_by_role("status")).to_contain_text("The key is deactivated")
    assert (api_status(day.shop, day.shop.api_key), api_status(day.shop, api_key)) == (403, 200)
    day.desk.confirm(day.open, day.method)
    (received,) = day.receiver.wait_for(1, path="paid_later")
    assert signed_by(received, secret) and not signed_by(received, day.secrets[0])
    day.secrets.append(secret)
    day.receiver.answer(Answer(status=401), path="paid_later")
    page.goto(f"{house.dashboard}/webhooks?state=all&invoice={day.open}")
    page.locator("tbody tr th a").first.click()
    page.get_by_text("Resend", exact=True).click()
    page.get_by_role("button", name="Resend now").click()
    expect(page.get_by_role("alert")).to_contain_text("your server did not accept it")
    expect(page.locator(".attempt").first).to_contain_text("check its signing secret")
    audit = opened(open_page, day.owner, "/audit?act=key")
    for act in ("key.create", "key.deactivate"):
        expect(audit.locator("[data-row]").filter(has_text=act).first).to_contain_text(day.developer.email)
    expect(audit.locator("main")).not_to_contain_text(secret)


# -- the server is mended


def test_what_was_given_up_in_an_hour_is_resent_together_and_arrives_once(
    day: Day, house: House, open_page: Open
) -> None:
    day.outage.end()
    assert not signed_out(day.developer.sign_in(step=1))
    page = opened(open_page, day.developer)
    given_up = page.get_by_role("alert")
    expect(given_up).to_contain_text(f"{ORDERS} webhooks of the last seven days were given up")
    looks_right(page, "dashboard-down")
    given_up.get_by_role("link", name="See what it answered").click()
    expect(page.locator("tbody tr")).to_have_count(ORDERS)
    page.locator("tbody tr th a").first.click()
    expect(page.locator(".attempt")).to_have_count(ATTEMPTS)
    expect(page.locator(".facts").first).to_contain_text("Resend it when your server is mended.")
    page.get_by_text(f"Answer of attempt {ATTEMPTS}").click()
    expect(page.get_by_text("no space left on device").first).to_be_visible()
    tried = day.receiver.received()
    assert len(tried) == ORDERS * ATTEMPTS
    day.receiver.answer(Answer())
    page.go_back()
    for row in page.locator("tbody tr").all():
        row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Resend the ticked ones").click()
    expect(page.get_by_role("status").locator("li")).to_have_count(ORDERS)
    expect(page.get_by_role("status").get_by_text("delivered", exact=True)).to_have_count(ORDERS)
    expect(page.locator("main")).to_contain_text("None was given up.")
    resent = day.receiver.received()[len(tried) :]
    assert sorted(each.body for each in resent) == sorted({each.body for each in tried})
    assert all(signed_by(each, day.secrets[-1]) for each in resent)
    page.get_by_role("link", name="Fiatgate dashboard").click()
    expect(page.get_by_role("heading", name=re.compile("The last 30 days"))).to_be_visible()
    expect(page.get_by_text("given up")).to_have_count(0)
    expect(page.get_by_text("of the last hour failed")).to_have_count(0)
