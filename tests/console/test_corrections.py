"""Corrections at the desk: a wrong confirmation taken back by two people, the debt, and the money that pays it."""

import re
from html import unescape
from typing import Final

import pytest
from playwright.sync_api import expect
from requests import Response

from fiatgate.invoices.v1.invoices_pb2 import GetCaseRequest, GetDealRequest
from fiatgate.withdrawals.v1 import withdrawals_pb2
from tests.console.conftest import Open, Staff
from tests.console.house import House, Person, hidden, text_of
from tests.console.looks import looks_right
from tests.console.till import Till
from tests.e2e.market import settled

WHY: Final = {"reason": "The bank took it back", "evidence": "BR-77"}
APPROVAL: Final = re.compile(r'href="(/approvals/withdrawals/[0-9a-f-]{36})"')


class Shop(Till):
    """A shop of its own: its balance is that of the deals of one test."""

    def balance(self) -> withdrawals_pb2.GetBalanceResponse:
        request = withdrawals_pb2.GetBalanceRequest(merchant_id=self.shop.merchant_id)
        return self.desk.withdrawals.GetBalance(request)

    def credited(self, **changes: str) -> str:
        """The invoice of a confirmed deal whose credit has arrived."""
        before = self.balance().credited
        deal = self.paid(**changes)
        settled(lambda: self.balance().credited != before, "the credit")
        return str(deal.invoice_id)

    def withdrawn(self) -> None:
        """Everything that is available leaves."""
        request = withdrawals_pb2.CreateWithdrawalRequest(
            merchant_id=self.shop.merchant_id,
            withdrawal_method_id=1,
            address="TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
            amount=self.balance().available,
            request_key=self.shop.merchant_id,
        )
        made = self.desk.withdrawals.CreateWithdrawal(request).withdrawal
        self.desk.withdrawals.CompleteWithdrawal(
            withdrawals_pb2.CompleteWithdrawalRequest(
                withdraw_uuid=made.withdraw_uuid, external_tx_id=f"mark-{made.withdraw_uuid}"
            )
        )


@pytest.fixture
def shop(till: Till) -> Shop:
    return Shop(till.desk, till.desk.open_shop(till.shop.currency), till.method)


@pytest.fixture(scope="module")
def treasury(staff: Staff) -> Person:
    return staff("treasury")


def form(person: Person, **query: str) -> dict[str, str]:
    """The fields that a new form has, those that are typed too."""
    page = person.get("/corrections/new", params=query)
    assert page.status_code == 200, text_of(page)
    typed = re.findall(r'<input id="(\w+)"[^>]*? value="([^"]*)"', page.text)
    return hidden(page.text, "/corrections/new") | {name: unescape(value) for name, value in typed}


