"""The operator's desk among years of invoices: the queue, the search, live updates, decisions by keyboard.

    python -m benchmarks.bench_desk [--invoices 5000000] [--deals 1000000] [--open 10000]

Limits: the page of the queue under 150 ms (p95) with 10,000 open deals and a million old ones; a search under 200 ms
at five million invoices; a new "I have paid" is on an open desk within a second; 50 open desks cost less than a tenth
of a core at rest; 30 deals are decided with three keys each at most.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager

import aiohttp
import grpc
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.bench_api import running_stack
from benchmarks.desk import years
from benchmarks.processor import processor_seconds
from benchmarks.report import Row, below, options, show
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub
from kit.base.clock import monotonic_seconds
from kit.rpc.client import channel
from tests.console.conftest import with_cookies
from tests.console.house import House, Person
from tests.gateway.pay.conftest import launched
from tests.support.stack import Stack

QUEUE_MS = 150
SEARCH_MS = 200
VISIBLE_MS = 1000
DESKS = 50
DESKS_CORES = 0.1
REST_SECONDS = 20
OPEN_SECONDS = 30
KEYED_DEALS = 30
KEYS_MOST = 3
REPEATS = 40
DESKS_PER_PERSON = 10
"""Fewer than the streams that one person may have."""


@contextmanager
def desk(stack: Stack) -> Iterator[House]:
    urls = stack.home.running_stack()["consoles"]
    with grpc.insecure_channel(stack.addresses["identity"]) as accounts:
        yield House(urls["console-desk"], urls["console-dashboard"], stack, accounts)


def operator(house: House) -> Person:
    person = house.person("desk")
    person.add_factors()
    return person


def took_ms(person: Person, path: str, **query: str) -> list[float]:
    """Milliseconds of each request, one after the other. The first ones plan statements, and are left out."""
    took = []
    for number in range(REPEATS + 3):
        began = monotonic_seconds()
        answer = person.get(path, params=query, allow_redirects=False)
        if number >= 3:
            took.append(1000 * (monotonic_seconds() - began))
        assert answer.status_code in (200, 303), f"{path} {query}: {answer.status_code}"
    return took


def p95(took: Sequence[float]) -> float:
    return statistics.quantiles(took, n=20)[-1]


def _queue(person: Person) -> list[Row]:
    of_amount = took_ms(person, "/deals", amount_from="20050", amount_to="20051")
    return [
        below("queue page, p95", p95(took_ms(person, "/deals")), QUEUE_MS, "ms"),
        below("queue page of an amount, p95", p95(of_amount), QUEUE_MS, "ms"),
        below("list of all invoices, p95", p95(took_ms(person, "/invoices")), QUEUE_MS, "ms"),
        below("report of a month, p95", p95(took_ms(person, "/reports", period="30")), QUEUE_MS, "ms"),
    ]


def _searches(person: Person) -> list[Row]:
    wanted = {
        "invoice, beginning of its id": "004c4b00-0000",
        "amount": "152.86",
        "order": "order-04000001",
        "customer": "customer-77",
        "sender's name": "sender order-04999999",
        "nothing": "no such thing",
    }
    return [
        below(f"search: {what}, p95", p95(took_ms(person, "/find", q=text)), SEARCH_MS, "ms")
        for what, text in wanted.items()
    ]


def _purchase(stack: Stack, checkout: CheckoutServiceStub, number: int) -> Callable[[], object]:
    """Returns the customer's "I have paid" of a new invoice."""
    name = f"bench-{number}-{os.getpid()}"
    body = {"amount": f"{300 + number}.00", "currency_code": "EUR", "customer_id": name, "external_id": name}
    invoice_id = stack.request("POST", "/api/v1/create-invoice", json=body).json()["invoice_id"]
    select = invoices_pb2.SelectPaymentMethodRequest(invoice_id=invoice_id, method_code="sepa")
    deal_id = checkout.SelectPaymentMethod(select).invoice.deal.deal_id
    return lambda: checkout.MarkPaid(invoices_pb2.MarkPaidRequest(invoice_id=invoice_id, deal_id=deal_id))


