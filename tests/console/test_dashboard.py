"""The dashboard: what a member of a merchant reads and does there, by role, and nothing of another merchant."""

import hmac
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from html import unescape
from typing import Any, Final
from zoneinfo import ZoneInfo

import psycopg2
import pytest
import requests
from playwright.sync_api import expect

from console.dashboard.numbers import away_of, figures_of
from console.finding.pages import ROWS_MOST
from console.surfaces import DASHBOARD
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.ids import new_id
from kit.base.money import amount_text, money_text
from kit.rpc.errors import Refused
from tests.console.conftest import Open, with_cookies
from tests.console.house import House, Person, new_merchant, text_of, title_of, titles
from tests.console.looks import looks_right
from tests.gateway.desk import HTTP_SECONDS, SETTLE_SECONDS, Desk, Shop, unique
from tests.support.receiver import Answer, Receiver
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


# -- invoices


def test_a_member_sees_the_timeline_without_what_is_for_operators(market: Market) -> None:
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


def test_a_developer_sees_no_credit_and_finance_no_key(market: Market) -> None:
    id = market.paid["invoice_id"]
    settled_timeline(market.members["finance"], id, "Credited to the merchant")
    assert "Credited to the merchant" not in market.members["developer"].get(f"/invoices/{id}").text
    assert "API key test (" in market.members["developer"].get(f"/invoices/{id}").text
    assert "API key test (" not in market.members["finance"].get(f"/invoices/{id}").text


def test_the_list_and_its_file_have_the_merchants_own_invoices_and_no_sender(market: Market) -> None:
    owner, shop = market.members["owner"], market.shop
    waiting, chosen = shop.create(customer_id=unique("zoe")), shop.create(amount="777.77")
    market.desk.choose(chosen["invoice_id"], market.method)

    def listed(**filters: str) -> list[str]:
        return ids_in(owner.get("/invoices", params=filters).text, "invoices")

    assert listed()[:2] == [chosen["invoice_id"], waiting["invoice_id"]]
    assert listed(method=market.method, status="pending") == [chosen["invoice_id"]]
    lines = owner.rows("/invoices.csv")
    assert {line["merchant_id"] for line in lines} == {shop.merchant_id}
    assert {line["sender_name"] for line in lines} == {""}, "who paid from which account is for the operator"
    assert market.paid["invoice_id"] in {line["invoice_id"] for line in lines}


def test_lists_and_the_statement_lead_with_the_order_and_the_amount(market: Market) -> None:
    owner, paid = market.members["owner"], market.paid
    settled_timeline(owner, paid["invoice_id"], "Credited to the merchant", "Webhook attempt 1 delivered")
    order, amount = paid["external_id"], money_text(paid["amount"], market.shop.currency)
    number = event_of(owner, paid["invoice_id"])
    for address, link in (
        (f"/invoices?order={order}", f"/invoices/{paid['invoice_id']}"),
        (f"/webhooks?invoice={paid['invoice_id']}", f"/webhooks/{number}"),
        ("/balance", f"/invoices/{paid['invoice_id']}"),
        ("/balance/print", f"/invoices/{paid['invoice_id']}"),
    ):
        page = owner.get(address)
        assert f'<a href="{link}"><bdi>{order}</bdi></a>' in page.text, address
        assert amount in text_of(page).replace("\xa0", " "), address
    assert title_of(owner.get(f"/invoices/{paid['invoice_id']}")).startswith(
        f"Order {order}, {amount_text(paid['amount'])}"
    )
    assert title_of(owner.get(f"/webhooks/{number}")).startswith(
        f"Webhook of order {order}, {amount_text(paid['amount'])}"
    )
    (line,) = owner.rows("/balance.csv")
    found = line["external_id"], line["order_amount"], line["currency_code"]
    assert found == (order, paid["amount"], market.shop.currency)