def test_a_wrong_confirmation_is_taken_back_by_two_once_and_becomes_a_debt(
    shop: Shop, treasury: Person, staff: Staff, house: House
) -> None:
    invoice = shop.credited()
    credit = shop.balance().available
    shop.withdrawn()
    fields = form(treasury, kind="reversal", invoice=invoice)
    assert fields["amount"] == credit, "what can be taken back is filled in"
    missing = treasury.post("/corrections/new", fields)
    assert missing.status_code == 422
    assert "Reason: give it." in text_of(missing) and "Evidence: give it." in text_of(missing)
    much = text_of(treasury.post("/corrections/new", fields | WHY | {"amount": "1000000"}))
    assert f"At most {credit} USDT can be taken back" in much
    seen = treasury.post("/corrections/new", fields | WHY)
    assert f"Becomes a debt {credit}" in text_of(seen) and "Another person approves it" in text_of(seen)
    agreed = hidden(seen.text, "/corrections/new")
    asked = treasury.post("/corrections/new", agreed)
    assert "The request is recorded." in text_of(asked), text_of(asked)
    assert treasury.post("/corrections/new", agreed).status_code == 200, "a double click"
    (path,) = set(APPROVAL.findall(asked.text))
    assert shop.balance().owed == "0.000000"
    waits = treasury.get(f"/invoices/{invoice}")
    assert f"Second person asked by {treasury.email}" in text_of(waits) and f'href="{path}"' in waits.text

    other = staff("admin")
    page = other.get(path)
    at_button = page.text.index(f'action="{path}/approve"')
    for each in ("The merchant’s money", "Earlier corrections of this merchant", "The deal"):
        assert page.text.index(each) < at_button, "first the evidence"
    assert "Evidence: “BR-77”" in text_of(page) and f"Becomes a debt {credit}" in text_of(page)
    assert "Approved and done." in text_of(other.post(f"{path}/approve"))
    assert shop.balance().owed == credit
    assert f"owes {credit}" in text_of(treasury.get(f"/merchants/{shop.shop.merchant_id}/view"))
    assert shop.shop.merchant_id in treasury.get("/debts").text
    page = treasury.get(f"/invoices/{invoice}")
    story = text_of(page)
    assert "More came" in story and "kind=reversal" not in page.text, "nothing is left to take back"
    member = house.person("finance", merchant=shop.shop.merchant_id)
    assert "/refunds/new" not in member.get(f"/invoices/{invoice}").text
    assert f"Became a debt by {other.email} amount {credit}" in story and "The bank took it back" in story
    assert f"Second person approved by {other.email}" in story, story
    over = treasury.get("/corrections/new", params={"kind": "reversal", "invoice": invoice})
    assert "At most 0.000000" in text_of(over)

    (line,) = other.rows(f"/corrections.csv?merchant={shop.shop.merchant_id}")
    assert (line["kind"], line["amount"], line["owed"], line["evidence"]) == (
        "reversal",
        credit,
        credit,
        "BR-77",
    )
    assert other.rows(f"/corrections.csv?kind=surplus&merchant={shop.shop.merchant_id}") == []
    shop.credited()
    assert shop.balance().owed == "0.000000", "the next credit pays the debt"
    statement = text_of(treasury.get(f"/merchants/{shop.shop.merchant_id}/statement"))
    assert "Paid the debt" in statement and "Became a debt" in statement


def test_late_money_is_credited_at_the_locked_rate_and_the_case_is_named(
    shop: Shop, treasury: Person, staff: Staff
) -> None:
    case = str(shop.late("Paid"))
    link = re.findall(
        r'href="(/corrections/new\?kind=late_credit[^"]+)"', treasury.get(f"/cases/{case}").text
    )
    query = dict(re.findall(r"(\w+)=([^&]+)", unescape(link[0]).partition("?")[2]))
    assert query["case"] == case
    fields = form(treasury, **query) | WHY
    seen = treasury.post("/corrections/new", fields | {"received": "1 000,00"})
    assert "locked by the deal" in text_of(seen) and "It is done at once." in text_of(seen), text_of(seen)
    assert re.search(r"Commission taken off before: customer \S+ %, merchant \S+ %", text_of(seen))
    other_rate = treasury.post(
        "/corrections/new", form(treasury, **query) | WHY | {"received": "1000", "rate": "91"}
    )
    assert "not 90.00" in text_of(other_rate) and "Another person approves it" in text_of(other_rate)
    agreed = hidden(seen.text, "/corrections/new")
    changed = treasury.post("/corrections/new", agreed | {"expected": "1.000000"})
    assert (changed.status_code, "by now, so nothing was done" in text_of(changed)) == (422, True)
    made = treasury.post("/corrections/new", agreed)
    assert "The balance is corrected." in text_of(made) and "Credited: 1,000.00" in text_of(made)
    assert "Credit it" not in text_of(made)
    treasury.post("/corrections/new", agreed)
    assert shop.balance().available == agreed["expected"], "once, however often it is sent"
    surplus = form(treasury, kind="surplus", invoice=shop.credited()) | WHY | {"came": "100000"}
    for evidence, warns in (("br 77", True), ("BR-78", False)):
        twice = text_of(treasury.post("/corrections/new", surplus | {"evidence": evidence}))
        assert ("This evidence stands at another credit already" in twice) is warns, twice
    (line,) = treasury.rows(f"/corrections.csv?merchant={shop.shop.merchant_id}")
    assert (line["kind"], line["case_number"], line["received_amount"]) == ("late_credit", case, "1000.00")
    page = staff("desk").get(f"/cases/{case}").text
    assert (
        'value="credit" required checked' in page
        and "arrived and was credited to the shop.</textarea>" in page
    )


