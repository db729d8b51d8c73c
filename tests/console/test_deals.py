"""The queue of deals and late money: evidence beside decisions, few keys, and no decision made twice."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from html import unescape
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.codes import in_groups
from tests.console.conftest import Open, Staff
from tests.console.house import title_of
from tests.console.looks import looks_right
from tests.gateway.desk import Desk, Shop
from tests.support.pictures import PNG
from tests.support.stack import Stack

KEYS_PER_DEAL: Final = 3


@dataclass(frozen=True)
class Till:
    """A shop, and the transfers of its customers."""

    desk: Desk
    shop: Shop
    method: str

    def chosen(self, **changes: Any) -> pb.Deal:
        return self.desk.choose(self.shop.create(**changes)["invoice_id"], self.method)

    def marked(self, *, sender: str = "", **changes: Any) -> pb.Deal:
        invoice = self.shop.create(**changes)["invoice_id"]
        return self.desk.mark_paid(invoice, self.method, sender_name=sender)

    def appealed(self, *, picture: bytes | None = None) -> pb.Deal:
        deal = self.marked()
        request = pb.OpenCustomerAppealRequest(
            invoice_id=deal.invoice_id, note="Paid <b>at</b> noon", picture=picture
        )
        self.desk.checkout.OpenCustomerAppeal(request)
        return deal

    def late(self, note: str) -> int:
        """The number of a case of a new invoice, which its customer canceled."""
        deal = self.chosen()
        self.desk.checkout.CancelCheckout(pb.CancelCheckoutRequest(invoice_id=deal.invoice_id))
        request = pb.OpenCaseRequest(invoice_id=deal.invoice_id, note=note, picture=PNG)
        return self.desk.checkout.OpenCase(request).case.number

    def state(self, deal: pb.Deal) -> str:
        return self.desk.deals.GetDeal(pb.GetDealRequest(deal_id=deal.deal_id)).deal.sub_status

    def list(self, state: str = "marked", **query: str) -> str:
        """The address of the shop's deals."""
        rest = "".join(f"&{name}={value}" for name, value in query.items())
        return f"/deals?state={state}&merchant={self.shop.merchant_id}{rest}"


@pytest.fixture(scope="module")
def till(stack: Stack) -> Iterator[Till]:
    with Desk(stack) as desk:
        currency = desk.currency()
        method = desk.method(currency)
        desk.requisite(method)
        yield Till(desk, desk.open_shop(currency), method)


@pytest.fixture(autouse=True)
def _nothing_waits(till: Till) -> Iterator[None]:
    """Each test ends without deals in the shop's queues."""
    yield
    for status in (pb.DEAL_STATUS_PENDING, pb.DEAL_STATUS_APPEAL):
        request = pb.ListDealsRequest(status=status, merchant_id=till.shop.merchant_id, limit=1000)
        for deal in till.desk.deals.ListDeals(request).deals:
            if status == pb.DEAL_STATUS_PENDING:
                till.desk.deals.RejectDeal(pb.RejectDealRequest(deal_id=deal.deal_id))
            else:
                till.desk.deals.ResolveAppeal(pb.ResolveAppealRequest(deal_id=deal.deal_id, rejected=True))


def fields_of(html: str, action: str) -> dict[str, str]:
    """The hidden fields of the form that posts there."""
    form = html[html.index(f'action="{action}"') :].partition("</form>")[0]
    found = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found}


def shown(page: Page) -> str | None:
    return page.locator(".evidence").get_attribute("data-evidence")


# -- by keyboard


def test_an_operator_decides_six_deals_with_three_keys_each_at_most(
    till: Till, staff: Staff, open_page: Open
) -> None:
    deals = [till.marked(sender=f"Sender {number}") for number in range(6)]
    page = staff.page(open_page, "desk")
    page.goto(staff("desk").url + till.list())
    looks_right(page, "deals")
    keys = 0
    decisions = ["c", "r", "c", "a", "c", "c"]
    for deal, key in zip(deals, decisions, strict=True):
        expect(page.locator(".evidence")).to_have_attribute("data-evidence", deal.deal_id)
        for each in (key, "Enter"):
            page.keyboard.press(each)
            keys += 1
        expect(page.locator(f"[data-evidence='{deal.deal_id}']")).to_have_count(0)
    assert keys <= KEYS_PER_DEAL * len(deals)
    expect(page.locator("[data-row]")).to_have_count(0)
    ends = {"c": "successfully_paid", "r": "rejected_by_operator", "a": "opened_by_operator"}
    assert [till.state(deal) for deal in deals] == [ends[key] for key in decisions]


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
    till.desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=taken.deal_id))
    expect(page.locator(f"tr[data-deal='{taken.deal_id}'] .gone")).to_contain_text("Confirmed by")
    expect(page.locator("[data-decided]")).to_contain_text("There is nothing left to decide.")
    expect(page.locator(".decide")).to_have_count(0)
    fresh = till.marked()
    expect(page.locator("[data-new='deals_marked']")).to_have_text("1 new")
    expect(page.locator(f"[data-deal='{fresh.deal_id}']")).to_have_count(0)
    assert till.state(left) == "awaiting_confirmation"


# -- without scripts


