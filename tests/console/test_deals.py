"""The queue of deals and late money: evidence beside decisions, few keys, and no decision made twice."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import psycopg2
import pytest
from playwright.sync_api import expect

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.codes import in_groups
from kit.base.money import money_text
from tests.console.conftest import Open, Staff
from tests.console.house import House, hidden, text_of, title_of
from tests.console.till import Till
from tests.support.pictures import PNG


@pytest.fixture(autouse=True)
def _nothing_waits(till: Till) -> Iterator[None]:
    """Each test ends without deals in the shop's queues."""
    yield
    till.clear()


# -- by keyboard


def test_a_row_that_the_keys_select_is_opened_and_only_then_decided(
    till: Till, staff: Staff, open_page: Open
) -> None:
    first, second = till.marked(), till.marked()
    page = staff.page(open_page, "desk")
    page.goto(staff("desk").url + till.list())
    page.keyboard.press("j")
    page.keyboard.press("c")
    page.keyboard.press("Enter")
    expect(page.locator(".evidence")).to_have_attribute("data-evidence", second.deal_id)
    assert {till.state(first), till.state(second)} == {"awaiting_confirmation"}


def test_a_deal_that_another_operator_decides_is_struck_and_a_new_one_is_announced(
    till: Till, staff: Staff, open_page: Open
) -> None:
    taken, left = till.marked(), till.marked()
    page = staff.page(open_page, "desk")
    page.goto(staff("desk").url + till.list())
    expect(page.locator("[data-row]")).to_have_count(2)
    colleague = staff("admin")
    colleague.post(f"/deals/{taken.deal_id}/confirm", {"expected": "awaiting_confirmation"})
    expect(page.locator(f"tr[data-deal='{taken.deal_id}'] .gone")).to_contain_text(
        f"Payment confirmed by {colleague.email}"
    )
    expect(page.locator("[data-decided]")).to_contain_text("There is nothing left to decide.")
    expect(page.locator(".decide")).to_have_count(0)
    fresh = till.marked()
    expect(page.locator("[data-new='deals_marked']")).to_have_text("1 new")
    expect(page.locator(f"[data-deal='{fresh.deal_id}']")).to_have_count(0)
    assert till.state(left) == "awaiting_confirmation"


def test_an_empty_queue_loads_what_comes_and_the_window_has_the_number(
    till: Till, staff: Staff, open_page: Open
) -> None:
    page = staff.page(open_page, "desk")
    page.goto(staff("desk").url + till.list())
    expect(page.locator("main")).to_contain_text("No deal fits these filters.")
    deal = till.marked()
    expect(page.locator(f"[data-deal='{deal.deal_id}']")).to_have_count(1)
    expect(page).to_have_title(re.compile(r"^\(\d+\+?\) Deals"))
    expect(page.locator(".tabs [data-count='deals_marked']")).to_have_text(re.compile(r"^\d+\+?$"))


# -- without scripts


def test_a_decision_leads_to_the_next_deal_and_the_second_one_is_refused_with_its_author(
    till: Till, staff: Staff
) -> None:
    deals = [till.marked() for _ in range(3)]
    first, second = staff("desk"), staff("admin")
    page = first.get(till.list())
    assert all(f'data-deal="{deal.deal_id}"' in page.text for deal in deals)
    action = f"/deals/{deals[0].deal_id}/confirm"
    fields = hidden(page.text, action)
    after = first.post(action, fields)
    credit = till.desk.deals.GetDeal(pb.GetDealRequest(deal_id=deals[0].deal_id))
    assert re.search(
        rf"Confirmed: {re.escape(money_text(deals[0].amount_fiat, deals[0].currency_code))}, "
        rf"order <bdi>{re.escape(credit.context.external_id)}</bdi>, <bdi>[^<]+</bdi>. "
        rf"The merchant is credited {credit.deal.merchant_usdt} USDT.",
        after.text,
    )
    again = first.post(action, fields)
    assert "Confirmed: " in again.text, "a key that was held is no conflict"
    assert f'data-evidence="{deals[1].deal_id}"' in again.text
    assert f'data-evidence="{deals[1].deal_id}"' in after.text
    twice = second.post(action, fields)
    assert "Nothing was changed: the deal is no longer as you saw it." in twice.text
    assert f'data-evidence="{deals[0].deal_id}"' in twice.text
    assert re.search(rf"Payment confirmed</strong> by <bdi>{re.escape(first.email)}</bdi>", twice.text)
    assert 'class="decide"' not in twice.text


def test_a_deal_that_sql_changed_is_not_confirmed_and_the_operator_reads_why(
    till: Till, staff: Staff, house: House
) -> None:
    deal = till.marked()
    operator = staff("desk")
    page = operator.get(f"/deals/{deal.deal_id}").text
    change = "UPDATE deals SET amount_fiat = amount_fiat + %s WHERE id = %s"
    with closing(psycopg2.connect(house.stack.superuser_url("invoices"))) as database:
        database.autocommit = True
        cursor = database.cursor()
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(change, (1, deal.deal_id))
        action = f"/deals/{deal.deal_id}/confirm"
        answer = operator.post(action, hidden(page, action))
        cursor.execute(change, (-1, deal.deal_id))
    assert "past the service: no act decided it. Nothing was done." in text_of(answer)
    assert "Confirmed: " in operator.post(action, hidden(page, action)).text


