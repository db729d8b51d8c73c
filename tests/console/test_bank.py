"""The desk's pages of bank lines: a file, proposals, one step for several, a line that an operator links or ignores."""

import re
from decimal import Decimal
from html import unescape
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import requests
from playwright.sync_api import expect

from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.withdrawals.v1 import refunds_pb2
from kit.base.codes import in_groups
from kit.base.money import money_text
from tests.bank.shapes import camt, entry
from tests.console.conftest import Open, Staff
from tests.console.house import House, Person, hidden, text_of
from tests.console.looks import looks_right
from tests.console.till import Till

READ_SECONDS: Final = 30


@pytest.fixture(scope="module")
def operator(staff: Staff) -> Person:
    return staff("desk")


@pytest.fixture(scope="module")
def bank_till(till: Till) -> Till:
    """A shop whose method takes references, with one account."""
    method = till.desk.method(till.shop.currency, takes_reference=True)
    till.desk.requisite(method)
    return Till(till.desk, till.desk.open_shop(till.shop.currency), method)


def account_of(till: Till, deal: pb.Deal) -> str:
    return till.desk.deals.GetDeal(pb.GetDealRequest(deal_id=deal.deal_id)).requisite.account


def statement(till: Till, *paid: tuple[pb.Deal, str, str]) -> str:
    """A file with a line for each deal: the deal, the amount and the text of its line."""
    (account,) = {account_of(till, deal) for deal, _, _ in paid}
    entries = (
        entry(amount, f"<RmtInf><Ustrd>{text} {uuid4().hex}</Ustrd></RmtInf>", currency=deal.currency_code)
        for deal, amount, text in paid
    )
    plain = re.sub(r"\W", "", account)
    return camt(*entries, account=f"<Othr><Id>{plain}</Id></Othr>").replace(
        "<Ccy>EUR</Ccy>", f"<Ccy>{paid[0][0].currency_code}</Ccy>"
    )


def imported(operator: Person, content: str) -> str:
    """The page of the file once it was read."""
    page = operator.post("/bank/files", files={"file": ("statement.xml", content.encode())})
    path = urlsplit(page.url).path
    wait_until(
        lambda: "new, imported" in text_of(operator.get(path)), "the file", timeout_seconds=READ_SECONDS
    )
    return path


def lines_of(operator: Person, state: str, text: str) -> list[str]:
    """The ids of the lines in this state with this text."""
    return [row["line_id"] for row in operator.rows("/bank.csv", state=state) if text in row["text"]]


def waiting(operator: Person, state: str, text: str) -> str:
    wait_until(lambda: bool(lines_of(operator, state, text)), f"a {state} line", timeout_seconds=READ_SECONDS)
    return lines_of(operator, state, text)[0]


def test_several_lines_are_confirmed_in_one_step_with_their_sum(bank_till: Till, operator: Person) -> None:
    first, second = bank_till.marked(), bank_till.chosen()
    mark = uuid4().hex[:8]
    imported(
        operator,
        statement(
            bank_till,
            (first, first.amount_fiat, f"{in_groups(first.reference)} {mark}"),
            (second, second.amount_fiat, f"paid {second.reference.lower()} {mark}"),
            (second, second.amount_fiat, f"again {second.reference.lower()} {mark}"),
        ),
    )
    waiting(operator, "proposed", mark)
    ids = lines_of(operator, "proposed", mark)
    assert len(ids) == 3
    listed = operator.get(f"/bank?account={account_of(bank_till, first)}")
    assert text_of(listed).count("2 lines for this deal") == 2
    asked = operator.post("/bank/several", {"act": "confirm", "line": ids})
    assert "Confirm 2 deals?" in text_of(asked)
    assert "1 further line is left out" in text_of(asked)
    shown = re.findall(r'name="line" value="([^"]+)"', asked.text)
    done = operator.post("/bank/several", {"act": "confirm", "line": shown, "sure": "yes"})
    assert "The deals are confirmed, each paid by its line." in text_of(done)
    again = text_of(operator.post("/bank/several", {"act": "confirm", "line": [*ids, "x"], "sure": "yes"}))
    assert "Not all of them 0 are confirmed." in again and "It does not fit any more" in again
    assert [bank_till.state(deal) for deal in (first, second)] == ["successfully_paid"] * 2
    ids = lines_of(operator, "matched", mark)
    assert len(ids) == 2
    assert "The line can’t pay: it is used up." in text_of(operator.post(f"/bank/{ids[0]}/confirm"))
    for path in (f"/invoices/{first.invoice_id}", f"/deals/{first.deal_id}"):
        page = operator.get(path)
        assert f"Paid by bank line of {money_text(first.amount_fiat, first.currency_code)}" in text_of(page)
        assert "2026-01-02" in text_of(page)
        assert any(f'href="/bank/{id}"' in page.text for id in ids)


