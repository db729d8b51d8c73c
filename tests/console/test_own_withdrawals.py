"""Withdrawals at the dashboard: what a member reads and does there, by role, and nothing of another merchant."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import grpc
import pytest

from console.surfaces import DASHBOARD
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from tests.console.conftest import Open, Staff, with_cookies
from tests.console.house import House, Person, new_merchant, title_of
from tests.console.looks import looks_right
from tests.console.payouts import TRON_ADDRESS, Payouts, text_of

HASH: Final = "7c" * 32
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
    lines = list(csv.DictReader(io.StringIO(finance.get("/withdrawals.csv").text)))
    assert {line["merchant_id"] for line in lines} == {treasury.payouts.merchant}
    assert {line["withdraw_uuid"]: line["external_tx_id"] for line in lines}[made] == HASH
    assert f'href="/withdrawals/{made}"' in finance.get("/balance").text

    page = finance.get(f"/withdrawals/{made}")
    words = text_of(page)
    for each in (
        "You get 20.000000",
        HASH,
        "Sent by the operator",
        "pay sent to you",
        "fee the network’s fee",
    ):
        assert each in words, each
    assert operator.email not in words and "cli:" not in words, "the operators have no names"
    assert re.search(r'href="/balance\?month=\d{4}-\d\d"', page.text)
    for role in READERS:
        assert treasury.members[role].get(f"/withdrawals/{made}").status_code == 200
    assert treasury.members["viewer"].get("/withdrawals.csv").status_code == 403
    for address in ("/withdrawals", f"/withdrawals/{made}"):
        assert treasury.members["developer"].get(address).status_code == 403, address
    browser = with_cookies(open_page(), finance)
    for name, address in (("withdrawals", "/withdrawals"), ("withdrawal", f"/withdrawals/{made}")):
        browser.goto(house.dashboard + address)
        looks_right(browser, f"dashboard-{name}")


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
    assert (
        treasury.members["viewer"].post(f"/withdrawals/{waiting}/cancel", {"stage": "requested"}).status_code
        == 403
    )
    canceled = finance.post(f"/withdrawals/{waiting}/cancel", {"stage": "requested"})
    assert "It is canceled. The amount is available again." in text_of(canceled)
    assert f"Canceled by {finance.email}" in text_of(canceled)
    assert payouts.now(waiting).substatus == "cancelled_by_user"


def test_another_merchants_withdrawals_answer_as_what_does_not_exist(treasury: Treasury) -> None:
    made, nothing = treasury.payouts.made(), str(new_id())
    stranger = treasury.stranger
    for address in ("/withdrawals/{}", "/withdrawals?after={}"):
        found, missing = (stranger.get(address.format(id)) for id in (made, nothing))
        assert (found.status_code, title_of(found)) == (missing.status_code, title_of(missing)), address
        assert found.status_code == 404, address
    found, missing = (
        stranger.post(f"/withdrawals/{id}/cancel", {"stage": "requested"}) for id in (made, nothing)
    )
    assert (found.status_code, title_of(found)) == (missing.status_code, title_of(missing))
    assert treasury.payouts.now(made).status == pb.WITHDRAWAL_STATUS_PENDING
    for path in ("/withdrawals", "/withdrawals.csv"):
        assert made not in stranger.get(path, params={"merchant": treasury.payouts.merchant}).text
    for form in ("/withdrawals/{}/process", "/withdrawals/several", "/withdrawal-methods/new"):
        assert treasury.members["owner"].post(form.format(made)).status_code in (404, 405), form