def test_times_are_in_the_persons_zone_with_utc_on_hover_and_on_paper(
    market: Market, house: House, open_page: Open
) -> None:
    owner, address = market.members["owner"], f"/invoices/{market.paid['invoice_id']}"
    page = with_cookies(open_page(timezone_id="Asia/Tokyo"), owner)
    page.goto(f"{house.dashboard}{address}")
    expect(page.get_by_text("Times are Asia/Tokyo.")).to_be_visible()
    for place, shape in (
        (page.locator(".facts time").first, "%d %b %Y, %H:%M UTC"),
        (page.locator(".timeline time").first, "%Y-%m-%d %H:%M:%S UTC"),
    ):
        at = datetime.fromisoformat(str(place.get_attribute("datetime")))
        assert datetime.strptime(str(place.get_attribute("title")), shape).minute == at.minute  # noqa: DTZ007
        here = at.astimezone(ZoneInfo("Asia/Tokyo"))
        expect(place).to_contain_text(f"{here.day} {here:%b %Y, %H:%M}")
    page.goto(f"{house.dashboard}/balance/print")
    expect(page.locator("table.document time").first).to_contain_text("UTC")
    plain = with_cookies(open_page(scripts=False), owner)
    plain.goto(f"{house.dashboard}{address}")
    expect(plain.get_by_text("Times are UTC.")).to_be_visible()


# -- the search


def reference_of(market: Market, invoice_id: str) -> str:
    request = invoices_pb2.GetInvoiceStoryRequest(invoice_id=invoice_id)
    return str(market.desk.deals.GetInvoiceStory(request).invoice.deal.reference)


def event_id_of(market: Market, created: Any) -> str:
    """The `event_id` in the body of the invoice's webhook."""
    sent = [json.loads(each.body) for each in market.receiver.received()]
    (found,) = {each["event_id"] for each in sent if each["external_id"] == created["external_id"]}
    return str(found)


def found_by(person: Person, text: str) -> requests.Response:
    return person.get("/find", params={"q": text}, allow_redirects=False)


def leads_to(person: Person, text: str) -> str:
    return found_by(person, text).headers.get("Location", "")


def test_the_search_leads_to_the_merchants_own_things(market: Market, house: House, open_page: Open) -> None:
    owner, paid = market.members["owner"], market.paid
    id, page = paid["invoice_id"], f"/invoices/{paid['invoice_id']}"
    number = event_of(owner, id)
    for text in (id, id[:13], id.upper(), paid["external_id"], reference_of(market, id)):
        assert leads_to(owner, text) == page, text
    assert leads_to(owner, number) == f"/webhooks/{number}"
    event_id = event_id_of(market, paid)
    assert leads_to(market.members["developer"], event_id) == f"/webhooks/{number}"

    lamps = [market.shop.create(amount="4321.09") for _ in range(2)]
    for person in (owner, market.members["viewer"]):
        several = found_by(person, "4.321,09 €")
        assert {*ids_in(several.text, "invoices")} == {each["invoice_id"] for each in lamps}
    assert leads_to(owner, lamps[0]["customer_id"]) == f"/invoices/{lamps[0]['invoice_id']}"
    lines = owner.rows("/find.csv", q="4321.09")
    assert {(line["kind"], line["field"], line["order"]) for line in lines} == {
        ("invoice", "amount", each["external_id"]) for each in lamps
    }
    assert "/find.csv" not in found_by(market.members["viewer"], "4321.09").text

    usual = {market.shop.create(amount="77.03")["invoice_id"] for _ in range(ROWS_MOST + 1)}
    many = found_by(owner, "77.03")
    assert len(ids_in(many.text, "invoices")) == ROWS_MOST
    assert "There may be more by invoice amount." in many.text
    (rest,) = re.findall(r'<a href="([^"]+)">The list has all of them', many.text)
    assert {*ids_in(owner.get(unescape(rest)).text, "invoices")} == usual
    assert owner.get("/find.csv?q=77.03").status_code == 200

    assert "a withdrawal:" in owner.get("/find").text
    assert "a withdrawal:" not in market.members["developer"].get("/find").text, "not for this role"
    browser = with_cookies(open_page(), owner)
    browser.goto(house.dashboard)
    browser.keyboard.press("/")
    browser.keyboard.type("4321.09")
    browser.keyboard.press("Enter")
    expect(browser.get_by_role("heading", level=1)).to_have_text("Search: 4321.09")
    looks_right(browser, "dashboard-find")


def test_the_search_finds_nothing_of_others_and_nothing_that_is_for_operators(market: Market) -> None:
    """tests/console/test_dashboard_routes.py searches for ids of another merchant."""
    theirs, owner = market.theirs, market.members["owner"]
    others = (reference_of(market, theirs["invoice_id"]), event_id_of(market, theirs))
    for text in others:
        assert leads_to(market.stranger, text), f"{text} is there"
    for text in (*others, ACCOUNT, ACCOUNT.replace(" ", ""), market.sender, market.method):
        answer = found_by(owner, text)
        assert answer.status_code == 200, text
        assert "Nothing of yours has this text." in answer.text, text