def test_a_line_without_a_deal_is_linked_by_a_reference_or_ignored(bank_till: Till, operator: Person) -> None:
    deal, mark = bank_till.chosen(), uuid4().hex[:8]
    more = f"{float(deal.amount_fiat) + 5:.2f}"
    imported(
        operator, statement(bank_till, (deal, more, f"my order {mark}"), (deal, "3.00", f"interest {mark}"))
    )
    waiting(operator, "unmatched", f"interest {mark}")
    (line,) = lines_of(operator, "unmatched", f"my order {mark}")
    wrong = operator.post("/bank/several", {"act": "link", "line": line, "deal": "nothing"})
    assert "No deal has this reference or id" in text_of(wrong)
    operator.post("/bank/several", {"act": "link", "line": line, "deal": in_groups(deal.reference)})
    assert bank_till.state(deal) == "successfully_paid"
    rest = text_of(operator.get(f"/bank/{line}"))
    assert "Left of it 5.00" in rest and "rest without a deal" in rest and "No deal fits the rest." in rest
    (interest,) = lines_of(operator, "unmatched", f"interest {mark}")
    assert "The line is ignored." in text_of(
        operator.post(f"/bank/{interest}/ignore", {"reason": "interest"})
    )
    other = bank_till.chosen()
    old = operator.post("/bank/several", {"act": "link", "line": interest, "deal": other.deal_id})
    assert "The line can’t pay: it is ignored." in text_of(old)
    assert bank_till.state(other) == "awaiting_payment"
    assert "The line is looked at anew." in text_of(operator.post(f"/bank/{interest}/restore"))
    assert waiting(operator, "unmatched", f"interest {mark}") == interest


def test_a_deal_that_was_confirmed_by_hand_gets_its_line_and_a_wrong_amount_is_told(
    bank_till: Till, operator: Person
) -> None:
    confirmed, short, mark = bank_till.paid(), bank_till.chosen(), uuid4().hex[:8]
    imported(
        operator,
        statement(
            bank_till,
            (confirmed, confirmed.amount_fiat, f"{confirmed.reference} {mark} linked"),
            (short, "1.00", f"{short.reference} {mark} short"),
        ),
    )
    line = waiting(operator, "proposed", f"{mark} linked")
    assert f'href="/deals/{confirmed.deal_id}"' in operator.get("/bank/unlinked?period=today").text
    assert "confirmed without a line" in text_of(operator.get("/bank/days"))
    assert "confirmed without a line" in text_of(operator.get(f"/bank/{line}"))
    assert "The line is linked to its deal." in text_of(operator.post(f"/bank/{line}/confirm"))
    assert lines_of(operator, "matched", f"{mark} linked") == [line]
    assert f'href="/deals/{confirmed.deal_id}"' not in operator.get("/bank/unlinked?period=today").text
    told = text_of(operator.get(f"/bank/{waiting(operator, 'proposed', f'{mark} short')}"))
    assert "another amount" in told and "“Paid less”. Link this line here when that is approved." in told
    seen = text_of(operator.get(f"/deals/{short.deal_id}"))
    assert f"A bank line of {money_text('1.00', short.currency_code)}" in seen
    assert "waits for this deal" in seen
    assert bank_till.state(short) == "awaiting_payment"


