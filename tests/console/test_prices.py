"""Currencies, methods and rates at the desk: the jump guard, edits that undo nothing, logos seen before use."""

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from playwright.sync_api import expect

from console.ui import charts
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.clock import SystemClock
from services.catalog.domain import Origin, Rate, Validity
from services.catalog.store.rates import seal_of_rate
from tests.console.conftest import Open, Staff
from tests.console.house import Person, hidden
from tests.console.looks import looks_right
from tests.gateway.desk import Desk, unique
from tests.support.pictures import PNG
from tests.support.stack import Stack


@pytest.fixture(scope="module")
def desk(stack: Stack) -> Iterator[Desk]:
    with Desk(stack) as opened:
        yield opened


@pytest.fixture(scope="module")
def prices(staff: Staff) -> Person:
    return staff("prices")


def rate_of(desk: Desk, code: str) -> pb.RateState:
    listed = desk.catalog.ListRates(pb.ListRatesRequest()).rates
    return next(each for each in listed if each.currency_code == code)


def test_a_rate_that_is_no_longer_held_as_it_was_shown_is_not_requested(desk: Desk, prices: Person) -> None:
    code = desk.currency(rate="90.00")
    hold = (
        "INSERT INTO held_rates (currency_code, source_rate, taken_at, document) VALUES (%s, 60, now(), %s)"
    )
    desk.catalog_database(hold, code, '{"quotes": []}')  # as the poller does
    action = f"/rates/{code}/accept"
    shown = hidden(prices.get(f"/rates/{code}").text, action)
    assert shown == {"expected": "60"}
    desk.catalog_database("UPDATE held_rates SET source_rate = 30 WHERE currency_code = %s", code)
    refused = prices.post(action, shown)
    assert "another rate is held now. Nothing was changed." in refused.text
    assert "The jump guard holds 30" in refused.text
    assert "A request for this currency waits" not in refused.text
    asked = prices.post(action, {"expected": "30"})
    (request,) = re.findall(r'href="(/approvals/catalog/[0-9a-f-]{36})">The request', asked.text)
    assert prices.get("/find", params={"q": request.rpartition("/")[2]}).url.endswith(request)


def test_now_and_health_tell_of_rates_that_lapsed_or_end_soon(
    desk: Desk, prices: Person, staff: Staff, open_page: Open
) -> None:
    never, ending, kept = desk.currency(rate=None), desk.currency(rate=None), desk.currency(rate="90.00")
    taken_at = SystemClock().now() - timedelta(minutes=50)
    rate = Rate(Decimal(90), Origin.OPERATOR, taken_at, validity=Validity.HOUR)
    desk.catalog_database(
        "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, validity, seal)"
        " VALUES (%s, 90, 'operator', %s, '{\"quotes\": []}', 'hour', %s)",
        *(ending, taken_at, seal_of_rate(desk.stack.seals_of("catalog"), ending, rate)),
    )
    shown = prices.get("/").text
    (lapsed,) = re.findall(r'role="alert"><strong>([A-Z, ]+) ha(?:s|ve) no valid rate', shown)
    assert never in lapsed and not {ending, kept} & set(lapsed.split(", "))
    assert re.findall(r"The rate of <strong>([A-Z]+)</strong> that was set by hand ends in", shown) == [
        ending
    ]
    health = prices.get("/health").text
    assert re.search(
        r"catalog</strong>.*?attention.*?Enabled currencies that can.*?t be paid with.*?Set their rate",
        health,
        re.S,
    )
    page = staff.page(open_page, "prices")
    page.goto(f"{prices.url}/")
    looks_right(page, "now-rates")


def test_the_markup_in_effect_stands_where_the_markup_is_set(desk: Desk, prices: Person) -> None:
    """0.88 less 1 % is 0.8712, of which deals lock 0.87."""
    code = desk.currency(rate="0.88", markup="0.01")
    assert "of 0.88 deals lock 0.87, 1.14 % less." in prices.get(f"/currencies/{code}").text
    assert "<dd>1\N{NO-BREAK SPACE}%, with the rounding 1.14 %</dd>" in prices.get(f"/rates/{code}").text


def test_a_rate_is_set_for_the_time_that_the_form_asks_for(
    desk: Desk, prices: Person, staff: Staff, open_page: Open
) -> None:
    code = desk.currency(rate="90.00")
    page = staff.page(open_page, "prices")
    page.goto(f"{prices.url}/rates/{code}")
    page.locator("#rate").fill("91")
    page.get_by_label("Valid for").select_option("until replaced")
    looks_right(page, "rate-set")
    page.get_by_role("button", name="Set by hand").click()
    expect(page.locator(".rate-lapse")).to_have_text("counts until it is replaced")
    assert rate_of(desk, code).in_force.validity == pb.RATE_VALIDITY_UNTIL_REPLACED
    jumps = prices.post(f"/rates/{code}/set", {"rate": "200", "valid": "day"})
    assert hidden(jumps.text, f"/rates/{code}/set") == {"rate": "200", "valid": "day", "anyway": "on"}
    assert prices.post(f"/rates/{code}/set", {"rate": "91", "valid": "always"}).status_code == 400


