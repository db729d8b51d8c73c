"""Withdrawals at the desk from request to transaction, methods, statements; and second pairs of eyes."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final
from uuid import uuid4

import grpc
import pytest
from playwright.sync_api import expect

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import amount_text
from tests.console.conftest import Open, Staff
from tests.console.house import House, Person, new_email, text_of, title_of
from tests.console.looks import looks_right
from tests.console.payouts import TRON_ADDRESS, Payouts

HASH: Final = "9f" * 32
LARGE: Final = "1000"


@pytest.fixture(scope="module")
def payouts(house: House) -> Iterator[Payouts]:
    with grpc.insecure_channel(house.stack.addresses["withdrawals"]) as channel:
        yield Payouts(house, channel)


@pytest.fixture(scope="module")
def treasury(staff: Staff) -> Person:
    return staff("treasury")


def test_a_withdrawal_goes_from_the_form_to_the_transaction(payouts: Payouts, treasury: Person) -> None:
    name = re.findall(r"<h1>(?:<bdi>)?([^<]+)", treasury.get(f"/merchants/{payouts.merchant}").text)[
        0
    ].strip()
    assert f'<option value="{name}">' in treasury.get("/withdrawals/new").text, "merchants are suggested"
    lost = treasury.get("/withdrawals/new?merchant=nobody-of-this-name")
    assert (lost.status_code, "no merchant has this id or name" in text_of(lost).lower()) == (422, True)
    form = treasury.get(f"/withdrawals/new?merchant={payouts.merchant}").text
    assert f">{name}</bdi></a> has" in form
    (key,) = re.findall(r'name="request_key" value="([^"]+)"', form)
    fields = {"merchant": payouts.merchant, "method": "1", "amount": "25", "request_key": key}
    many = treasury.post("/withdrawals/new", fields | {"address": TRON_ADDRESS, "amount": "1000000"})
    assert (many.status_code, "USDT are available" in text_of(many)) == (422, True)
    wrong = text_of(treasury.post("/withdrawals/new", fields | {"method": "", "amount": "much"}))
    assert all(
        each in wrong for each in ("Choose a method", "Choose an address", "An amount is a number, as 49.90")
    )
    unfit = treasury.post("/withdrawals/new", fields | {"address": "T123", "memo": "7", "amount": "much"})
    for each in ("USDT cannot be sent to this address on TRC20.", "An amount is a number, as 49.90."):
        assert each in text_of(unfit), "the network is checked before the preview, beside the other fields"
    seen = text_of(treasury.post("/withdrawals/new", fields | {"address": TRON_ADDRESS}))
    assert "Arrives 24.000000 USDT" in seen and "Not in the address book." in seen and TRON_ADDRESS in seen
    fields["agreed"] = "on"
    refused = treasury.post("/withdrawals/new", fields | {"address": "T123"})
    assert refused.status_code == 422
    assert "USDT can't be sent to this address on TRC20" in text_of(refused)
    assert 'value="T123"' in refused.text, "the form keeps what was typed"
    made = treasury.post("/withdrawals/new", fields | {"address": TRON_ADDRESS})
    assert "The amount is reserved." in text_of(made)
    assert treasury.post("/withdrawals/new", fields | {"address": TRON_ADDRESS}).url == made.url, "sent twice"
    path = made.url.removeprefix(treasury.url).partition("?")[0]
    id = path.rpartition("/")[2]
    assert path in treasury.get(f"/withdrawals?merchant={payouts.merchant}").text
    by_address = treasury.get("/find", params={"q": TRON_ADDRESS.lower()})
    assert path in by_address.text or by_address.url.endswith(path)

    assert "It is being sent." in text_of(treasury.post(f"{path}/process"))
    assert path not in treasury.get(f"/withdrawals?merchant={payouts.merchant}").text
    assert path in treasury.get(f"/withdrawals?stage=processing&merchant={payouts.merchant}").text
    doubted = treasury.post(f"{path}/complete", {"transaction": "payment 7"})
    assert "is no hash of a transaction on TRC20. Nothing was changed." in text_of(doubted)
    assert payouts.now(id).status == pb.WITHDRAWAL_STATUS_PENDING
    sent = treasury.post(f"{path}/complete", {"transaction": HASH.upper()})
    assert "It is marked as sent." in text_of(sent)
    assert payouts.now(id).external_tx_id == HASH
    repeated = text_of(treasury.post("/withdrawals/new", fields | {"address": TRON_ADDRESS}))
    assert "This form made this withdrawal before. It was sent" in repeated and "is reserved" not in repeated
    other = treasury.post("/withdrawals/new", fields | {"address": TRON_ADDRESS, "amount": "26"})
    assert (other.status_code, "This form has made a withdrawal already" in text_of(other)) == (422, True)
    assert key not in other.text and "equest_key" not in text_of(other)
    for step in ("Requested", "Being sent", "Sent"):
        assert f"{step} by {treasury.email}" in text_of(sent)

    again = treasury.post(f"{path}/fail", {"substatus": "failed", "stage": "processing"})
    assert again.status_code == 422
    assert f"The last step: sent by {treasury.email}" in text_of(again)
    assert path in treasury.get(f"/withdrawals?stage=done&transaction=0x{HASH}").text
    mark = payouts.made()
    treasury.post(f"/withdrawals/{mark}/process")
    treasury.post(f"/withdrawals/{mark}/complete", {"transaction": f"exchange-{mark}", "is_mark": "on"})
    assert payouts.now(mark).external_tx_id == f"exchange-{mark}"


def test_one_act_is_done_to_all_that_are_ticked(payouts: Payouts, treasury: Person) -> None:
    ids = [payouts.made() for _ in range(3)]
    nothing = treasury.post("/withdrawals/several", {"act": "process"})
    assert "Nothing was ticked" in text_of(nothing)
    step = {"id": ids[:2], "act": "process", "stage": "requested"}
    done = treasury.post("/withdrawals/several", step)
    assert "All that were ticked are done." in text_of(done)
    assert [payouts.now(each).substatus for each in ids] == ["processing", "processing", ""]
    cancel = step | {"id": ids, "act": "cancel", "by_user": "on"}
    mixed = treasury.post("/withdrawals/several", cancel)
    assert title_of(mixed) == "1 of 3 done"
    assert "The withdrawal is pending (processing)." in text_of(mixed)
    assert payouts.now(ids[2]).substatus == "cancelled_by_user"
    failed = treasury.post(
        f"/withdrawals/{ids[0]}/fail", {"substatus": "invalid_address", "stage": "processing"}
    )
    assert "invalid address" in text_of(failed)
    treasury.post(f"/withdrawals/{ids[1]}/cancel", {"stage": "processing"})
    assert payouts.now(ids[1]).substatus == "cancelled_by_admin"


def test_a_step_from_a_stale_page_names_the_colleague_and_changes_nothing(
    payouts: Payouts, treasury: Person, staff: Staff
) -> None:
    colleague = staff("treasury", "admin")
    id = payouts.made()
    path = f"/withdrawals/{id}"
    shown = colleague.get(path).text
    assert shown.count('name="stage" value="requested"') == 2
    assert "It is being sent." in text_of(treasury.post(f"{path}/process"))
    for step, fields in (
        ("process", {}),
        ("cancel", {"stage": "requested"}),
        ("fail", {"stage": "requested", "substatus": "failed"}),
        ("cancel", {}),
    ):
        refused = colleague.post(f"{path}/{step}", fields)
        assert refused.status_code in (400, 422), step
        assert (not fields and step == "cancel") or f"being sent by {treasury.email}" in text_of(refused), (
            step
        )
    several = {"id": id, "stage": "requested"}
    for act in ("process", "cancel", "fail"):
        assert title_of(colleague.post("/withdrawals/several", several | {"act": act})) == "0 of 1 done"
    assert payouts.now(id).substatus == "processing"
    fields = {"transaction": f"exchange-{id}", "is_mark": "on"}
    assert "It is marked as sent." in text_of(treasury.post(f"{path}/complete", fields))
    assert f"sent by {treasury.email}" in text_of(colleague.post(f"{path}/complete", fields))


def test_a_large_withdrawal_is_requested_by_one_and_approved_by_another(
    payouts: Payouts, treasury: Person, staff: Staff
) -> None:
    id = payouts.made(LARGE)
    asked = treasury.post(f"/withdrawals/{id}/process")
    assert asked.status_code == 202
    (path,) = set(re.findall(r'href="(/approvals/withdrawals/[0-9a-f-]{36})"', asked.text))
    own = treasury.get(path)
    assert "You requested this, so another person with the role treasury approves it." in text_of(own)
    assert f'action="{path}/approve"' not in own.text
    assert "You requested this yourself" in text_of(treasury.post(f"{path}/approve"))
    assert payouts.now(id).substatus == ""

    viewer = staff("viewer").get(path)
    assert "A decision needs the role treasury, or admin." in text_of(viewer)
    assert f'action="{path}/' not in viewer.text

    other = staff("admin")
    assert path in other.get(f"/approvals?object=withdrawal:{id}").text
    assert "needs approval" in text_of(other.get(f"/withdrawals?merchant={payouts.merchant}"))
    page = other.get(path)
    assert f"Send 999.000000 USDT on TRC20 to {TRON_ADDRESS}" in text_of(page)
    assert f'href="/withdrawals/{id}"' in page.text
    assert page.text.index("Sent before") < page.text.index(f'action="{path}/approve"'), "first the evidence"
    done = other.post(f"{path}/approve", {"note": "as agreed"})
    assert "Approved and done." in text_of(done)
    assert payouts.now(id).substatus == "processing"
    late = staff("treasury", "desk").post(f"{path}/reject")
    assert late.status_code == 422
    assert f"The request is approved already, by {other.email}" in text_of(late)
    assert path in other.get(f"/approvals?state=decided&object=withdrawal:{id}").text
    lines = other.rows(f"/approvals.csv?state=decided&object=withdrawal:{id}")
    assert [(each["state"], each["decision_note"]) for each in lines] == [("approved", "as agreed")]
    history = text_of(other.get(f"/withdrawals/{id}"))
    assert f"Second person asked by {treasury.email}" in history
    assert history.index("Being sent by") > history.index(f"Second person approved by {other.email}")


def test_a_requester_withdraws_the_request_and_another_one_is_rejected(
    payouts: Payouts, treasury: Person, staff: Staff
) -> None:
    id = payouts.made(LARGE)

    def requested() -> str:
        asked = treasury.post(f"/withdrawals/{id}/process").text
        paths: list[str] = re.findall(r'href="(/approvals/withdrawals/[0-9a-f-]{36})"', asked)
        return paths[0]

    withdrawn = treasury.post(f"{requested()}/reject", {"reason": "Another address"})
    assert "Your request is taken back." in text_of(withdrawn)
    assert "Another address" in text_of(withdrawn)
    rejected = staff("admin").post(f"{requested()}/reject")
    assert "The request is rejected." in text_of(rejected)
    assert payouts.now(id).substatus == ""


def test_the_link_of_an_invitation_that_approval_made_is_shown_once(house: House, staff: Staff) -> None:
    # With one administrator alone nothing waits for another one.
    admin, second, email = staff("admin"), staff("admin", "auditor"), new_email()
    asked = admin.post("/people/invite", {"email": email, "name": "Grace Hopper", "role:admin": "on"})
    assert asked.status_code == 202, text_of(asked)
    (path,) = set(re.findall(r'href="(/approvals/identity/[0-9a-f-]{36})"', asked.text))
    approved = second.post(f"{path}/approve")
    assert title_of(approved) == "Approved: the link"
    (link,) = set(re.findall(r'value="([^"]+/invitation\?token=[^"]+)"', approved.text))
    grace = Person(house.desk, email)
    assert title_of(grace.accept(link)) == "How will you sign in?"
    again = second.post(f"{path}/approve")
    assert "token=" not in again.text


def test_the_statement_is_the_ledger_of_the_month_and_ends_with_the_balance(
    payouts: Payouts, staff: Staff
) -> None:
    auditor = staff("auditor")
    path = f"/merchants/{payouts.merchant}/statement"
    page = text_of(auditor.get(path))
    balance = payouts.balance()
    assert f"After {amount_text(balance.available)} {amount_text(balance.reserved)}" in page
    assert f"Paid in the month {amount_text(balance.credited)}" in page
    assert f"The report the same {amount_text(balance.credited)}" in page
    lines = auditor.rows(f"{path}.csv")
    assert (lines[-1]["available_after"], lines[-1]["reserved_after"]) == (
        balance.available,
        balance.reserved,
    )
    credited = sum(Decimal(each["amount"]) for each in lines if each["kind"] == "credit")
    assert credited == Decimal(balance.credited)
    assert "The ledger has no transfer in this month." in text_of(auditor.get(f"{path}?month=2020-02"))
    wrong = auditor.get(f"{path}?month=2026-13")
    assert wrong.status_code == 422
    assert "A month is written as 2026-11." in text_of(wrong)
    assert auditor.get("/merchants/nobody/statement").status_code == 404


def test_a_withdrawal_method_is_made_changed_and_switched_off(treasury: Person) -> None:
    code = f"M-{uuid4().hex[:12]}"
    fields = {"network": "TRC20", "name": "USDT on Tron", "network_fee": "1", "min_amount": "0.5"}
    refused = treasury.post("/withdrawal-methods/new", fields | {"code": code, "enabled": "on"})
    assert refused.status_code == 422
    assert f'value="{code}"' in refused.text
    made = treasury.post(
        "/withdrawal-methods/new", fields | {"code": code, "min_amount": "5", "enabled": "on"}
    )
    assert "The withdrawal method is set." in text_of(made)
    treasury.post(f"/withdrawal-methods/{code}", fields | {"min_amount": "7"})
    lines = treasury.rows("/withdrawal-methods.csv")
    (changed,) = [each for each in lines if each["code"] == code]
    assert (changed["min_amount"], changed["enabled"]) == ("7.000000", "False")


def test_an_older_page_of_a_withdrawal_method_does_not_undo_a_colleagues_change(treasury: Person) -> None:
    path = f"/withdrawal-methods/M-{uuid4().hex[:12]}"
    fields = {
        "network": "TRC20",
        "name": "USDT on Tron",
        "network_fee": "1",
        "min_amount": "5",
        "enabled": "on",
    }
    treasury.post("/withdrawal-methods/new", fields | {"code": path.rpartition("/")[2]})
    seen = dict(re.findall(r'name="(was:[^"]+)" value="([^"]*)"', treasury.get(path).text))
    assert "The withdrawal method is set." in text_of(
        treasury.post(path, fields | seen | {"network_fee": "1.5"})
    )
    stale = treasury.post(path, fields | seen | {"min_amount": "6"})
    assert stale.status_code == 422
    assert "to “1.500000”" in text_of(stale)
    seen = dict(re.findall(r'name="(was:[^"]+)" value="([^"]*)"', stale.text))
    again = treasury.post(path, fields | seen | {"network_fee": "1.5", "min_amount": "6"})
    assert "The withdrawal method is set." in text_of(again)
    twice = treasury.post("/withdrawal-methods/new", fields | {"code": path.rpartition("/")[2]})
    assert twice.status_code == 422, "a method of this code exists"


def test_the_list_has_a_file_of_all_that_its_filters_leave(
    payouts: Payouts, treasury: Person, staff: Staff
) -> None:
    of = f"stage=all&merchant={payouts.merchant}"
    lines = treasury.rows(f"/withdrawals.csv?{of}")
    assert {each["merchant"] for each in lines} == {"Lamp shop"}
    large = treasury.rows(f"/withdrawals.csv?{of}&least=1000")
    assert [each["amount"] for each in large] == ["1000.000000"] * 2
    assert staff("viewer").get(f"/withdrawals.csv?{of}").status_code == 403
    assert 'name="id"' not in staff("viewer").get("/withdrawals").text


def test_the_heading_of_the_time_turns_the_order_of_the_list(payouts: Payouts, treasury: Person) -> None:
    made = [payouts.made(amount) for amount in ("21", "22")]
    query = f"stage=requested&merchant={payouts.merchant}"
    for turned, sort, first in (("newest", "ascending", made[0]), ("oldest", "descending", made[1])):
        page = treasury.get(f"/withdrawals?{query}" + ("&sort=newest" if turned == "oldest" else "")).text
        places = [page.index(f'href="/withdrawals/{each}"') for each in made]
        assert min(places) == page.index(f'href="/withdrawals/{first}"')
        assert f'aria-sort="{sort}"' in page
        assert f"sort={turned}" in page
    rows = treasury.rows("/withdrawals.csv", stage="requested", merchant=payouts.merchant, sort="newest")
    ids = [each["withdraw_uuid"] for each in rows]
    assert ids.index(made[1]) < ids.index(made[0])


def test_the_heading_of_the_amount_orders_what_waits_in_both_directions(
    payouts: Payouts, treasury: Person
) -> None:
    small, large = (payouts.made(amount) for amount in ("23", "24"))
    query = f"/withdrawals?stage=requested&merchant={payouts.merchant}"
    assert "sort=largest" in treasury.get(query).text
    for sort, order, next_one in (
        ("largest", (large, small), "smallest"),
        ("smallest", (small, large), "largest"),
    ):
        page = treasury.get(f"{query}&sort={sort}").text
        assert page.index(order[0]) < page.index(order[1])
        assert f"sort={next_one}" in page
        rows = treasury.rows("/withdrawals.csv", stage="requested", merchant=payouts.merchant, sort=sort)
        amounts = [float(each["amount"]) for each in rows]
        assert amounts == sorted(amounts, reverse=sort == "largest")
    done = treasury.get("/withdrawals?stage=done&sort=largest")
    assert "Only those that wait to be sent or are being sent have an order by amount." in text_of(done)
    assert 'stage=done"' in page, "a tab begins with its own order"


def test_pages_of_money_look_right(payouts: Payouts, staff: Staff, open_page: Open) -> None:
    small, large = payouts.made(), payouts.made(LARGE)
    treasury = staff("treasury")
    asked = treasury.post(f"/withdrawals/{large}/process").text
    approval = re.findall(r'href="(/approvals/withdrawals/[0-9a-f-]{36})"', asked)[0]
    treasury.post(f"/withdrawals/{small}/process")
    page = staff.page(open_page, "treasury", "desk", viewport={"width": 1280, "height": 800})
    for name, path in {
        "withdrawals": "/withdrawals?limit=10",
        "withdrawal": f"/withdrawals/{small}",
        "withdrawal-new": f"/withdrawals/new?merchant={payouts.merchant}",
        "withdrawal-methods": "/withdrawal-methods",
        "withdrawal-method": "/withdrawal-methods/USDT-TRC20",
        "statement": f"/merchants/{payouts.merchant}/statement",
        "statement-print": f"/merchants/{payouts.merchant}/statement/print",
        "approvals": "/approvals?limit=10",
        "approval": approval,
    }.items():
        page.goto(f"{treasury.url}{path}")
        looks_right(page, name)
    pending = payouts.made()
    page.goto(f"{treasury.url}/withdrawals")
    box = page.get_by_role("checkbox", name=f"Tick {pending[:13]}")
    box.check()
    box.press("Enter")  # this must not press the first button, which stands behind a question
    expect(box).to_be_checked()