def test_the_line_of_a_deal_that_was_paid_by_hand_is_linked_before_its_rest_is_money_beyond(
    bank_till: Till, staff: Staff
) -> None:
    person, mark = staff("desk", "treasury"), uuid4().hex[:8]
    deal = bank_till.chosen()
    bank_till.desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal.deal_id))
    above = f"{Decimal(deal.amount_fiat) + 5:.2f}"
    imported(person, statement(bank_till, (deal, above, f"{deal.reference} {mark}")))
    line = waiting(person, "proposed", mark)
    page = person.get(f"/bank/{line}")
    link = f"Link {money_text(deal.amount_fiat, deal.currency_code)} of it to the deal"
    assert link in text_of(page) and "no line is linked to it yet" in text_of(page)
    assert text_of(page).index(link) < text_of(page).index("Only if the money of the deal came otherwise")
    person.post("/bank/several", hidden(page.text, "/bank/several"))
    wait_until(
        lambda: link not in person.get(f"/bank/{line}").text, "the payment", timeout_seconds=READ_SECONDS
    )
    (path,) = links_of(person.get(f"/bank/{line}").text, "More came")
    assert f'value="{above}"' in person.get(path).text, "what came in all"


def links_of(page: str, words: str) -> list[str]:
    """The addresses of the links with these words."""
    return [unescape(each) for each in re.findall(rf'href="([^"]+)">{words}', page)]


def corrected(person: Person, form: str, **typed: str) -> str:
    """The page after the correction of the form was agreed to."""
    fields = hidden(form, "/corrections/new") | {"reason": "By hand", "evidence": uuid4().hex} | typed
    seen = person.post("/corrections/new", fields)
    return text_of(person.post("/corrections/new", hidden(seen.text, "/corrections/new")))