def test_the_course_of_a_rate_is_a_chart_with_its_table_and_file(desk: Desk, prices: Person) -> None:
    code = desk.currency(rate="90.00")
    wrong = prices.post(f"/rates/{code}/set", {"rate": "much"})
    assert f'href="/rates/{code}?span=week"' in wrong.text, "a link of the refused form leads to the list"
    prices.post(f"/rates/{code}/set", {"rate": "95"})
    page = prices.get(f"/rates/{code}").text
    assert page.count("<polyline") == 3
    rows = prices.rows(f"/rates/{code}.csv")
    assert [(row["lowest"], row["highest"], row["last"], row["accepted"]) for row in rows] == [
        ("90", "95", "95", "2")
    ]
    assert "Rate set by hand" in page
    assert prices.email in page
    each = prices.rows(f"/rates/{code}/accepted.csv?by=operators")
    assert [row["source_rate"] for row in each] == ["95", "90"]
    assert prices.get("/rates/ZZZ").status_code == 404
    wrong = prices.post(f"/rates/{code}/set", {"rate": "much"})
    assert (wrong.status_code, 'value="much"' in wrong.text) == (422, True)


def test_a_chart_that_does_not_begin_at_zero_begins_below_its_least_value() -> None:
    chart = charts.lines("rate", ["a", "b"], [("last", [90, 95])], from_zero=False)
    ticks = [float(tick.text) for tick in chart.ticks]
    assert ticks[0] <= 90 <= 95 <= ticks[-1]
    assert ticks[0] > 80
    flat = charts.lines("rate", ["a"], [("last", [90])], from_zero=False)
    assert float(flat.ticks[0].text) <= 90 <= float(flat.ticks[-1].text)


def test_two_edits_of_a_currency_undo_nothing_and_a_clash_names_the_field(desk: Desk, prices: Person) -> None:
    code = desk.currency()
    path = f"/currencies/{code}"
    seen = hidden(prices.get(path).text, path)
    form = {name.removeprefix("was:"): value for name, value in seen.items()}
    assert form["max_amount"] == "100,000.00"
    prices.post(path, seen | form | {"markup": "3"})
    saved = prices.post(path, seen | form | {"max_amount": "2 000,00", "name": "Other"})
    assert "The currency is saved." in saved.text
    now = next(
        each for each in desk.catalog.GetCatalog(pb.GetCatalogRequest()).currencies if each.code == code
    )
    assert (now.markup, now.max_amount, now.name) == ("0.03", "2000.00", "Other")

    clash = prices.post(path, seen | form | {"name": "Third", "symbol": "T"})
    assert clash.status_code == 422
    assert "Another person changed this to “Other” meanwhile." in clash.text
    assert 'value="Third"' in clash.text
    again = hidden(clash.text, path)
    assert again["was:name"] == "Other"
    assert "The currency is saved." in prices.post(path, again | form | {"name": "Third", "symbol": "T"}).text
    low = prices.post(path, {"name": "Third", "min_amount": "0"} | {})
    assert low.status_code == 422
    typed = seen | form | {"symbol": "", "min_amount": "much", "markup": "101"}
    several = prices.post(path, typed).text
    assert all(f'id="{field}-error"' in several for field in ("symbol", "min_amount", "markup"))
    assert "Markup: expected 0 to 100 per cent" in several
    assert 'value="much"' in several


def test_a_new_currency_and_method_are_created_once_and_show_what_they_lack(
    desk: Desk, staff: Staff, prices: Person, open_page: Open
) -> None:
    code = desk.currency()
    fields = {"code": code, "name": "A", "symbol": "A", "decimals": "2", "min_amount": "1", "max_amount": "9"}
    taken = prices.post("/new-currency", fields | {"markup": "0"})
    assert (taken.status_code, "This code is in use" in taken.text) == (422, True)
    method = unique("m")
    fields = {
        "method_code": method,
        "currency_code": code,
        "name": "Card <b>to</b> card",
        "min_sum": "10",
        "max_sum": "500",
        "payment_minutes": "abc",
        "commission": "1 %",
        "account_kind": "iban",
        "active": "yes",
    }
    wrong = prices.post("/new-method", fields)
    assert (wrong.status_code, 'id="payment_minutes-error"' in wrong.text) == (422, True)
    made = prices.post("/new-method", fields | {"payment_minutes": "20"})
    assert "The method is created." in made.text
    page = staff.page(open_page, "prices")
    page.goto(f"{prices.url}/methods/{method}")
    expect(
        page.get_by_text("It has no enabled account: customers see this method as unavailable.")
    ).to_be_visible()
    looks_right(page, "method")
    page.goto(f"{prices.url}/methods/{method}/logo")
    looks_right(page, "method-logo")
    page.goto(f"{prices.url}/methods?currency={code}&state=full")
    expect(page.locator("[data-row]")).to_contain_text("no place")
    looks_right(page, "methods")
    page.goto(f"{prices.url}/currencies/{code}")
    looks_right(page, "currency")


def test_a_logo_is_seen_before_it_is_used(desk: Desk, prices: Person) -> None:
    method = desk.method(desk.currency())
    path = f"/methods/{method}/logo"
    sent = prices.post(path, files={"logo": ("l.png", PNG)})
    (digest,) = set(re.findall(r"/method-logos/([0-9a-f]{64})", sent.text))
    picture = prices.get(f"/method-logos/{digest}")
    assert picture.headers["Content-Type"] == "image/png"
    assert picture.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert "The logo now" in prices.post(f"{path}/use", hidden(sent.text, f"{path}/use")).text
    methods = {each.method_code: each for each in desk.catalog.GetCatalog(pb.GetCatalogRequest()).methods}
    assert (methods[method].logo, methods[method].name) == (digest, "Card to card")
    no_picture = prices.post(path, files={"logo": ("l.png", b"text")})
    assert (no_picture.status_code, 'id="logo-error"' in no_picture.text) == (422, True)