def _visible(stack: Stack, page: Page, desk: str) -> list[Row]:
    """From the answer to "I have paid" to the new number on an open page."""
    took = []
    page.goto(f"{desk}/")
    shown = page.locator("[data-count='deals_marked']").first
    with channel(stack.addresses["invoices"], name="invoices") as invoices:
        checkout = CheckoutServiceStub(invoices)
        for number in range(20):
            pay = _purchase(stack, checkout, number)
            before = shown.text_content() or ""
            pay()
            began = monotonic_seconds()
            expect(shown).not_to_have_text(before, timeout=10_000)
            took.append(1000 * (monotonic_seconds() - began))
    return [
        below("“I have paid” on an open desk, longest of 20", max(took), VISIBLE_MS, "ms"),
        Row("“I have paid” on an open desk, median", f"{statistics.median(took):.0f} ms"),
    ]


def _by_keyboard(page: Page, desk: str) -> list[Row]:
    keys, took = 0, []
    page.goto(f"{desk}/deals")
    for _ in range(KEYED_DEALS):
        evidence = page.locator(".evidence")
        expect(evidence).to_be_visible()
        deal = evidence.get_attribute("data-evidence")
        began = monotonic_seconds()
        for key in ("c", "Enter"):
            page.keyboard.press(key)
            keys += 1
        expect(page.locator(f"[data-evidence='{deal}']")).to_have_count(0)
        took.append(1000 * (monotonic_seconds() - began))
    each = keys / KEYED_DEALS
    return [
        Row(f"keys for each of {KEYED_DEALS} deals", f"{each:.1f}", f"<= {KEYS_MOST}", each <= KEYS_MOST),
        Row("key to the next deal, median", f"{statistics.median(took):.0f} ms"),
    ]


async def _cores_of_desks(stack: Stack, people: Sequence[Person]) -> float:
    """Opens the streams of all desks, and returns the cores that are used while nothing changes."""
    async with AsyncExitStack() as opened:
        jar = aiohttp.DummyCookieJar()
        http = await opened.enter_async_context(
            aiohttp.ClientSession(cookie_jar=jar, connector=aiohttp.TCPConnector(limit=0))
        )
        for number in range(DESKS):
            person = people[number // DESKS_PER_PERSON]
            cookies = "; ".join(f"{each.name}={each.value}" for each in person.http.cookies)
            request = http.get(f"{person.url}/live", headers={"Cookie": cookies})
            answer = await opened.enter_async_context(request)
            assert answer.status == 200, f"stream {number}: {answer.status}"
            async with asyncio.timeout(OPEN_SECONDS):
                while not (await answer.content.readline()).startswith(b"data:"):
                    pass
        return await _cores_at_rest(stack)


async def _cores_at_rest(stack: Stack) -> float:
    before = sum(processor_seconds(stack).values())
    await asyncio.sleep(REST_SECONDS)
    return (sum(processor_seconds(stack).values()) - before) / REST_SECONDS


def _at_rest(stack: Stack, people: Sequence[Person]) -> list[Row]:
    alone = asyncio.run(_cores_at_rest(stack))
    together = asyncio.run(_cores_of_desks(stack, people))
    cost = together - alone
    return [
        Row(
            f"{DESKS} open desks at rest, all processes",
            f"{cost:.3f} cores",
            f"< {DESKS_CORES} cores",
            cost < DESKS_CORES,
        ),
        Row("the same stack without a desk", f"{alone:.3f} cores"),
    ]


def measure(made: years.Years) -> list[Row]:
    with ExitStack() as opened:
        # One machine loads many pages here; a person does not.
        stack = opened.enter_context(running_stack(FIATGATE_DESK_REQUESTS_PER_MINUTE="0"))
        house = opened.enter_context(desk(stack))
        people = [operator(house) for _ in range(DESKS // DESKS_PER_PERSON)]
        rows = _at_rest(stack, people)
        browser = launched(opened.enter_context(sync_playwright()).chromium)
        opened.callback(browser.close)
        page = with_cookies(browser.new_page(), people[0])
        # Before the queue is filled: a number above 999 is shown as such, and does not change.
        rows += _visible(stack, page, house.desk)
        page.goto("about:blank")
        years.make(stack, made)
        rows += [*_queue(people[0]), *_searches(people[0]), *_by_keyboard(page, house.desk)]
    return [
        *rows,
        Row("load average while measuring", f"{os.getloadavg()[0]:.1f}"),
    ]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--invoices", type=int, default=5_000_000)
    parser.add_argument("--deals", type=int, default=1_000_000)
    parser.add_argument("--open", type=int, default=10_000)
    given = parser.parse_args()
    return show("Desk", measure(years.Years(given.invoices, given.deals, given.open)))


if __name__ == "__main__":
    sys.exit(main())