def test_a_line_fills_in_the_forms_for_money_that_fits_no_open_deal(
    bank_till: Till, staff: Staff, house: House
) -> None:
    person, mark = staff("desk", "treasury"), uuid4().hex[:8]
    short, more, ended, paid = (bank_till.chosen() for _ in range(4))
    bank_till.desk.checkout.CancelCheckout(pb.CancelCheckoutRequest(invoice_id=ended.invoice_id))
    above = f"{Decimal(more.amount_fiat) + 5:.2f}"
    lines = (
        (short, "1.00", f"{short.reference} {mark} short"),
        (more, above, f"{more.reference} {mark} more"),
        (ended, "7.00", f"{ended.reference} {mark} ended"),
        (ended, "7.00", f"{ended.reference} {mark} again"),
        (paid, paid.amount_fiat, f"{paid.reference} {mark} paid"),
    )
    imported(person, statement(bank_till, *lines))
    words = ("short", "more", "ended", "again", "paid")
    found = {word: waiting(person, "proposed", f"{mark} {word}") for word in words}

    (path,) = links_of(person.get(f"/bank/{found['short']}").text, "Paid less")
    deal = person.get(path).text
    assert "can end with" in deal and f'value="Bank line {found["short"]}: 1.00' in deal

    person.post("/bank/several", {"act": "link", "line": found["more"], "deal": more.deal_id})
    assert bank_till.state(more) == "successfully_paid"
    wait_until(
        lambda: bool(links_of(person.get(f"/bank/{found['more']}").text, "More came")),
        "the rest of the line",
        timeout_seconds=90,
    )
    (path,) = links_of(person.get(f"/bank/{found['more']}").text, "More came")
    form = person.get(path).text
    assert f'value="{above}"' in form and f"Bank line {found['more']}" in form
    assert links_of(person.get(f"/invoices/{more.invoice_id}").text, "Return a surplus")
    (path,) = links_of(person.get(f"/bank/{found['more']}").text, "Return a surplus")
    asked = person.get(path).text
    assert 'name="amount" value="5.00"' in re.sub(r' (id|type|required|inputmode)(="[^"]*")?', "", asked)
    assert f'href="/bank/{found["more"]}"' in asked and "came beyond the amount of order" in asked
    fields = hidden(asked, "/refunds/new") | {"amount": "5.00", "account": "", "reason": "Over"}
    house.end_step_up(person.email)
    proof = text_of(person.post("/refunds/new", fields))
    assert "Confirm that it is you" in proof and "Kind of account" not in proof
    house.step_up(person)
    person.post("/refunds/new", fields | {"amount": "0"})
    assert found["more"] in lines_of(person, "proposed", mark), "refused, so the line waits as before"
    assert "Refund requested" in text_of(person.post("/refunds/new", fields))
    kept = person.get(f"/bank/{found['more']}")
    assert "Ignored because Returned as money of order" in text_of(kept)
    assert "Used for a return" in text_of(kept) and "Put it back" not in kept.text
    stays = text_of(person.post(f"/bank/{found['more']}/restore"))
    assert "Its money is credited or returned" in stays and found["more"] in lines_of(person, "ignored", mark)
    for done in (f"/bank/{found['more']}", f"/invoices/{more.invoice_id}"):
        page = person.get(done).text
        assert not links_of(page, "More came") and not links_of(page, "Return a surplus"), done

    late = f"/bank/{found['ended']}"
    (path,) = links_of(person.get(late).text, "Credit it")
    assert not links_of(person.get(late).text, "Return it")
    came = f"{money_text('7.00', ended.currency_code)} came on 2026-01-02."
    assert came in person.get(late).text
    assert "The case is open." in text_of(person.post(f"{late}/case", {"note": came}))
    page = person.get(late).text
    (case,) = links_of(page, r"Late money \d")
    assert "Open a case" not in page and links_of(page, "Return it")
    (path,) = links_of(page, "Credit it")
    assert f"case={case.removeprefix('/cases/')}" in path
    told = person.get(case)
    assert "The operator writes" in text_of(told) and came in text_of(told)
    assert all(f'href="/bank/{found[each]}">A bank line of' in told.text for each in ("ended", "again"))
    assert links_of(told.text, "Credit or return its bank line") == [late]
    form = person.get(path).text
    assert 'value="7.00"' in form and f"Bank line {found['ended']}" in form
    fields = hidden(form, "/corrections/new") | {"received": "7.00", "reason": "Late", "evidence": mark}
    seen = person.post("/corrections/new", fields | {"left": "8.00"})
    changed = person.post("/corrections/new", hidden(seen.text, "/corrections/new"))
    assert "The line is proposed, and 7.00 of it is left." in text_of(changed)
    seen = person.post("/corrections/new", fields)
    agreed = hidden(seen.text, "/corrections/new")
    person.post("/corrections/new", agreed | {"expected": "0.000001"})
    house.end_step_up(person.email)
    assert "Confirm that it is you" in text_of(person.post("/corrections/new", agreed))
    house.step_up(person)
    assert found["ended"] in lines_of(person, "proposed", mark), "nothing was credited, so the line waits"
    assert "corrected" in text_of(person.post("/corrections/new", agreed)), "the same form goes on"
    twice = person.get(f"/bank/{found['again']}")
    assert f"Late money credited already, {came.partition(' came')[0]}: " in text_of(twice)
    assert 'value="Late money credited by correction ' in twice.text
    other = bank_till.chosen()
    old = person.post("/bank/several", {"act": "link", "line": found["ended"], "deal": other.deal_id})
    assert "The line can’t pay: it is kept for a correction or a return." in text_of(old)
    assert bank_till.state(other) == "awaiting_payment"

    credited = person.get(late)
    assert "Used for a correction of its invoice" in text_of(credited) and "Put it back" not in credited.text
    assert "Its money is credited or returned" in text_of(person.post(f"{late}/restore"))
    assert found["ended"] in lines_of(person, "ignored", mark), "so it pays nothing beside that"
    back = statement(bank_till, (ended, "7.00", f"{mark} gone")).replace("CRDT", "DBIT")
    imported(person, back.replace("<Sts>", "<RvslInd>true</RvslInd><Sts>"))
    (path,) = links_of(person.get(f"/bank/{waiting(person, 'all', f'{mark} gone')}").text, "Take back")
    assert f"invoice={ended.invoice_id}" in path and "kind=reversal" in path

    person.post(f"/bank/{found['paid']}/confirm")
    back = statement(bank_till, (paid, paid.amount_fiat, f"{mark} back")).replace("CRDT", "DBIT")
    imported(person, back.replace("<Sts>", "<RvslInd>true</RvslInd><Sts>"))
    taken = f"/bank/{waiting(person, 'all', f'{mark} back')}"
    (path,) = links_of(person.get(taken).text, "Take back")
    assert f"invoice={paid.invoice_id}" in path and "kind=reversal" in path
    form = person.get(path).text
    assert "Bank line" in form
    (amount,) = re.findall(r'name="amount"[^>]* value="([^"]+)"', form)
    assert "The request is recorded." in corrected(person, form, amount=amount)
    page = person.get(taken).text
    assert links_of(page, "A correction waits") and not links_of(page, "Take back")