def test_a_decision_leads_to_the_next_deal_and_the_second_one_is_refused_with_its_author(
    till: Till, staff: Staff
) -> None:
    deals = [till.marked() for _ in range(3)]
    first, second = staff("desk"), staff("admin")
    page = first.get(till.list())
    assert all(f'data-deal="{deal.deal_id}"' in page.text for deal in deals)
    action = f"/deals/{deals[0].deal_id}/confirm"
    fields = fields_of(page.text, action)
    after = first.post(action, fields)
    assert "Confirmed: the merchant is credited." in after.text
    assert f'data-evidence="{deals[1].deal_id}"' in after.text
    twice = second.post(action, fields)
    assert "Nothing was changed: the deal is no longer as you saw it." in twice.text
    assert f'data-evidence="{deals[0].deal_id}"' in twice.text
    assert re.search(rf"Confirmed</strong> by <bdi>{re.escape(first.email)}</bdi>", twice.text)
    assert 'class="decide"' not in twice.text


def test_people_who_may_only_read_see_the_queue_and_no_decision(till: Till, staff: Staff) -> None:
    deal = till.marked()
    viewer = staff("viewer")
    page = viewer.get(till.list())
    assert f'data-evidence="{deal.deal_id}"' in page.text
    assert 'class="decide"' not in page.text
    assert 'type="checkbox" form="several"' not in page.text
    assert viewer.post(f"/deals/{deal.deal_id}/confirm").status_code == 403
    assert till.state(deal) == "awaiting_confirmation"


def test_a_lower_amount_waits_for_a_second_person(till: Till, staff: Staff, open_page: Open) -> None:
    deal = till.appealed(picture=PNG)
    desk = staff("desk")
    page = desk.get(till.list("appeals"))
    assert "Paid &lt;b&gt;at&lt;/b&gt; noon" in page.text
    action = f"/deals/{deal.deal_id}/resolve"
    back = {"back": till.list("appeals"), "expected": "opened_by_customer", "outcome": "adjusted"}
    wrong = desk.post(action, back | {"amount": "99999", "note": "half of it"})
    assert wrong.status_code == 422
    assert "The amount must be above zero and below the amount of the order." in wrong.text
    assert 'value="99999"' in wrong.text
    assert 'value="half of it"' in wrong.text
    asked = desk.post(action, back | {"amount": "10.00"})
    assert "It takes effect when another person approves it." in asked.text
    (path,) = set(re.findall(r'href="(/approvals/invoices/[0-9a-f-]{36})"', asked.text))
    assert path
    assert "End the appeal with 10.00" in asked.text
    seen = staff.page(open_page, "desk")
    seen.goto(desk.url + till.list("appeals"))
    expect(seen.locator("figure img")).to_be_visible()
    assert seen.locator("figure img").evaluate("each => each.naturalWidth") > 0
    looks_right(seen, "deals-appeal")
    seen.goto(f"{desk.url}/deals/{deal.deal_id}")
    looks_right(seen, "deal")


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
    lines = list(csv.DictReader(io.StringIO(desk.get(till.list(sender="muster").replace("?", ".csv?")).text)))
    assert [(line["deal_id"], line["reference"], line["state"]) for line in lines] == [
        (wanted.deal_id, reference, "marked paid")
    ]
    assert lines[0]["order"].startswith("'=order-")
    assert desk.get(till.list("all")).status_code == 422, "ended deals of a merchant have no index"
    today = SystemClock().now() - timedelta(days=1)
    assert wanted.deal_id in desk.get(till.list("all", since=f"{today:%Y-%m-%d}")).text
    assert desk.get("/deals/0197b0f4-0000-7000-8000-000000000000").status_code == 404


# -- late money


def test_late_money_is_answered_and_the_next_case_is_shown(till: Till, staff: Staff, open_page: Open) -> None:
    first, second = till.late("I sent it at noon"), till.late("Me too")
    desk = staff("desk")
    list = f"/cases?merchant={till.shop.merchant_id}"
    page = desk.get(list)
    assert "I sent it at noon" in page.text
    seen = staff.page(open_page, "desk")
    seen.goto(desk.url + list)
    looks_right(seen, "cases")
    seen.goto(f"{desk.url}/cases/{first}")
    looks_right(seen, "case")
    fields = {"back": list, "next": str(second)}
    empty = desk.post(f"/cases/{first}/answer", fields | {"outcome": " "})
    assert empty.status_code == 422
    after = desk.post(f"/cases/{first}/answer", fields | {"outcome": "It was sent back."})
    assert "The answer is given to the customer." in after.text
    assert "Me too" in after.text
    again = staff("admin").post(f"/cases/{first}/answer", fields | {"outcome": "No."})
    assert "Nothing was changed: the case was answered already" in again.text
    assert f"Answered by <bdi>{desk.email}</bdi>" in again.text
    (line,) = csv.DictReader(io.StringIO(desk.get(list.replace("?", ".csv?")).text))
    assert (line["number"], line["customers_text"]) == (str(second), "Me too")
    everything = csv.DictReader(io.StringIO(desk.get(list.replace("?", ".csv?state=all&")).text))
    assert {each["answer"] for each in everything} == {"", "It was sent back."}
    assert desk.get("/cases/0").status_code == 404