# -- webhooks


def event_of(person: Person, invoice_id: str) -> str:
    page = person.get("/webhooks", params={"state": "all", "invoice": invoice_id}).text
    (number,) = ids_in(page, "webhooks")
    return number


def test_a_failed_webhook_is_explained_to_the_merchant_and_resent(market: Market, house: House) -> None:
    developer = market.members["developer"]
    market.receiver.answer(Answer(status=404, body=b"<b>gone fishing</b>\x1b[31m\xe2\x80\xae"), path="broken")
    created = market.shop.create(callback_url=market.receiver.url("broken"))
    market.desk.checkout.CancelCheckout(invoices_pb2.CancelCheckoutRequest(invoice_id=created["invoice_id"]))
    wait_until(
        lambda: created["invoice_id"] in developer.get("/webhooks?state=retrying").text,
        "the first attempt",
        timeout_seconds=SETTLE_SECONDS,
    )
    number = event_of(developer, created["invoice_id"])
    page = unescape(developer.get(f"/webhooks/{number}").text)
    assert "Your server answered 404 (Not Found)." in page
    assert "correct the callback address" in page
    assert "<b>gone fishing</b>\\x1b[31m\\u202e" in page, "what changes a line is shown"
    (sent,) = market.receiver.received("broken")
    assert sent.headers["x-signature-timestamp"] in page
    assert sent.headers["x-idempotency-key"] in page
    home = unescape(market.members["viewer"].get("/").text)
    assert "of the last hour failed" in home
    assert 'href="https://sandbox.example"' in home and "Test mode: no real money" in home
    assert developer.get("/webhooks").url.endswith("/webhooks?state=retrying"), "what needs attention"
    nobody = house.person("viewer", merchant=new_merchant())
    assert nobody.get("/webhooks").url.endswith("/webhooks?state=all"), "nothing does"
    own = f"/webhooks?invoice={created['invoice_id']}"
    assert ids_in(developer.get(own).text, "webhooks") == [number], (
        "an address without a state has all of them"
    )
    tabs = re.findall(r'<a href="(/webhooks[?][^"]*)"[^>]*>(?:Dead|All)<', developer.get("/webhooks").text)
    assert tabs == ["/webhooks?state=dead", "/webhooks?state=all"]
    assert developer.get(tabs[0]).url.endswith("/webhooks?state=dead")
    none = developer.get("/webhooks?state=dead").text
    assert 'None was given up. <a href="/webhooks?state=all">All webhooks</a>' in none
    assert "No webhook fits these filters." in developer.get(f"/webhooks?invoice={new_id()}").text
    assert "/resend" not in market.members["finance"].get(f"/webhooks/{number}").text
    market.receiver.answer(Answer(status=200), path="broken")
    assert "Delivered: your server has accepted it." in developer.post(f"/webhooks/{number}/resend").text


def test_a_webhook_that_was_never_sent_is_not_laid_to_the_server(market: Market) -> None:
    """Its address is one that Fiatgate does not call."""
    owner = market.stranger
    created = market.other.create(callback_url="http://2130706433/hook")
    market.desk.checkout.CancelCheckout(invoices_pb2.CancelCheckoutRequest(invoice_id=created["invoice_id"]))
    wait_until(
        lambda: created["invoice_id"] in owner.get("/webhooks?state=retrying").text,
        "the first attempt",
        timeout_seconds=SETTLE_SECONDS,
    )
    number = event_of(owner, created["invoice_id"])
    page = unescape(owner.get(f"/webhooks/{number}").text)
    assert "It was not sent: Fiatgate may not call this address." in page
    assert "Set a public callback address with https." in page
    assert "not sent: the URL's address must be written as four decimal numbers" in page
    assert "gave no answer" not in page
    assert "Request of attempt" not in page
    assert "It was not sent. The reason is below." in owner.post(f"/webhooks/{number}/resend").text
    tested = unescape(owner.post("/webhooks/test", {"event": number}).text)
    assert "none: nothing was sent" in tested
    assert "What was sent" not in tested


