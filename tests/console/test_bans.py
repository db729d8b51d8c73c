"""A ban stops what members begin, and nothing that they end; operators see it where they send money."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import pytest

from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.base.ids import new_id
from tests.console.conftest import Staff
from tests.console.house import OPERATOR, House, Person, text_of
from tests.console.payouts import TRON_ADDRESS, Payouts, added
from tests.console.test_own_withdrawals import OTHER_ADDRESS

BANNED = "Your account is banned. Until the operator ends that, no key"
BLOCKED = "The owner of your account is blocked. Until the operator ends that, no key"


@dataclass(frozen=True)
class Place:
    payouts: Payouts
    owner: Person
    merchants: MerchantsServiceStub
    email: str

    def ban(self) -> None:
        request = merchants_pb2.BanMerchantRequest(merchant_id=self.payouts.merchant)
        self.merchants.BanMerchant(request, metadata=OPERATOR)

    def unban(self) -> None:
        request = merchants_pb2.UnbanMerchantRequest(merchant_id=self.payouts.merchant)
        self.merchants.UnbanMerchant(request, metadata=OPERATOR)


@pytest.fixture(scope="module")
def place(house: House) -> Iterator[Place]:
    addresses = house.stack.addresses
    with (
        grpc.insecure_channel(addresses["withdrawals"]) as ledger,
        grpc.insecure_channel(addresses["identity"]) as channel,
    ):
        payouts, merchants = Payouts(house, ledger), MerchantsServiceStub(channel)
        request = merchants_pb2.GetMerchantRequest(merchant_id=payouts.merchant)
        email = merchants.GetMerchant(request, metadata=OPERATOR).merchant.owner_email
        owner = house.person("owner", merchant=payouts.merchant)
        house.step_up(owner)
        yield Place(payouts, owner, merchants, email)


def newest_key(owner: Person) -> str:
    found = re.search(r'name="newest_key_id" value="([^"]*)"', owner.get("/keys").text)
    assert found
    return found[1]


def test_members_of_a_banned_merchant_read_and_stop_things_and_start_nothing(
    place: Place, house: House, staff: Staff
) -> None:
    owner, payouts = place.owner, place.payouts
    book = added(house, owner, "exchange", usable=True)
    waiting = payouts.made()
    request = {"address": book, "amount": "20", "fee": "1.000000", "agreed": "on"}
    twice = request | {"request_key": str(new_id())}
    made = owner.post("/withdrawals/new", twice).url.partition("?")[0].rpartition("/")[2]
    first_key = newest_key(owner)
    before = payouts.balance()
    place.ban()
    try:
        forms = {
            "/withdrawals/new": request | {"request_key": str(new_id())},
            "/addresses": {"method": "1", "address": OTHER_ADDRESS, "name": "another"},
            "/keys": {"name": "another", "newest_key_id": first_key, "scope:read": "on"},
            f"/keys/{first_key}/rotate": {"name": "another", "newest_key_id": first_key},
        }
        for path, fields in forms.items():
            refused = owner.post(path, fields)
            assert (refused.status_code, BANNED in text_of(refused)) == (422, True), path
        link = owner.post(
            "/links/new", {"amount": "30", "currency": "EUR", "customer": "c", "made_order": f"o-{new_id()}"}
        )
        assert (link.status_code, "Your account is banned" in text_of(link)) == (422, True)
        assert payouts.balance() == before
        assert newest_key(owner) == first_key
        assert "another" not in owner.get("/addresses.csv").text
        assert f"/withdrawals/{made}?" in owner.post("/withdrawals/new", twice).url, "sent again: the same"
        assert BANNED in text_of(owner.get("/"))
        for path in ("/withdrawals", "/balance", "/addresses", "/keys", "/settings", "/invoices.csv"):
            assert owner.get(path).status_code == 200, path

        operator = staff("treasury")
        page = text_of(operator.get(f"/withdrawals/{waiting}"))
        assert "The merchant is banned. Its members can request no further withdrawal" in page

        canceled = owner.post(f"/withdrawals/{waiting}/cancel", {"stage": "requested"})
        assert "It is canceled." in text_of(canceled)
        assert "The address is removed" in text_of(owner.post(f"/addresses/{book}/remove"))
        off = owner.post(f"/keys/{first_key}/deactivate", {"although_used": "on"})
        assert "The key is deactivated" in text_of(off)
        assert payouts.made("7"), "an operator may pay out what a banned merchant is due"
    finally:
        place.unban()
    key = owner.post("/keys", {"name": "after it", "newest_key_id": first_key, "scope:read": "on"})
    assert "Your account is banned" not in text_of(owner.get("/"))
    assert "Signing secret" in key.text


def test_members_of_a_blocked_owner_start_nothing_either(place: Place, staff: Staff) -> None:
    owner = place.owner
    made = place.payouts.made("1000")
    operator = staff("treasury")
    operator.post(f"/withdrawals/{made}/process")
    (approval,) = set(
        re.findall(r"/approvals/withdrawals/[0-9a-f-]+", operator.get(f"/withdrawals/{made}").text)
    )
    place.merchants.BlockOwner(merchants_pb2.BlockOwnerRequest(email=place.email), metadata=OPERATOR)
    try:
        refused = owner.post("/keys", {"name": "x", "newest_key_id": newest_key(owner), "scope:read": "on"})
        assert (refused.status_code, BLOCKED in text_of(refused)) == (422, True)
        form = {"method": "1", "address": OTHER_ADDRESS, "name": "another"}
        assert BLOCKED in text_of(owner.post("/addresses", form))
        assert BLOCKED in text_of(owner.get("/"))
        for path in (approval, f"/withdrawals/{made}"):
            assert "The merchant’s owner is blocked." in text_of(operator.get(path)), path
    finally:
        place.merchants.UnblockOwner(merchants_pb2.UnblockOwnerRequest(email=place.email), metadata=OPERATOR)
    assert "owner is blocked" not in text_of(operator.get(approval))


def test_the_desk_shows_whose_address_it_is_and_since_when(place: Place, house: House, staff: Staff) -> None:
    owner, operator = place.owner, staff("treasury")
    made = place.payouts.made("1001")
    operator.post(f"/withdrawals/{made}/process")
    (approval,) = set(
        re.findall(r"/approvals/withdrawals/[0-9a-f-]+", operator.get(f"/withdrawals/{made}").text)
    )
    for path in (approval, f"/withdrawals/{made}"):
        words = text_of(operator.get(path))
        assert "Address book The address is not in it. The withdrawal was requested by" in words, path
    added(house, owner, "cold <1>", usable=False)
    later = place.payouts.made("20")
    for path, then in (
        (approval, "was not in the book"),
        (f"/withdrawals/{made}", "was not in the book"),
        (f"/withdrawals/{later}", "still waited"),
    ):
        entry = re.search(r"Address book (.*?) (?:Network|Sent before)", text_of(operator.get(path)))
        words = entry[1] if entry else ""
        assert words.startswith("cold <1>") and f"by {owner.email}" in words, words
        assert f"it {then} when the withdrawal was requested" in words, "what held then"
    listed = house.stack.cli("addresses", place.payouts.merchant)
    assert [(each["address"], each["added_by"], each["waits"]) for each in listed] == [
        (TRON_ADDRESS, owner.email, True)
    ]