def test_money_that_went_out_is_the_refund_that_a_person_says(bank_till: Till, operator: Person) -> None:
    deal, mark = bank_till.paid(), uuid4().hex[:8]
    refunds = bank_till.desk.refunds
    asked = refunds_pb2.RequestRefundRequest(
        invoice_id=deal.invoice_id,
        external_id=mark,
        origin=refunds_pb2.REFUND_ORIGIN_SURPLUS,
        refund_amount="77.31",
        account=refunds_pb2.RefundAccount(kind="free", account="1", holder="Ann Bell"),
    )
    refund = refunds.RequestRefund(asked).refund.refund_id
    refunds.SendRefund(refunds_pb2.SendRefundRequest(refund_id=refund))
    imported(operator, statement(bank_till, (deal, "77.31", f"{mark} back")).replace("CRDT", "DBIT"))
    line = f"/bank/{waiting(operator, 'outgoing', f'{mark} back')}"
    page = operator.get(line)
    assert f"/refunds/{refund}" in page.text and " To " in text_of(page) and ", ," not in text_of(page)
    assert "counts it so" in text_of(operator.post(f"{line}/refund", {"refund": refund}))
    listed = operator.get("/bank?state=outgoing")
    assert "Went out To Text" in text_of(listed) and f"/refunds/{refund}" in listed.text
    account = re.sub(r"\W", "", account_of(bank_till, deal))
    (day,) = operator.rows("/bank/days.csv", since="2026-01-02", until="2026-01-02", account=account)
    assert day["refunds"] == "77.31"
    operator.post(f"{line}/refund", {"refund": ""})
    assert "It is this refund" in text_of(operator.get(line))


def test_a_file_that_is_no_statement_is_refused_with_a_sentence(operator: Person) -> None:
    page = operator.post("/bank/files", files={"file": ("a.xml", b"<html>")})
    wait_until(
        lambda: "Nothing of it was taken." in text_of(operator.get(urlsplit(page.url).path)),
        "the file",
        timeout_seconds=READ_SECONDS,
    )
    assert "File" in text_of(operator.post("/bank/files", files={"file": ("b.xml", b"")}))


def test_the_invented_bank_of_a_trial_sends_lines_for_open_deals(bank_till: Till, operator: Person) -> None:
    deal = bank_till.marked()
    assert "Let the bank send today’s statement" in text_of(operator.get("/bank"))
    path = urlsplit(operator.post("/bank/demo-statement").url).path
    wait_until(
        lambda: "new, imported" in text_of(operator.get(path)), "the file", timeout_seconds=READ_SECONDS
    )
    account = account_of(bank_till, deal)
    wait_until(
        lambda: (
            f"/invoices/{deal.invoice_id}" in operator.get(f"/bank?state=proposed&account={account}").text
        ),
        "its proposal",
        timeout_seconds=READ_SECONDS,
    )


def test_only_the_role_desk_changes_lines(staff: Staff) -> None:
    reader = staff("auditor")
    assert "Let the bank" not in reader.get("/bank").text
    assert reader.post("/bank/demo-statement").status_code == 403
    assert "Import a statement" not in reader.get("/bank/files").text
    assert reader.post("/bank/files", files={"file": ("a.xml", b"<a/>")}).status_code == 403