def test_a_test_event_is_signed_and_marked_and_in_no_history(
    market: Market, house: House, open_page: Open
) -> None:
    developer = market.members["developer"]
    secret = market.desk.merchants.CreateApiKey(
        merchants_pb2.CreateApiKeyRequest(merchant_id=market.shop.merchant_id, name="newest")
    ).secret
    number = event_of(developer, market.paid["invoice_id"])
    before = developer.get("/webhooks.csv?state=all").text
    market.receiver.answer(Answer(status=201, body=b"thanks <b>you</b>"))
    browser = with_cookies(open_page(), developer)
    browser.goto(f"{house.dashboard}/webhooks/{number}")
    browser.get_by_role("link", name="Send a test event there").click()
    browser.get_by_role("button", name="Send it now").click()
    browser.get_by_role("heading", name="What came back").wait_for()
    # The result stays until a further one can be sent.
    expect(browser.get_by_role("button", name="Send another one")).to_be_disabled()
    expect(browser.get_by_text("The next one can be sent in")).to_be_visible()
    waiting = browser.get_by_role("button", name="Send another one")
    expect(waiting).to_have_css("background-color", "rgba(0, 0, 0, 0)")  # readable: it is not grey on blue
    looks_right(browser, "dashboard-test")
    page = unescape(browser.content())
    assert "status 201" in page
    assert "thanks <b>you</b>" in page
    real, *_, sent = market.receiver.received()
    body, usual = json.loads(sent.body), json.loads(real.body)
    assert body.pop("test_event") is True
    assert body.keys() == usual.keys(), "only the mark differs"
    assert sent.headers["x-idempotency-key"] == body["event_id"]
    assert sent.headers["x-signature-timestamp"] in page
    signed = sent.headers["x-signature-timestamp"].encode() + b"." + sent.body
    assert sent.headers["x-signature"] == hmac.digest(secret.encode(), signed, "sha256").hex()
    assert developer.get("/webhooks.csv?state=all").text == before
    again = developer.post("/webhooks/test", {"event": number})
    assert again.status_code == 422
    assert re.search(r"The next one can be sent in ([1-9]|10) s\.", again.text), again.text
    # The merchant's default address; the cooldown is the merchant's, whatever the address.
    assert "https://shop.example" not in developer.get("/webhooks/test").text
    expect(browser.get_by_role("button", name="Send another one")).to_be_enabled(timeout=15_000)
    assert "sent a test event" in market.members["owner"].get("/audit").text


# -- the start page and the balance


def test_the_start_page_has_the_numbers_of_the_merchant(
    market: Market, house: House, open_page: Open
) -> None:
    finance = market.members["finance"]
    settled_timeline(finance, market.paid["invoice_id"], "Credited to the merchant")
    page, words = unescape(finance.get("/").text), text_of(finance.get("/")).replace("\xa0", " ")
    assert "The last 30 days beside the 30 days before." in words
    amount, currency = amount_text(market.paid["amount"]), market.shop.currency
    assert re.search(
        rf"Sales [\d.,]+ {currency} none before What customers paid, with their part of the commission.",
        words,
    )
    assert "Paid invoices 1 none before" in words
    assert re.search(rf"Newest payments .*{market.paid['external_id']} {amount} {currency}", words)
    assert "Today beside the day before." in text_of(finance.get("/?days=1"))
    assert "began by" not in words and "Payout addresses where" not in words, "neither the session nor tiles"
    session = text_of(finance.get("/account/sessions"))
    assert (
        finance.email in session and market.shop.merchant_id in session and "began by invitation" in session
    )
    balance = re.search(r'<dt>Balance</dt><dd><a href="/balance"><span class="money">([0-9.,]+)', page)
    assert balance is not None
    assert "<dt>Balance</dt>" not in market.members["developer"].get("/").text
    browser = with_cookies(open_page(), finance)
    browser.goto(house.dashboard)
    looks_right(browser, "dashboard-numbers")
    # The same balance is the end of the month's statement.
    lines = finance.rows("/balance.csv")
    assert lines[-1]["available_after"] == balance[1]
    assert market.paid["invoice_id"] in {line["invoice_id"] for line in lines}


def test_the_start_page_names_the_services_that_are_away(market: Market) -> None:
    finance, developer = market.members["finance"], market.members["developer"]
    notice = "withdrawals does not answer: its numbers are missing here."
    assert notice not in finance.get("/").text
    with market.desk.stack.without("withdrawals"):
        page = unescape(finance.get("/").text)
        assert notice in page
        assert "<dt>Balance</dt>" not in page
        assert "Paid invoices" in page
        assert "not answer" not in developer.get("/").text, "the balance is not for this role"