def test_a_case_waits_for_the_second_person_of_its_credit_and_ends_only_as_its_money_did(
    shop: Shop, treasury: Person, staff: Staff, house: House
) -> None:
    case, desk = str(shop.late("Paid")), staff("desk")
    invoice = shop.desk.deals.GetCase(GetCaseRequest(number=int(case))).case.invoice_id
    fields = form(treasury, kind="late_credit", invoice=invoice, case=case) | WHY
    seen = treasury.post("/corrections/new", fields | {"received": "900", "rate": "91"})

    def answer(end: str) -> Response:
        return desk.post(f"/cases/{case}/answer", {"outcome": "Done", "ended_as": end})

    for end, says in (("credit", "press “Credit it” first"), ("return", "press “Return it” first")):
        refused = answer(end)
        assert (refused.status_code, says in text_of(refused)) == (422, True)
    asked = treasury.post("/corrections/new", hidden(seen.text, "/corrections/new"))
    assert "waits for a second person" in text_of(asked)
    page = text_of(desk.get(f"/cases/{case}"))
    assert "The correction waits for a second person" in page and "Return it" not in page
    assert "before a second person has approved it" in text_of(answer("credit"))
    (path,) = set(APPROVAL.findall(asked.text))
    member = house.person("finance", merchant=shop.shop.merchant_id)
    member.post(f"/cases/{case}/answer", {"answer": "credit", "text": "Ours"})
    seen_by_other = text_of(staff("admin").get(path))
    for each in (f"Case {case}", "The customer writes Paid", f"{member.email} answered", "credit it Ours"):
        assert each in seen_by_other, seen_by_other
    staff("admin").post(f"{path}/approve")
    assert answer("return").status_code == 422
    assert "The answer is given to the customer." in text_of(answer("credit"))


def test_of_what_came_beyond_the_amount_the_rest_is_credited(shop: Shop, treasury: Person) -> None:
    invoice = shop.credited()
    before = shop.balance().available
    fields = form(treasury, kind="surplus", invoice=invoice) | WHY
    less = treasury.post("/corrections/new", fields | {"came": "1"})
    assert (less.status_code, "are paid already: more came in all" in text_of(less)) == (422, True)
    seen = treasury.post("/corrections/new", fields | {"came": "100000"})
    assert "Counts for the order" in text_of(seen) and "of 100,000.00 that came" in text_of(seen), text_of(
        seen
    )
    assert shop.balance().available == before


def test_what_comes_after_a_part_payment_is_over_the_part_and_each_list_says_what_came(
    shop: Shop, treasury: Person, staff: Staff
) -> None:
    deal = shop.marked(callback_url="https://shop.example/hook")
    shop.desk.accept_part(deal.deal_id, "500.00")
    settled(lambda: shop.balance().credited != "0.000000", "the credit")
    fields = form(treasury, kind="surplus", invoice=deal.invoice_id) | WHY
    seen = treasury.post("/corrections/new", fields | {"came": "550"})
    assert f"Counts for the order 500.00 {deal.currency_code} as before" in text_of(seen), text_of(seen)
    assert f"Over 50.00 {deal.currency_code} of 550.00 that came" in text_of(seen)
    treasury.post("/corrections/new", hidden(seen.text, "/corrections/new"))
    counted = shop.desk.deals.GetDeal(GetDealRequest(deal_id=deal.deal_id)).deal.adjusted_amount
    statement = treasury.rows(f"/merchants/{shop.shop.merchant_id}/statement.csv")
    assert [
        [each[name] for name in ("amount_asked", "amount_received", "order_paid")] for each in statement
    ] == [[deal.amount_to_send, "500.00", counted], ["", "50.00", ""]]
    listed = staff("desk").get("/webhooks", params={"state": "all", "invoice": deal.invoice_id})
    assert f"{counted} {deal.currency_code}" in text_of(listed), "the amount of the webhook"