def test_the_pages_look_right_and_a_key_confirms_the_first_line(
    bank_till: Till, operator: Person, staff: Staff, open_page: Open
) -> None:
    first, short, mark = bank_till.chosen(), bank_till.chosen(), uuid4().hex[:8]
    lines = (
        (short, "2.00", f"{short.reference} {mark}"),
        (first, first.amount_fiat, f"{first.reference} {mark}"),
    )
    file = imported(operator, statement(bank_till, *lines))
    waiting(operator, "proposed", first.reference)
    page = staff.page(open_page, "desk")
    ids = lines_of(operator, "proposed", mark)
    account = re.sub(r"\W", "", account_of(bank_till, first))
    days = f"/bank/days?since=2026-01-02&until=2026-01-02&account={account}"
    assert f"2026-01-02 {account[:4]}" in text_of(operator.get(days))
    assert f"\r\n2026-01-02,{account}," in operator.get(days.replace("days?", "days.csv?")).text
    pages = {
        "bank": "/bank",
        "bank-days": days,
        "bank-unlinked": "/bank/unlinked",
        "bank-files": "/bank/files",
        "bank-file": file,
        "bank-line": f"/bank/{ids[-1]}",
    }
    for name, path in pages.items():
        page.goto(operator.url + path)
        looks_right(page, name)
    page.goto(operator.url + f"/bank/{lines_of(operator, 'proposed', first.reference)[0]}")
    page.keyboard.press("c")
    page.wait_for_url("**/bank?*")
    assert bank_till.state(first) == "successfully_paid"


def test_a_line_of_a_connector_that_is_taken_back_after_it_paid_waits_until_it_is_settled(
    bank_till: Till, operator: Person, staff: Staff, open_page: Open
) -> None:
    deal, name = bank_till.chosen(), f"feed-{uuid4().hex[:8]}"
    account, stack = account_of(bank_till, deal), bank_till.desk.stack
    accounts = ("--account", f"{account}:{deal.currency_code}", "--silence", "900")
    key = stack.cli("bank", "connectors", "create", name, *accounts)["key"]

    def post(status: str, of: pb.Deal = deal) -> str:
        line = {"source_id": of.deal_id, "account": account, "direction": "credit", "amount": of.amount_fiat}
        line |= {"currency_code": of.currency_code, "status": status, "booked_on": "2026-01-02"}
        sent = {"lines": [line | {"text": of.reference}]}
        answer = requests.post(
            f"{stack.url}/feed/v1/lines", json=sent, headers={"X-Api-Key": key}, timeout=15
        )
        (outcome,) = answer.json()["data"]
        return str(outcome["line_id"])

    other = bank_till.chosen()
    gone = post("booked", other)
    assert waiting(operator, "proposed", other.reference) == gone
    post("reversed", other)
    for old in (
        operator.post(f"/bank/{gone}/confirm"),
        operator.post("/bank/several", {"act": "link", "line": gone, "deal": other.deal_id}),
    ):
        assert "The line can’t pay: it is taken back by the bank." in text_of(old)
    assert bank_till.state(other) == "awaiting_payment"

    line = post("booked")
    assert waiting(operator, "proposed", deal.reference) == line
    operator.post(f"/bank/{line}/confirm")
    assert bank_till.state(deal) == "successfully_paid"
    assert post("reversed") == line
    told = operator.get(f"/bank/{line}")
    assert "The bank took this money back after it had paid" in text_of(told)
    reversal = f"/corrections/new?kind=reversal&amp;invoice={deal.invoice_id}"
    assert reversal in staff("treasury").get(f"/bank/{line}").text
    assert "Bank lines taken back after they paid" in text_of(operator.get("/"))
    page = staff.page(open_page, "desk")
    for shown, path in {"bank-connectors": "/bank/connectors", "bank-taken-back": f"/bank/{line}"}.items():
        page.goto(operator.url + path)
        looks_right(page, shown)
    assert name in text_of(operator.get("/bank/connectors"))
    operator.post(f"/bank/{line}/ignore", {"reason": "reversed by a correction"})
    assert lines_of(operator, "reversed", deal.reference) == []