def test_no_page_opens_while_identity_is_away_and_all_open_again(market: Market) -> None:
    owner = market.members["developer"]
    with market.desk.stack.without("identity"):
        for path in ("/", "/merchant", "/keys"):
            page = owner.get(path)
            assert page.status_code == 503
            assert 5 <= int(page.headers["Retry-After"]) <= 10
    wait_until(lambda: _answers(market.desk), "merchants to be found again", timeout_seconds=30)
    wait_until(lambda: owner.get("/keys").status_code == 200, "the page to open again", timeout_seconds=30)


def _answers(desk: Desk) -> bool:
    try:
        desk.merchants.ListCategories(merchants_pb2.ListCategoriesRequest())
    except Refused:
        return False
    return True


def calls_of(house: House, service: str) -> Counter[str]:
    (address,) = house.stack.home.running_stack()["metrics"][service]
    lines = requests.get(f"http://{address}/metrics", timeout=HTTP_SECONDS).text
    found = re.findall(
        r'^fiatgate_rpc_calls_total\{[^}]*method="[^"]*?(\w+)"[^}]*\} (\S+)$', lines, re.MULTILINE
    )
    calls: Counter[str] = Counter()
    for method, count in found:
        calls[method] += int(float(count))
    return calls


def test_a_new_merchants_first_steps_are_those_that_the_role_may_do(
    market: Market, house: House, open_page: Open
) -> None:
    """tests/console/test_merchants_first_day.py does them."""
    desk = market.desk
    merchant = desk.merchants.CreateMerchant(
        merchants_pb2.CreateMerchantRequest(
            name="New lamps",
            owner_email=f"{unique('owner')}@shop.example",
            allowed_currencies=[market.shop.currency],
        )
    ).merchant
    owner, finance, viewer = (
        house.person(role, merchant=merchant.merchant_id) for role in ("owner", "finance", "viewer")
    )

    def steps(person: Person) -> dict[str, str]:
        found = re.findall(
            r"<li><strong>([^<]+)</strong> <span class=\"badge \w+\">([^<]+)", person.get("/").text
        )
        return dict(found)

    todo = [
        "Get activated",
        "Make an API key",
        "Set the address for webhooks",
        "Create the first invoice",
        "Receive a webhook and check its signature",
    ]
    assert list(steps(owner).items()) == [(each, "to do") for each in todo], (
        "in the order in which they can be done"
    )
    assert list(steps(finance)) == [todo[0], todo[2], todo[3]], "what this role may do"
    assert steps(viewer) == {}
    before = calls_of(house, "identity")
    page = unescape(owner.get("/").text)
    asked = calls_of(house, "identity") - before
    assert [asked[each] for each in ("GetMerchant", "ListApiKeys", "NameMerchants")] == [1, 1, 0]
    assert "You are not active yet" in page
    assert "Ask the operator for the activation and a category with its commission." in page
    assert '-H "X-Api-Key: $KEY"' not in page, (
        "no line that would be refused, and none of an invoice that is not there"
    )
    assert "You are not active yet" in owner.get("/keys").text
    assert f"{market.shop.url}/docs/guide" in page
    browser = with_cookies(open_page(), owner)
    browser.goto(house.dashboard)
    looks_right(browser, "dashboard-first-steps")


def test_figures_stand_beside_the_period_before_and_open_invoices_are_no_failures() -> None:
    row, report = invoices_pb2.ReportRow, invoices_pb2.GetReportResponse
    now = report(
        all=row(created=6, confirmed=3, credited_usdt="150.000000"),
        totals=[row(currency_code="EUR", turnover="120.00"), row(currency_code="JPY", turnover="900")],
    )
    before = report(
        all=row(created=4, confirmed=4, credited_usdt="200.000000", conversion="100.00"),
        totals=[row(currency_code="EUR", turnover="100.00"), row(currency_code="USD", turnover="7.00")],
    )
    waiting = invoices_pb2.ListAllInvoicesResponse(invoices=[invoices_pb2.Invoice()] * 2)
    found = figures_of(now, before, waiting)
    assert [(each.currency, each.change) for each in found.sales] == [
        ("EUR", "+20\xa0%"),
        ("JPY", ""),
        ("USD", "\N{MINUS SIGN}100\xa0%"),
    ]
    assert (found.due.change, found.paid.change) == ("\N{MINUS SIGN}25\xa0%", "\N{MINUS SIGN}25\xa0%")
    assert (found.success, found.ended, found.open, found.success_before) == ("75.00", 4, "2", "100.00")
    nothing = figures_of(report(), report(), invoices_pb2.ListAllInvoicesResponse())
    assert (nothing.sales, nothing.success, nothing.open) == ([], "", "")


