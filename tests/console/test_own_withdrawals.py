"""Withdrawals at the dashboard: what a member reads and does there, by role, and nothing of another merchant."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import grpc
import pytest

from console.surfaces import DASHBOARD
from console.ui.words import NOTICES
from console.withdrawing.addresses import notice_of_added
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from tests.console.conftest import Open, Staff, with_cookies
from tests.console.house import House, Person, hidden, new_merchant, text_of
from tests.console.looks import looks_right
from tests.console.payouts import TRON_ADDRESS, Payouts, added

HASH: Final = "7c" * 32
OTHER_ADDRESS: Final = "TA4Y62o6YC2Zsck9rZVGTvqW1AQ7X9zTnj"
READERS: Final = ("owner", "finance", "viewer")


@dataclass(frozen=True)
class Treasury:
    """A merchant with money and its members, and a member of another merchant."""

    payouts: Payouts
    members: dict[str, Person]
    stranger: Person


@pytest.fixture(scope="module")
def treasury(house: House) -> Iterator[Treasury]:
    with grpc.insecure_channel(house.stack.addresses["withdrawals"]) as channel:
        payouts = Payouts(house, channel)
        members = {
            role: house.person(role, merchant=payouts.merchant, name=f"Tess {role}")
            for role in DASHBOARD.roles
        }
        for each in members.values():
            house.step_up(each)
        stranger = house.person("owner", merchant=new_merchant())
        house.step_up(stranger)
        yield Treasury(payouts, members, stranger)


def test_members_read_list_and_history_and_the_statement_leads_there(
    treasury: Treasury, staff: Staff, house: House, open_page: Open
) -> None:
    finance, made = treasury.members["finance"], treasury.payouts.made("21")
    operator = staff("treasury")
    operator.post(f"/withdrawals/{made}/process")
    operator.post(f"/withdrawals/{made}/complete", {"transaction": HASH})
    assert treasury.payouts.now(made).status == pb.WITHDRAWAL_STATUS_SUCCESS
    for filters in (
        "",
        "?status=success",
        f"?address={TRON_ADDRESS}",
        f"?transaction=0x{HASH}",
        "?least=21&most=21",
    ):
        listed = finance.get(f"/withdrawals{filters}").text
        assert f'href="/withdrawals/{made}"' in listed, filters
        assert "/merchants/" not in listed and "/approvals" not in listed
    lines = finance.rows("/withdrawals.csv")
    assert {line["merchant_id"] for line in lines} == {treasury.payouts.merchant}
    assert {line["withdraw_uuid"]: line["external_tx_id"] for line in lines}[made] == HASH
    assert f'href="/withdrawals/{made}"' in finance.get("/balance").text

    page = finance.get(f"/withdrawals/{made}")
    words = text_of(page)
    for each in (
        "You get 20.000000",
        HASH,
        "Sent by the operator",
        "Sent to you",
        "The network’s fee",
    ):
        assert each in words, each
    assert operator.email not in words and "cli:" not in words, "the operators have no names"
    assert re.search(r'href="/balance\?month=\d{4}-\d\d"', page.text)
    acts = text_of(staff("auditor").get("/audit", params={"object": f"withdrawal:{made}"}))
    assert "status: pending → sent" in acts and "status pending to success" in acts, acts
    browser = with_cookies(open_page(), finance)
    browser.goto(f"{house.dashboard}/withdrawals/{made}")
    looks_right(browser, "dashboard-withdrawal")


def test_a_withdrawal_that_an_operator_requests_is_told_with_its_reason(
    treasury: Treasury, staff: Staff
) -> None:
    merchant = treasury.payouts.merchant
    form = {"merchant": merchant, "method": "1", "address": TRON_ADDRESS, "amount": "27", "agreed": "on"}
    asked = form | {"request_key": str(new_id()), "reason": "You asked for it <b>by letter</b>"}
    made = staff("treasury").post("/withdrawals/new", asked).url.partition("?")[0].rpartition("/")[2]
    reason = ": You asked for it <b>by letter</b>"
    for role in ("owner", "finance", "viewer"):
        home = treasury.members[role].get("/")
        assert "The operator requested a withdrawal of 27.000000 USDT" in text_of(home)
        assert reason in text_of(home) and f'href="/withdrawals/{made}"' in home.text
    assert "The operator requested" not in treasury.members["developer"].get("/").text
    finance = treasury.members["finance"]
    assert f"requested by the operator{reason}" in text_of(finance.get("/withdrawals?least=27&most=27"))
    assert {each["by"] for each in finance.rows("/withdrawals.csv", least="27", most="27")} == {"operator"}
    assert reason[2:] in text_of(finance.get(f"/withdrawals/{made}"))


def test_the_search_finds_withdrawals_for_the_roles_that_read_them(treasury: Treasury, staff: Staff) -> None:
    made, transaction = treasury.payouts.made("22"), "5e" * 32
    operator = staff("treasury")
    operator.post(f"/withdrawals/{made}/process")
    operator.post(f"/withdrawals/{made}/complete", {"transaction": transaction})

    def found(person: Person, text: str) -> str:
        answer = person.get("/find", params={"q": text}, allow_redirects=False)
        return answer.headers.get("Location", "") or answer.text

    for role, person in (*treasury.members.items(), ("stranger", treasury.stranger)):
        for text in (made, made[:23], transaction, f"0x{transaction.upper()}"):
            assert (found(person, text) == f"/withdrawals/{made}") == (role in READERS), f"{role}: {text}"
        for text in (TRON_ADDRESS, TRON_ADDRESS.lower()):
            assert (f"/withdrawals/{made}" in found(person, text)) == (role in READERS), role


def test_a_member_cancels_what_is_not_being_sent_and_nothing_else(treasury: Treasury, staff: Staff) -> None:
    finance, payouts = treasury.members["finance"], treasury.payouts
    waiting, begun = payouts.made(), payouts.made()
    staff("treasury").post(f"/withdrawals/{begun}/process")
    assert "/cancel" not in finance.get(f"/withdrawals/{begun}").text
    # A form made by hand: it names the stage that is, and no user.
    refused = finance.post(f"/withdrawals/{begun}/cancel", {"stage": "processing", "by_user": ""})
    assert refused.status_code == 422
    assert payouts.now(begun).status == pb.WITHDRAWAL_STATUS_PENDING
    assert "/cancel" not in treasury.members["viewer"].get(f"/withdrawals/{waiting}").text
    canceled = finance.post(f"/withdrawals/{waiting}/cancel", {"stage": "requested"})
    assert "It is canceled. The amount is available again; a debt is paid first." in text_of(canceled)
    assert f"Canceled by {finance.email}" in text_of(canceled)
    assert payouts.now(waiting).substatus == "cancelled_by_user"


# -- the address book and requests


def test_a_new_address_waits_is_announced_and_removed_from_the_start_page(
    treasury: Treasury, house: House, open_page: Open
) -> None:
    finance, owner = treasury.members["finance"], treasury.members["owner"]
    form = {"method": "1", "address": "T123", "name": "exchange <1>"}
    refused = finance.post("/addresses", form)
    assert refused.status_code == 422
    assert 'value="T123"' in refused.text
    id = added(house, finance, "exchange <1>", usable=False)
    for person, reads in (
        (finance, True),
        (treasury.members["developer"], False),
        (treasury.stranger, False),
    ):
        found = text_of(person.get("/find", params={"q": TRON_ADDRESS}))
        assert ("exchange <1>" in found) == reads, "the search reads the book for its readers"
    twice = finance.post("/addresses", form | {"address": TRON_ADDRESS})
    assert (twice.status_code, "in the book already. To add it anew, remove it first." in text_of(twice)) == (
        422,
        True,
    )
    home = text_of(owner.get("/"))
    assert f"New address for withdrawals: {finance.email} added exchange <1>" in home
    assert f"/addresses/{id}/remove" in owner.get("/").text
    assert f"/addresses/{id}/remove" not in treasury.members["viewer"].get("/").text
    assert "New address" not in treasury.members["developer"].get("/").text
    waiting = text_of(finance.get("/withdrawals/new"))
    assert "exchange <1> can be used from" in waiting
    assert "Until then you have no address that can be used." in waiting and "Add one" not in waiting
    browser = with_cookies(open_page(), owner)
    browser.goto(f"{house.dashboard}/addresses")
    browser.get_by_text("A new one can be used 1 d after it was added").wait_for()
    looks_right(browser, "dashboard-addresses")
    removed = owner.post(f"/addresses/{id}/remove", {"from": "home"})
    assert removed.url.startswith(f"{owner.url}/?")
    assert "The address is removed" in text_of(removed) and "New address" not in text_of(removed)
    assert "This address is not in the book any more." in text_of(owner.post(f"/addresses/{id}/remove"))
    assert "Add one" in text_of(finance.get("/withdrawals/new"))


def test_the_notice_of_a_new_address_says_whether_it_waits() -> None:
    waits, usable = (NOTICES[notice_of_added(pb.WithdrawalAddress(waits=each))] for each in (True, False))
    assert "when its waiting time is over" in waits
    assert usable == "The address is added. It can be used from now on."


def test_a_withdrawal_is_requested_with_a_fresh_proof_seen_before_and_made_once(
    treasury: Treasury, house: House, staff: Staff, open_page: Open
) -> None:
    finance, payouts = treasury.members["finance"], treasury.payouts
    finance.add_factors()
    id = added(house, finance, "cold wallet", usable=True)
    browser = with_cookies(open_page(), finance)
    browser.goto(f"{house.dashboard}/withdrawals/new?address={id}")
    looks_right(browser, "dashboard-request")
    browser.get_by_label("Amount in USDT").fill("2")
    browser.get_by_role("button", name="Look at it").click()
    browser.get_by_text("The least amount is 5.000000 USDT").first.wait_for()
    browser.get_by_label("Amount in USDT").fill("30")
    browser.get_by_role("button", name="Look at it").click()
    browser.get_by_role("heading", name="Request this withdrawal?").wait_for()
    looks_right(browser, "dashboard-agree")
    page = browser.content()
    assert TRON_ADDRESS in page and "29.000000" in page
    before = payouts.balance()
    fields = hidden(page, "/withdrawals/new")
    house.end_step_up(finance.email)
    form = {"method": "1", "address": OTHER_ADDRESS, "name": "second"}
    (method,) = re.findall(r'<option value="1"[^>]*>([^<]+)', finance.get("/addresses").text)
    assert f" Method {method} " in text_of(finance.post("/addresses", form)), "by its name, not its id"
    asked = finance.post("/withdrawals/new", fields)
    assert "Confirm that it is you" in asked.text
    assert f'value="{fields["request_key"]}"' in asked.text, "the form goes on after the proof"
    assert payouts.balance() == before
    proof = {"step_up_code": finance.code(), "step_up_goes_on": "on"}
    done = finance.post("/step-up?to=/withdrawals/new", fields | proof)
    assert "The amount is held, and the operator is asked to send it." in text_of(done)
    made = done.url.partition("?")[0].rpartition("/")[2]
    assert f"/withdrawals/{made}?" in finance.post("/withdrawals/new", fields).url, "sent twice"
    other = finance.post("/withdrawals/new", fields | {"amount": "31"})
    assert (other.status_code, "This form has made a withdrawal already" in text_of(other)) == (422, True)
    assert "equest_key" not in text_of(other)
    fresh = hidden(other.text, "/withdrawals/new")["request_key"]
    assert fresh not in ("", fields["request_key"]), "the form can be sent again, for another withdrawal"
    broken = finance.post("/withdrawals/new", fields | {"request_key": "x"})
    assert (broken.status_code, "The form was not complete" in text_of(broken)) == (422, True)
    assert payouts.now(made).address == TRON_ADDRESS
    assert "requested by the operator" not in text_of(finance.get("/withdrawals?least=30&most=30"))
    assert {each["by"] for each in finance.rows("/withdrawals.csv", least="30", most="30")} == {"merchant"}
    assert Decimal(before.available) - Decimal(payouts.balance().available) == 30
    assert f"Requested by {finance.email}" in text_of(finance.get(f"/withdrawals/{made}"))
    assert f"Requested by {finance.email}" in text_of(staff("treasury").get(f"/withdrawals/{made}"))
    stale = finance.post("/withdrawals/new", fields | {"fee": "0.5", "request_key": str(new_id())})
    assert (stale.status_code, "The network’s fee is another one by now" in text_of(stale)) == (422, True)
    finance.post(f"/addresses/{id}/remove")
    gone = finance.post("/withdrawals/new", fields | {"request_key": str(new_id())})
    assert (gone.status_code, "This address is not in the book any more." in text_of(gone)) == (422, True)
    finance.post(f"/withdrawals/{made}/cancel", {"stage": "requested"})
    resent = text_of(finance.post("/withdrawals/new", fields))
    assert "This form made this withdrawal before. It is canceled, so nothing is held" in resent
    assert "The amount is held" not in resent


def test_a_large_request_waits_for_two_operators(treasury: Treasury, house: House, staff: Staff) -> None:
    owner = treasury.members["owner"]
    id = added(house, owner, "treasury", usable=True, address="T9yED5xMV5ARV98BexN97aLZ1UUq7eKSxm")
    asked = {"address": id, "amount": "1000", "fee": "1.000000", "request_key": str(new_id()), "agreed": "on"}
    made = owner.post("/withdrawals/new", asked).url.partition("?")[0].rpartition("/")[2]
    operator = staff("treasury")
    assert "The request is recorded" in text_of(operator.post(f"/withdrawals/{made}/process"))
    assert treasury.payouts.now(made).substatus == ""
    own = owner.get(f"/withdrawals/{made}")
    assert "Second person" not in own.text and "/approvals" not in own.text
    (request,) = set(
        re.findall(r"/approvals/withdrawals/[0-9a-f-]+", operator.get(f"/withdrawals/{made}").text)
    )
    assert "You requested this yourself" in text_of(operator.post(f"{request}/approve"))
    assert treasury.payouts.now(made).substatus == ""
    assert staff("treasury", "desk").post(f"{request}/approve").status_code == 200
    assert treasury.payouts.now(made).substatus == "processing"


def test_another_merchants_address_is_none_to_look_at_either(treasury: Treasury, house: House) -> None:
    """test_dashboard_routes.py tries all addresses and forms; here is the form before it is agreed to."""
    id = added(house, treasury.members["owner"], "of the owner", usable=True, address=OTHER_ADDRESS)
    request = {"amount": "20", "fee": "1.000000", "request_key": str(new_id())}
    found, missing = (
        treasury.stranger.post("/withdrawals/new", request | {"address": each})
        for each in (id, str(new_id()))
    )
    assert found.status_code == missing.status_code == 422
    assert text_of(found) == text_of(missing)