def test_what_holds_money_is_named_before_a_debt_is_made(shop: Shop, treasury: Person, staff: Staff) -> None:
    first, second = shop.credited(), shop.credited()
    made = shop.shop.post(f"/api/v1/invoices/{second}/refunds", json={"external_id": "refund-1"})
    assert made.status_code == 201, made.text
    fields = form(treasury, kind="reversal", invoice=first) | WHY
    seen = treasury.post("/corrections/new", fields)
    asked = treasury.post("/corrections/new", hidden(seen.text, "/corrections/new"))
    (path,) = set(APPROVAL.findall(asked.text))
    for page in (seen, staff("admin").get(path)):
        assert f"/refunds/{made.json()['data']['refund_id']}" in page.text, text_of(page)
        assert "refund, waiting for account" in text_of(page)
    of_refund = f"/refunds/{made.json()['data']['refund_id']}"
    assert "waits for a second person" not in text_of(treasury.get(of_refund)), "it is of another invoice"
    third = shop.credited()
    made = shop.shop.post(f"/api/v1/invoices/{third}/refunds", json={"external_id": "r-2", "amount": "1.00"})
    part = form(treasury, kind="reversal", invoice=third) | WHY | {"amount": "1"}
    seen = treasury.post("/corrections/new", part)
    treasury.post("/corrections/new", hidden(seen.text, "/corrections/new"))
    of_refund = f"/refunds/{made.json()['data']['refund_id']}"
    assert "A correction of this invoice waits for a second person" in text_of(treasury.get(of_refund))


def test_a_balance_is_corrected_by_hand_in_both_directions(
    shop: Shop, treasury: Person, staff: Staff
) -> None:
    for kind, verb in (("manual_credit", "Credit 7.500000"), ("manual_debit", "Take 10.000000")):
        fields = form(treasury, merchant=shop.shop.merchant_id) | {"kind": kind, "reason": "As agreed"}
        fields["amount"] = verb.split()[1]
        agreed = hidden(treasury.post("/corrections/new", fields).text, "/corrections/new")
        (path,) = set(APPROVAL.findall(treasury.post("/corrections/new", agreed).text))
        assert verb in text_of(staff("admin").get(path))
        assert "Approved and done." in text_of(staff("admin").post(f"{path}/approve"))
    assert (shop.balance().available, shop.balance().owed) == ("0.000000", "2.500000")
    assert staff("desk").get(f"/corrections/new?merchant={shop.shop.merchant_id}").status_code == 403
    lost = treasury.post(
        "/corrections/new",
        form(treasury)
        | {"kind": "manual_credit", "reason": "x", "amount": "1", "merchant": "nobody-of-this-name"},
    )
    assert (lost.status_code, "no merchant has this id" in text_of(lost).lower()) == (422, True)
    assert treasury.get("/corrections/new?kind=other").status_code == 404


def test_a_mistake_is_taken_back_in_the_browser_by_two(
    shop: Shop, treasury: Person, staff: Staff, open_page: Open
) -> None:
    deal = shop.marked()
    page = staff.page(open_page, "desk", "treasury", viewport={"width": 1440, "height": 900})
    desk = staff("desk", "treasury").url
    page.goto(f"{desk}/deals/{deal.deal_id}")
    page.get_by_text("Confirm", exact=True).click()
    page.get_by_role("button", name="Yes, the money came").click()
    settled(lambda: shop.balance().credited != "0.000000", "the credit")
    shop.withdrawn()
    page.goto(f"{desk}/deals/{deal.deal_id}")
    looks_right(page, "deal-confirmed")
    page.get_by_role("link", name="Take back").click()
    looks_right(page, "correction-new")
    page.get_by_label("Reason").fill("Confirmed by mistake")
    page.get_by_label("Evidence").fill("Statement of today: no such transfer")
    page.get_by_role("button", name="Look at it").click()
    looks_right(page, "correction-preview")
    page.get_by_role("button", name="Request it").click()
    page.get_by_role("link", name="The request").click()
    address = page.url
    second = staff.page(open_page, "admin", viewport={"width": 1440, "height": 900})
    second.goto(address)
    looks_right(second, "approval-of-correction")
    second.get_by_text("Approve", exact=True).click()
    second.get_by_role("button", name="Approve and do it").click()
    expect(second.get_by_role("status")).to_have_text("Approved and done.")
    for name, path in {
        "corrections": f"/corrections?merchant={shop.shop.merchant_id}",
        "debts": "/debts",
        "merchant-that-owes": f"/merchants/{shop.shop.merchant_id}/view",
        "invoice-taken-back": f"/invoices/{deal.invoice_id}",
    }.items():
        page.goto(desk + path)
        looks_right(page, name)
    expect(page.locator("main")).to_contain_text("Confirmed by mistake")
    shop.credited()
    page.goto(f"{desk}/merchants/{shop.shop.merchant_id}/view")
    expect(page.get_by_role("alert")).to_have_count(0)