def test_a_picture_has_an_address_of_its_own_where_it_can_do_nothing(till: Till, staff: Staff) -> None:
    deal = till.appealed(picture=PNG)
    picture = staff("desk").get(f"/deals/{deal.deal_id}/pictures/appeal")
    assert (picture.status_code, picture.content) == (200, PNG)
    assert picture.headers["Content-Type"] == "image/png"
    assert picture.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert picture.headers["X-Content-Type-Options"] == "nosniff"
    assert picture.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert picture.headers["Cache-Control"] == "no-store"
    for path in ("case", "other"):
        assert staff("desk").get(f"/deals/{deal.deal_id}/pictures/{path}").status_code == 404
    page = b"<script>alert(1)</script>"
    past_all_rules = "SET session_replication_role = replica;"
    change = "UPDATE proofs SET content = %s, content_type = 'text/html' WHERE deal_id = %s"
    till.desk.database("invoices", past_all_rules + change, page, deal.deal_id)
    broken = staff("desk").get(f"/deals/{deal.deal_id}/pictures/appeal")
    assert broken.status_code == 404
    assert page not in broken.content


def test_deals_that_nobody_paid_are_rejected_together_and_changed_ones_stay(till: Till, staff: Staff) -> None:
    unpaid, paid = [till.chosen() for _ in range(2)], till.chosen()
    desk, back = staff("desk"), {"back": till.list("unpaid")}
    assert "Tick the deals first." in desk.post("/deals/several", back | {"act": "reject"}).text
    ids = [deal.deal_id for deal in (*unpaid, paid)]
    question = desk.post("/deals/several", back | {"act": "reject", "deal": ids})
    assert title_of(question) == "Reject 3 deals?"
    assert till.state(unpaid[0]) == "awaiting_payment"
    till.desk.checkout.MarkPaid(pb.MarkPaidRequest(invoice_id=paid.invoice_id))
    done = desk.post("/deals/several", back | {"act": "reject", "sure": "yes", "deal": ids})
    assert title_of(done) == "Not all of them"
    assert [till.state(deal) for deal in (*unpaid, paid)] == [
        *["rejected_by_operator"] * 2,
        "awaiting_confirmation",
    ]
    appealed = desk.post("/deals/several", back | {"act": "appeal", "sure": "yes", "deal": paid.deal_id})
    assert "The deals are in appeal." in appealed.text


def test_deals_are_found_and_their_file_has_what_the_screen_shows(till: Till, staff: Staff) -> None:
    wanted, other = (
        till.marked(sender="Zoë Muster", external_id=f"=order-{SystemClock().now():%f}"),
        till.marked(),
    )
    desk = staff("desk")
    reference = in_groups(wanted.reference)
    page = desk.get(till.list(sender="muster"))
    assert wanted.deal_id in page.text
    assert f'data-deal="{other.deal_id}"' not in page.text
    lines = desk.rows(till.list(sender="muster").replace("?", ".csv?"))
    assert [(line["deal_id"], line["reference"], line["state"]) for line in lines] == [
        (wanted.deal_id, reference, "marked paid")
    ]
    assert lines[0]["order"].startswith("'=order-")
    of_order = desk.rows(till.list(order=lines[0]["order"].removeprefix("'")).replace("?", ".csv?"))
    assert [line["deal_id"] for line in of_order] == [wanted.deal_id], (
        "no other field has the name of the order"
    )
    for sort in ("largest", "smallest"):
        amounts = desk.rows(till.list(currency=wanted.currency_code, sort=sort).replace("?", ".csv?"))
        found = [float(line["amount"]) for line in amounts]
        assert found == sorted(found, reverse=sort == "largest")
    assert wanted.deal_id in desk.get(till.list("all")).text
    today = SystemClock().now() - timedelta(days=1)
    assert wanted.deal_id in desk.get(till.list("all", since=f"{today:%Y-%m-%d}")).text
    assert desk.get("/deals/0197b0f4-0000-7000-8000-000000000000").status_code == 404


# -- late money


def test_cases_have_a_file_and_an_answer_has_words(till: Till, staff: Staff) -> None:
    first, second = till.late("I sent it at noon"), till.late("Me too")
    till.returned(first)
    desk, list = staff("desk"), f"/cases?merchant={till.shop.merchant_id}"
    assert (
        desk.post(f"/cases/{first}/answer", {"back": list, "outcome": " ", "ended_as": "return"}).status_code
        == 422
    )
    assert desk.post(f"/cases/{first}/answer", {"back": list, "outcome": "Why?"}).status_code == 422
    desk.post(f"/cases/{first}/answer", {"back": list, "outcome": "It was sent back.", "ended_as": "return"})
    rows = desk.rows(list.replace("?", ".csv?"))
    assert [row["customers_text"] for row in rows if row["number"] in (str(first), str(second))] == ["Me too"]
    everything = desk.rows(list.replace("?", ".csv?state=all&"))
    ended = {each["number"]: (each["answer"], each["ended_as"]) for each in everything}
    assert ended[str(first)] == ("It was sent back.", "return")
    assert desk.get("/cases/0").status_code == 404