def test_an_admin_makes_a_key_of_a_connector_that_is_shown_once_and_revokes_it(
    staff: Staff, house: House, open_page: Open
) -> None:
    admin, name, url = staff("admin"), f"made-{uuid4().hex[:8]}", f"{house.stack.url}/feed/v1/lines"
    fields = {"name": name, "accounts": "DE89 3704 0044 0532 0130 00 EUR\n77:XTS", "silence_minutes": "15"}
    assert staff("desk").post("/bank/connectors", fields).status_code == 403
    assert "Make a key" not in staff("desk").get("/bank/connectors").text
    for field, wrong in {"name": "a b", "accounts": "DE1", "silence_minutes": "soon"}.items():
        refused = admin.post("/bank/connectors", fields | {field: wrong})
        assert f'aria-describedby="{field}-hint {field}-error"' in refused.text and wrong in refused.text
    fields |= {"newest": hidden(admin.get("/bank/connectors").text, "/bank/connectors")["newest"]}
    house.end_step_up(admin.email)
    assert "Confirm that it is you" in text_of(admin.post("/bank/connectors", fields))
    house.step_up(admin)
    (key,) = re.findall(r'value="(fgc_[^"]+)"', admin.post("/bank/connectors", fields).text)
    assert "No key was made now" in text_of(admin.post("/bank/connectors", fields)), (
        "the page is loaded again"
    )
    assert key not in admin.get("/bank/connectors").text

    def heard() -> int:
        return requests.post(url, json={"lines": []}, headers={"X-Api-Key": key}, timeout=15).status_code

    assert heard() == 200
    (made,) = (each for each in house.stack.cli("bank", "connectors", "list") if each["name"] == name)
    assert (made["silence_seconds"], made["hint"]) == (900, key[:8])
    assert [each["account"] for each in made["accounts"]] == ["77", "DE89370400440532013000"]
    page = staff.page(open_page, "admin")
    page.goto(f"{admin.url}/bank/connectors")
    looks_right(page, "bank-connectors-admin")
    row = page.locator("[data-row]").filter(has_text=name)
    row.get_by_text("Revoke", exact=True).click()
    row.get_by_role("button", name="Revoke the key").click()
    expect(page.get_by_role("status")).to_contain_text("The key is revoked")
    assert heard() == 403


def test_lines_confirm_deals_without_a_person_once_two_people_let_them(
    bank_till: Till, operator: Person, staff: Staff, open_page: Open
) -> None:
    limits = {"method_code": bank_till.method, "enabled": "yes", "deal_most": "9 000,50", "day_most": "8000"}
    wrong = operator.post("/bank/rules", limits)
    assert "Most a day: expected the limit of a deal or more" in text_of(wrong)
    assert 'value="9 000,50"' in wrong.text
    limits["day_most"] = "90,000"
    asked = operator.post("/bank/rules", limits)
    assert "It takes effect when another person approves it." in text_of(asked)
    (path,) = set(re.findall(r"/approvals/invoices/[0-9a-f-]{36}", asked.text))
    staff("admin").post(f"{path}/approve")
    assert "9,000.50" in text_of(operator.get("/bank/rules"))
    deal = bank_till.chosen()
    imported(operator, statement(bank_till, (deal, deal.amount_fiat, deal.reference)))
    wait_until(lambda: bank_till.state(deal) == "successfully_paid", "the deal", timeout_seconds=READ_SECONDS)
    assert "bank matcher" in text_of(operator.get(f"/invoices/{deal.invoice_id}"))
    assert "The rule is changed." in text_of(operator.post("/bank/rules", {**limits, "deal_most": "1"}))
    large = bank_till.chosen()
    imported(operator, statement(bank_till, (large, large.amount_fiat, f"{large.reference} large")))
    left = waiting(operator, "proposed", f"{large.reference} large")
    wait_until(
        lambda: "above its limit for one" in text_of(operator.get(f"/bank/{left}")),
        "its reason",
        timeout_seconds=READ_SECONDS,
    )
    page = staff.page(open_page, "desk")
    page.goto(f"{operator.url}/bank/rules")
    looks_right(page, "bank-rules")
    off = operator.post("/bank/rules", {"method_code": bank_till.method, "enabled": "no"})
    assert "The rule is changed." in text_of(off)
