"""The address book of a merchant, and withdrawals that its members request: to an address of the book, after a wait."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.base.proto import datetime_from
from kit.db.database import DatabaseBusy
from kit.rpc.errors import Refused
from services.identity import rpc as merchants_rpc
from services.identity.config import IdentitySettings
from services.identity.wiring import wire as wire_merchants
from services.withdrawals.clients import IdentityClient
from services.withdrawals.domain import ADDRESSES_MOST, ADDRESSES_PER_DAY_MOST
from services.withdrawals.operations import addresses, creating, reading, stepping
from services.withdrawals.rpc.as_seen import story_as_seen
from services.withdrawals.store import addresses as store
from services.withdrawals.wiring import Deps
from tests.support.acting import ANN, acting
from tests.support.serving import TEST_MASTER_KEY, connected, serving
from tests.support.signing import SEAL_KEY
from tests.withdrawals.conftest import TON, TON_ADDRESS, TRC20, TRON_ADDRESS, House, all_at_once
from tests.withdrawals.test_rpc import refusal

OTHER_TRON_ADDRESS = "T9yED5xMV5ARV98BexN97aLZ1UUq7eKSxm"
WAIT = timedelta(days=1)
FEE = "1.000000"


def add(house: House, merchant_id: str, **values: Any) -> pb.WithdrawalAddress:
    given: dict[str, Any] = {
        "withdrawal_method_id": TRC20,
        "address": TRON_ADDRESS,
        "name": "exchange",
    } | values
    request = pb.AddAddressRequest(merchant_id=merchant_id, **given)
    return house.stub.AddAddress(request).address


def book(house: House, merchant_id: str) -> list[pb.WithdrawalAddress]:
    return list(house.stub.ListAddresses(pb.ListAddressesRequest(merchant_id=merchant_id)).addresses)


def remove(house: House, address: pb.WithdrawalAddress) -> None:
    house.stub.RemoveAddress(pb.RemoveAddressRequest(address_id=address.address_id))


def ask(house: House, address: pb.WithdrawalAddress, amount: str = "10", **values: Any) -> pb.Withdrawal:
    given: dict[str, Any] = {
        "merchant_id": address.merchant_id,
        "address_id": address.address_id,
        "amount": amount,
        "network_fee": FEE,
        "request_key": str(uuid.uuid4()),
    }
    return house.stub.RequestWithdrawal(pb.RequestWithdrawalRequest(**(given | values))).withdrawal


def usable(house: House, merchant_id: str, **values: Any) -> pb.WithdrawalAddress:
    added = add(house, merchant_id, **values)
    house.clock.advance(days=WAIT.days)
    return added


def member_of(merchant_id: str) -> Actor:
    return Actor(
        kind="person",
        name="mia@example.com",
        surface="dashboard",
        person_id=uuid.uuid4(),
        roles=frozenset({"finance"}),
        merchant_id=uuid.UUID(merchant_id),
    )


@dataclass(frozen=True)
class Members:
    """Operations as members call them: with an identity service, which `stub` reaches."""

    deps: Deps
    stub: MerchantsServiceStub

    def merchant(self) -> merchants_pb2.Merchant:
        request = merchants_pb2.CreateMerchantRequest(
            name="Lamps", owner_email=f"{new_id()}@example.com", active=True
        )
        return self.stub.CreateMerchant(request).merchant


@pytest.fixture(scope="module")
def members(house: House, database_url: Callable[[str], str]) -> Iterator[Members]:
    settings = IdentitySettings(
        seal_keys=(SEAL_KEY,),
        database_url=database_url("identity"),
        bind="127.0.0.1:0",
        desk_url="http://localhost:8081",
        dashboard_url="http://localhost:8082",
        master_keys=(TEST_MASTER_KEY,),
        key_lease_milliseconds=0,
    )
    deps = wire_merchants(settings)
    with serving(merchants_rpc.add_to, deps) as address, connected(address) as channel:
        yield Members(replace(house.deps, identity=IdentityClient(address)), MerchantsServiceStub(channel))
    deps.db.dispose()


# -- the book


def test_an_address_waits_a_day_and_is_used_then(house: House) -> None:
    merchant = house.credit("100")
    added = add(house, merchant)
    assert added.waits
    assert datetime_from(added.usable_at) == house.clock.now() + WAIT
    usable_at = datetime_from(added.usable_at).isoformat()
    house.clock.set(datetime_from(added.usable_at) - timedelta(microseconds=1))
    assert refusal(ask, house, added) == ("WITHDRAWAL_ADDRESS_WAITS", {"usable_at": usable_at})
    assert house.balance(merchant)[0] == "100.000000"
    house.clock.set(datetime_from(added.usable_at))
    (listed,) = book(house, merchant)
    assert not listed.waits
    made = ask(house, added)
    assert (made.address, made.amount, made.amount_to_receive) == (TRON_ADDRESS, "10.000000", "9.000000")
    assert house.balance(merchant) == ("90.000000", "10.000000", "100.000000", "0.000000")


def test_a_removed_address_is_refused_at_once_and_waits_again_when_it_is_added_again(house: House) -> None:
    merchant = house.credit("100")
    first = usable(house, merchant)
    remove(house, first)
    assert book(house, merchant) == []
    assert refusal(ask, house, first) == ("WITHDRAWAL_ADDRESS_NOT_FOUND", {})
    assert refusal(remove, house, first) == ("WITHDRAWAL_ADDRESS_NOT_FOUND", {})
    again = add(house, merchant)
    assert refusal(ask, house, again)[0] == "WITHDRAWAL_ADDRESS_WAITS"


@pytest.mark.parametrize(
    ("values", "reason", "metadata"),
    [
        ({"withdrawal_method_id": 99}, "WITHDRAWAL_METHOD_NOT_FOUND", {}),
        ({"address": TON_ADDRESS}, "WITHDRAWAL_ADDRESS_INVALID", {"network": "TRC20"}),
        ({"address": TRON_ADDRESS[:-1]}, "WITHDRAWAL_ADDRESS_INVALID", {"network": "TRC20"}),
        ({"address_memo": "7"}, "VALIDATION_ERROR", {"field": "address_memo"}),
    ],
)
def test_an_address_that_money_would_be_lost_at_is_refused(
    house: House, values: dict[str, Any], reason: str, metadata: dict[str, str]
) -> None:
    assert refusal(add, house, **({"merchant_id": str(new_id())} | values)) == (reason, metadata)


def test_two_at_once_add_an_address_once_and_a_memo_makes_another_one(house: House) -> None:
    merchant = str(new_id())
    outcomes = all_at_once([partial(add, house, merchant) for _ in range(4)])
    refused = [each.reason for each in outcomes if isinstance(each, Refused)]
    assert refused == ["WITHDRAWAL_ADDRESS_EXISTS"] * 3
    for memo in ("7", "8"):
        add(house, merchant, withdrawal_method_id=TON, address=TON_ADDRESS, address_memo=memo)
    ton = {"withdrawal_method_id": TON, "address": TON_ADDRESS, "address_memo": "7"}
    assert refusal(add, house, merchant, **ton)[0] == "WITHDRAWAL_ADDRESS_EXISTS"
    assert [each.address_memo for each in book(house, merchant)] == ["8", "7", ""]
    assert add(house, str(new_id())).waits, "another merchant's book is another one"


def test_a_book_and_a_day_have_bounds(house: House) -> None:
    merchant, ton = str(new_id()), {"withdrawal_method_id": TON, "address": TON_ADDRESS}
    for number in range(ADDRESSES_PER_DAY_MOST):
        remove(house, add(house, merchant, **ton, address_memo=str(number)))
    most = {"most": str(ADDRESSES_PER_DAY_MOST)}
    assert refusal(add, house, merchant, **ton) == ("WITHDRAWAL_ADDRESSES_LIMITED", most)
    for number in range(ADDRESSES_MOST):
        if number % ADDRESSES_PER_DAY_MOST == 0:
            house.clock.advance(days=1, seconds=1)
        add(house, merchant, **ton, address_memo=str(number))
    house.clock.advance(days=2)
    most = {"most": str(ADDRESSES_MOST)}
    assert refusal(add, house, merchant, **ton, address_memo="x") == ("WITHDRAWAL_ADDRESSES_LIMITED", most)


# -- requests


def test_the_same_form_twice_makes_one_withdrawal_also_when_its_address_is_gone(house: House) -> None:
    merchant = house.credit("100")
    address, key = usable(house, merchant), str(uuid.uuid4())
    made = all_at_once([partial(ask, house, address, request_key=key)] * 4)
    assert not [each for each in made if isinstance(each, Refused)]
    assert len({each.withdraw_uuid for each in made if isinstance(each, pb.Withdrawal)}) == 1
    remove(house, address)
    assert ask(house, address, request_key=key) == made[0]
    assert house.balance(merchant)[:2] == ("90.000000", "10.000000")
    again = partial(ask, house, address, "11", request_key=key)
    assert refusal(again) == ("VALIDATION_ERROR", {"field": "request_key"})


def test_requests_at_once_do_not_overdraw(house: House) -> None:
    merchant = house.credit("100")
    address = usable(house, merchant)
    outcomes = all_at_once([partial(ask, house, address, "30") for _ in range(8)])
    refused = [each.reason for each in outcomes if isinstance(each, Refused)]
    assert refused == ["INSUFFICIENT_BALANCE"] * 5
    assert house.balance(merchant)[:2] == ("10.000000", "90.000000")


def test_an_address_that_is_removed_while_requests_run_gets_those_before_its_removal_alone(
    house: House,
) -> None:
    merchant = house.credit("1000")
    for _ in range(5):
        address = usable(house, merchant)
        calls: list[Callable[[], Any]] = [partial(ask, house, address) for _ in range(4)]
        calls.insert(2, partial(remove, house, address))
        outcomes = all_at_once(calls)
        refused = {each.reason for each in outcomes if isinstance(each, Refused)}
        assert refused <= {"WITHDRAWAL_ADDRESS_NOT_FOUND"}
        assert refusal(ask, house, address)[0] == "WITHDRAWAL_ADDRESS_NOT_FOUND"


def test_an_address_is_not_removed_under_a_request_that_uses_it(house: House) -> None:
    address = usable(house, house.credit("100"))
    id, merchant = uuid.UUID(address.address_id), uuid.UUID(address.merchant_id)
    with house.deps.db.transaction() as request:
        assert store.to_use(request, merchant, id) is not None
        with pytest.raises(DatabaseBusy), house.deps.db.transaction() as removal:
            removal.execute(text("SET LOCAL lock_timeout = '100ms'"))
            store.locked(removal, id)
    remove(house, address)


@pytest.mark.parametrize(
    ("values", "reason", "metadata"),
    [
        ({"amount": "4.999999"}, "WITHDRAWAL_AMOUNT_INVALID", {"minimum": "5.000000"}),
        (
            {"amount": "100.000001"},
            "INSUFFICIENT_BALANCE",
            {"available": "100.000000", "requested": "100.000001"},
        ),
        ({"network_fee": "0.5"}, "EDIT_CONFLICT", {"field": "network_fee", "now": FEE}),
    ],
)
def test_a_request_that_cannot_be_is_refused_with_its_reason(
    house: House, values: dict[str, Any], reason: str, metadata: dict[str, str]
) -> None:
    merchant = house.credit("100")
    address = usable(house, merchant)
    assert refusal(ask, house, address, **({"amount": "10"} | values)) == (reason, metadata)
    assert house.balance(merchant)[0] == "100.000000"


def test_another_merchants_address_is_one_that_does_not_exist(house: House) -> None:
    theirs, own = usable(house, house.credit("100")), house.credit("100")
    assert refusal(ask, house, theirs, merchant_id=own) == ("WITHDRAWAL_ADDRESS_NOT_FOUND", {})
    stranger = partial(addresses.remove_address, house.deps, address_id=theirs.address_id)
    assert refusal(acting, member_of(own), stranger) == ("WITHDRAWAL_ADDRESS_NOT_FOUND", {})
    assert [each.address_id for each in book(house, theirs.merchant_id)] == [theirs.address_id]
    acting(member_of(theirs.merchant_id), stranger)
    assert book(house, theirs.merchant_id) == []


# -- what is kept


def test_adding_and_removing_are_acts_with_their_author_and_the_entry_never_changes(
    house: House, members: Members
) -> None:
    merchant = members.merchant().merchant_id
    call = partial(
        addresses.add_address,
        members.deps,
        merchant_id=merchant,
        withdrawal_method_id=TRC20,
        address=OTHER_TRON_ADDRESS,
        address_memo=None,
        name="cold wallet",
    )
    added = acting(member_of(merchant), call)
    assert added.added_by == "mia@example.com"
    acting(ANN, partial(addresses.remove_address, house.deps, address_id=str(added.id)))
    acts = house.execute(
        "SELECT act, actor_name, merchant_id::text FROM acts WHERE object = %s ORDER BY id",
        f"withdrawal-address:{added.id}",
    )
    assert acts == [
        ("withdrawal-address.add", "mia@example.com", merchant),
        ("withdrawal-address.remove", "ann@example.com", merchant),
    ]
    assert acting(ANN, partial(call, name="by us")).added_by == "the operator", (
        "members learn no operator's name"
    )
    for change in ("usable_at = created_at", f"address = '{TRON_ADDRESS}'", "removed_at = NULL"):
        with pytest.raises(Exception, match="is refused"):
            house.execute(
                f"UPDATE withdrawal_addresses SET {change} WHERE id = %s", str(added.id), url=house.admin_url
            )
    with pytest.raises(Exception, match="is refused"):
        house.execute("DELETE FROM withdrawal_addresses WHERE id = %s", str(added.id), url=house.admin_url)


# -- what members see and may do of withdrawals


def test_a_member_is_always_the_user_and_cannot_cancel_what_is_being_sent(house: House) -> None:
    merchant = house.credit("100")
    made, begun = house.withdraw(merchant), house.withdraw(merchant)
    house.process(begun)
    member = member_of(merchant)

    def cancel(of: pb.Withdrawal) -> Callable[[], Any]:
        return partial(
            stepping.cancel_withdrawal,
            house.deps,
            withdraw_uuid=of.withdraw_uuid,
            by_user=False,
            expected_stage="",
        )

    assert refusal(acting, member, cancel(begun))[0] == "WITHDRAWAL_STATE_CONFLICT"
    assert acting(member, cancel(made)).substatus == "cancelled_by_user"
    assert refusal(acting, member_of(str(new_id())), cancel(begun)) == ("WITHDRAWAL_NOT_FOUND", {})


def test_a_member_reads_no_operators_name_and_no_request_for_a_second_person(house: House) -> None:
    merchant = house.credit("5000")
    made = house.withdraw(merchant, "2000")
    process = partial(stepping.process_withdrawal, house.deps, withdraw_uuid=made.withdraw_uuid)
    assert refusal(acting, ANN, process)[0] == "APPROVAL_REQUIRED"
    whole = house.stub.GetWithdrawalStory(pb.GetWithdrawalStoryRequest(withdraw_uuid=made.withdraw_uuid))
    assert whole.pending_approval_id
    assert {each.act for each in whole.acts} == {"withdrawal.create", "approval.request"}
    seen = acting(member_of(merchant), partial(story_as_seen, whole))
    assert not seen.pending_approval_id
    assert [(each.act, each.actor.name) for each in seen.acts] == [("withdrawal.create", "the operator")]
    story = partial(reading.get_withdrawal_story, house.deps, withdraw_uuid=made.withdraw_uuid)
    assert refusal(acting, member_of(str(new_id())), story) == ("WITHDRAWAL_NOT_FOUND", {})


def test_the_wait_is_a_setting_and_counts_from_the_addition(house: House) -> None:
    assert house.deps.settings.address_wait_seconds == WAIT.total_seconds()
    now: datetime = house.clock.now()
    assert datetime_from(add(house, str(new_id())).created_at) == now


# -- bans


def test_members_of_a_banned_merchant_or_a_blocked_owner_add_and_request_nothing(
    house: House, members: Members
) -> None:
    merchant = members.merchant()
    id = house.credit("100", merchant.merchant_id)
    address = usable(house, id)
    member = member_of(id)
    request: dict[str, Any] = {
        "merchant_id": id,
        "address_id": address.address_id,
        "amount": "10",
        "network_fee": FEE,
    }
    new: dict[str, Any] = {"withdrawal_method_id": TRC20, "address_memo": None, "name": "x"}
    first = str(uuid.uuid4())

    def reasons(deps: Deps, key: str = "") -> list[str]:
        """The answers to a member that requests a withdrawal, and adds an address."""
        calls = (
            partial(creating.request_withdrawal, deps, **request, request_key=key or str(uuid.uuid4())),
            partial(addresses.add_address, deps, merchant_id=id, address=OTHER_TRON_ADDRESS, **new),
        )
        return [refusal(acting, member, call)[0] for call in calls]

    made = acting(member, partial(creating.request_withdrawal, members.deps, **request, request_key=first))
    members.stub.BanMerchant(merchants_pb2.BanMerchantRequest(merchant_id=id))
    assert reasons(members.deps) == ["MERCHANT_BLOCKED"] * 2
    again = partial(creating.request_withdrawal, members.deps, **request, request_key=first)
    assert acting(member, again).id == made.id, "a repeated request gets the withdrawal that it made"
    assert house.withdraw(id, "7").amount == "7.000000", "an operator may pay out"
    members.stub.UnbanMerchant(merchants_pb2.UnbanMerchantRequest(merchant_id=id))
    owner = {"email": merchant.owner_email}
    members.stub.BlockOwner(merchants_pb2.BlockOwnerRequest(**owner))
    assert reasons(members.deps) == ["OWNER_BLOCKED"] * 2
    members.stub.UnblockOwner(merchants_pb2.UnblockOwnerRequest(**owner))
    away = replace(house.deps, identity=IdentityClient("127.0.0.1:1"))
    for deps in (away, house.deps):
        assert reasons(deps) == ["DB_UNAVAILABLE"] * 2, "nothing is allowed that nobody could check"
    assert house.balance(id)[:2] == ("83.000000", "17.000000")
    assert len(book(house, id)) == 1
