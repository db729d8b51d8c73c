"""People of the desk and of a merchant, from their invitation to the calls that services let their tokens make.

accounts signs the tokens, the other services fetch its keys, and refusals are recorded. Certificates are in tests/mtls.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deploy.local.waiting import wait_until
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.status.v1 import status_pb2
from kit.rpc.actor_tokens import ALGORITHM
from tests.e2e.market import Customer, Shop
from tests.e2e.people import House, named, refusal
from tests.support.receiver import Receiver
from tests.support.stack import Stack


@pytest.fixture(scope="module")
def house(stack: Stack) -> Iterator[House]:
    with ExitStack() as opened:
        yield House(stack, opened)


@pytest.fixture
def waiting_deal(shop: Shop, receiver: Receiver) -> str:
    invoice = shop.create(receiver.url())
    Customer(invoice.created["payment_link"]).choose_and_pay()
    return str(invoice.read()["deal"]["deal_id"])


def test_a_person_of_the_desk_confirms_a_deal_and_is_its_author(house: House, waiting_deal: str) -> None:
    eve = house.staff("desk")
    confirm = invoices_pb2.ConfirmDealRequest(deal_id=waiting_deal)
    assert named(eve.token(), lambda: house.desk.ConfirmDeal(confirm)).deal.sub_status == "successfully_paid"
    get = invoices_pb2.GetDealRequest(deal_id=waiting_deal)
    assert named(eve.token(), lambda: house.desk.GetDeal(get)).history[-1].actor == eve.email
    ((act, object, author, *_),) = house.acts("invoices", "actor_name = %s", eve.email)
    assert (act, object, author) == ("deal.confirm", f"deal:{waiting_deal}", eve.email)


def test_a_token_of_the_dashboard_confirms_no_deal_and_the_attempt_is_recorded(
    house: House, shop: Shop, waiting_deal: str
) -> None:
    owner = house.member(shop.merchant_id, "owner")
    confirm = invoices_pb2.ConfirmDealRequest(deal_id=waiting_deal)
    found = refusal(owner.token(), lambda: house.desk.ConfirmDeal(confirm))
    assert found == ("NOT_PERMITTED", {"needed": "none of this surface"})
    assert house.acts("invoices", "actor_name = %s", owner.email) == [
        (
            "call.refused",
            "call:DealDeskService/ConfirmDeal",
            owner.email,
            shop.merchant_id,
            "NOT_PERMITTED",
            "needed: none of this surface",
        )
    ]


def forged(token: str, how: str) -> str:
    head, _, signature = token.split(".")
    claims = jwt.decode(token, options={"verify_signature": False})
    header = {"kid": jwt.get_unverified_header(token)["kid"]}
    if how == "more roles":
        more = json.dumps(claims | {"roles": ["admin"]}).encode()
        return f"{head}.{base64.urlsafe_b64encode(more).rstrip(b'=').decode()}.{signature}"
    if how == "another key":
        return jwt.encode(claims, Ed25519PrivateKey.generate(), algorithm=ALGORITHM, headers=header)
    if how == "an unknown key":
        return jwt.encode(claims, Ed25519PrivateKey.generate(), algorithm=ALGORITHM, headers={"kid": "x"})
    if how == "none":
        return jwt.encode(claims, "", algorithm="none", headers=header)
    return jwt.encode(claims, "x" * 32, algorithm="HS256", headers=header)


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("more roles", "signature"),
        ("another key", "signature"),
        ("an unknown key", "key"),
        ("none", "algorithm"),
        ("HS256", "algorithm"),
    ],
)
def test_a_forged_token_opens_no_service_and_is_recorded(house: House, how: str, problem: str) -> None:
    token = forged(house.staff("viewer").token(), how)
    for service, stub in house.statuses.items():
        assert_refused_and_recorded(house, service, stub, token, problem)


def assert_refused_and_recorded(house: House, service: str, stub: Any, token: str, problem: str) -> None:
    """Tries until an attempt is recorded: all that name no author share two records a second."""

    def recorded() -> list[Any]:
        return house.acts(service, "refused = 'ACTOR_INVALID' AND note = %s", f"problem: {problem}")

    before = len(recorded())

    def is_recorded() -> bool:
        found = refusal(token, partial(stub.GetStatus, status_pb2.GetStatusRequest()))
        assert found == ("ACTOR_INVALID", {"problem": problem}), service
        return len(recorded()) == before + 1

    wait_until(is_recorded, f"{service} to record the attempt", timeout_seconds=30)
    assert recorded()[-1][2] == "", "the claims of a forged token name no author"


def test_a_role_that_is_taken_away_counts_no_more_from_the_next_request(
    house: House, waiting_deal: str
) -> None:
    eve = house.staff("desk")
    (person,) = [
        each for each in house.people.ListPeople(pb.ListPeopleRequest()).people if each.email == eve.email
    ]
    house.people.SetRoles(pb.SetRolesRequest(person_id=person.person_id, roles=["viewer"]))
    confirm = invoices_pb2.ConfirmDealRequest(deal_id=waiting_deal)
    assert refusal(eve.token(), lambda: house.desk.ConfirmDeal(confirm))[0] == "NOT_PERMITTED"