def test_a_service_is_away_when_one_of_its_answers_is_missing() -> None:
    asked: dict[str, list[object]] = {
        "invoices": ["month"],
        "webhooks": ["dead", None],
        "withdrawals": [None],
    }
    assert away_of(asked) == ["webhooks", "withdrawals"]


def test_opening_plus_transfers_is_closing(market: Market, house: House, open_page: Open) -> None:
    finance = market.members["finance"]
    settled_timeline(finance, market.paid["invoice_id"], "Credited to the merchant")
    lines = finance.rows("/balance.csv")
    page = finance.get("/balance").text

    def available(row: str) -> Decimal:
        (amount,) = re.findall(
            rf'<th scope="row">{row}.*?data-label="Available".*?class="money">([0-9.]+)', page
        )
        return Decimal(amount)

    opening, closing = available("Before"), available("After")
    assert opening + sum(Decimal(line["available_change"]) for line in lines) == closing
    assert available("Paid invoice") == closing - opening
    assert "fiatgate verify" not in page, "the comparison is for operators"
    assert finance.get("/balance?month=2026-13").status_code == 422
    browser = with_cookies(open_page(), finance)
    browser.goto(f"{house.dashboard}/balance")
    looks_right(browser, "dashboard-balance")


# -- keys


def test_a_key_is_replaced_while_both_work_and_says_when_it_was_used(
    market: Market, house: House, open_page: Open
) -> None:
    developer = market.members["developer"]
    house.step_up(developer)
    *_, newest = re.findall(r'name="newest_key_id" value="([^"]*)"', developer.get("/keys").text)
    made = developer.post("/keys", {"name": "rotated", "newest_key_id": newest, "scope:read": "on"})
    old, _ = re.findall(r'readonly value="([^"]+)"', made.text)
    listed = developer.get("/keys").text
    *_, newest = re.findall(r'name="newest_key_id" value="([^"]*)"', listed)

    def row() -> dict[str, str]:
        lines = developer.rows("/keys.csv")
        return next(line for line in lines if line["key_id"] == newest)

    assert (row()["name"], row()["last_used_at"]) == ("rotated", "")
    address = f"{market.shop.url}/api/v1/invoices"
    assert requests.get(address, headers={"X-Api-Key": old}, timeout=HTTP_SECONDS).status_code == 200
    assert row()["last_used_at"] > "2020"
    answer = developer.post(f"/keys/{newest}/rotate", {"name": "rotated", "newest_key_id": newest})
    assert "The old key works on." in answer.text
    assert "Let your server accept both" in answer.text
    number = event_of(developer, market.paid["invoice_id"])
    assert re.search(
        r"Signing key</dt>.*?test.*?It made the invoice", developer.get(f"/webhooks/{number}").text
    )
    assert "Signing key" not in market.members["finance"].get(f"/webhooks/{number}").text
    fresh, _ = re.findall(r'readonly value="([^"]+)"', answer.text)
    for key in (old, fresh):
        assert requests.get(address, headers={"X-Api-Key": key}, timeout=HTTP_SECONDS).status_code == 200
    assert row()["replaced_by_key_id"]
    listed = developer.get("/keys").text
    assert "being replaced" in listed
    assert f"/keys/{newest}/rotate" not in listed
    assert "was replaced and no use" not in listed
    # A day later the page says that it can go, and the start page too.
    with (
        closing(psycopg2.connect(market.desk.stack.superuser_url("identity"))) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "UPDATE api_keys SET last_used_at = now() - interval '25 hours' WHERE id = %s", (newest,)
        )
    for page in ("/keys", "/"):
        assert "It was replaced and no use was noted for a day" in developer.get(page).text
    assert "An API key" not in market.members["viewer"].get("/").text
    browser = with_cookies(open_page(), developer)
    browser.goto(f"{house.dashboard}/keys")
    looks_right(browser, "dashboard-keys-rotated")
    assert "The key is deactivated" in developer.post(f"/keys/{newest}/deactivate").text
