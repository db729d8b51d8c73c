"""Acts that end a lease: how long each waits, and the places in which members leave room to operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2 as pb
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.base.actors import Actor
from kit.base.clock import SystemClock, monotonic_seconds
from kit.base.ids import new_id
from kit.rpc.actor_tokens import write_token
from kit.rpc.actors import carry_token
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.rpc.permissions import Checks
from kit.rpc.server import Options, RpcServer
from services.identity import rpc
from services.identity.config import IdentitySettings
from services.identity.operations import api_keys, categories, merchants, owners
from services.identity.operations.merchants import MerchantOptions
from services.identity.store.versions import KnownVersions
from services.identity.wiring import Deps
from tests.identity.merchants.conftest import Shop

LEASE_SECONDS: Final = 1.0
PLACES, FLOOD = 24, 60
"""The calls of members that may be in work and wait, and more than that."""
KEY: Final = Ed25519PrivateKey.generate()


class Keys:
    def find(self, key_id: str) -> Ed25519PublicKey:
        return KEY.public_key()


@pytest.fixture
def leasing(deps: Deps, make_settings: Callable[..., IdentitySettings]) -> Deps:
    """A process that has just started: it knows no version of any row."""
    settings = make_settings(key_lease_milliseconds=int(LEASE_SECONDS * 1000))
    return replace(deps, settings=settings, known=KnownVersions())


def seconds_of(act: Callable[[], object]) -> float:
    began = monotonic_seconds()
    act()
    return monotonic_seconds() - began


def test_an_act_that_changes_nothing_waits_for_the_rest_of_a_lease_of_what_it_finds(
    leasing: Deps, shop: Shop
) -> None:
    acts: list[Callable[[Deps], object]] = [
        lambda deps: api_keys.deactivate_api_key(deps, key_id=str(shop.key.key_id)),
        lambda deps: merchants.ban_merchant(deps, merchant_id=shop.merchant_id),
        lambda deps: merchants.configure_own_merchant(
            deps, merchant_id=shop.merchant_id, options=MerchantOptions(name="Renamed", colour="#112233")
        ),
        lambda deps: owners.block_owner(deps, email=shop.email),
    ]
    for act in acts:
        assert seconds_of(lambda: act(leasing)) >= LEASE_SECONDS, "the change"  # noqa: B023  called at once
        assert seconds_of(lambda: act(leasing)) < LEASE_SECONDS / 2, "it is known for a lease"  # noqa: B023
    another = replace(leasing, known=KnownVersions())
    act = acts[0]
    assert seconds_of(lambda: act(another)) >= LEASE_SECONDS, "the change may have been a moment ago"


def test_a_change_and_its_way_back_are_another_version(leasing: Deps, shop: Shop) -> None:
    """A gateway may have read the values between."""
    process, another = leasing, replace(leasing, known=KnownVersions())

    def name(deps: Deps, text: str) -> None:
        options = MerchantOptions(name=text)
        merchants.configure_own_merchant(deps, merchant_id=shop.merchant_id, options=options)

    name(process, "A shop")
    cut_off = replace(another, settings=another.settings.model_copy(update={"key_lease_milliseconds": 0}))
    name(cut_off, "Between")
    name(cut_off, "A shop")
    assert seconds_of(lambda: name(process, "A shop")) >= LEASE_SECONDS


def test_a_category_that_is_set_again_is_written_again(leasing: Deps) -> None:
    for _ in range(2):
        set_it = lambda: categories.set_category(leasing, code="leased", commission="0.1")  # noqa: E731
        assert seconds_of(set_it) >= LEASE_SECONDS


@dataclass
class Served:
    """The service with its permissions behind a real socket, called by people."""

    server: RpcServer
    address: str

    def call(self, person: Actor, act: Callable[[MerchantsServiceStub], object]) -> str:
        """The reason of the refusal; empty when it was done."""

        def do() -> str:
            carry_token(write_token(person, key_id="one", private_key=KEY, now=SystemClock().now()))
            with channel(self.address, name="identity") as opened:
                try:
                    act(MerchantsServiceStub(opened))
                except Refused as refused:
                    return refused.reason
            return ""

        return copy_context().run(do)


@pytest.fixture
def served(leasing: Deps) -> Iterator[Served]:
    checks = Checks(keys=Keys())
    server = RpcServer(Options(service="identity", slots=rpc.SLOTS, checks=checks))
    rpc.add_to(server, leasing)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield Served(server, f"127.0.0.1:{port}")
    server.stop(1).wait()


def person_of(surface: str, role: str, merchant_id: str = "") -> Actor:
    return Actor(
        kind="person",
        name=f"{role}-{new_id().hex}@example.com",
        surface=surface,
        person_id=new_id(),
        session_id=new_id(),
        roles=frozenset({role}),
        merchant_id=UUID(merchant_id) if merchant_id else None,
        stepped_up_at=SystemClock().now(),
    )


def test_a_member_who_saves_on_many_connections_delays_neither_an_operator_nor_another_merchant(
    served: Served, leasing: Deps, shop: Shop, new_email: str
) -> None:
    other = merchants.create_merchant(
        leasing, owner_email=new_email, active=True, options=MerchantOptions(name="Another")
    )
    member = person_of("dashboard", "developer", shop.merchant_id)
    victim = person_of("dashboard", "developer", str(other.merchant_id))
    deactivate = pb.DeactivateApiKeyRequest(key_id=str(shop.key.key_id))

    def save(person: Actor, number: int = 0) -> str:
        request = pb.ConfigureOwnMerchantRequest(
            merchant_id=str(person.merchant_id), success_url=f"https://shop.example/{number}"
        )
        return served.call(person, lambda stub: stub.ConfigureOwnMerchant(request))

    with ThreadPoolExecutor(FLOOD) as threads:
        flood: list[Future[str]] = [threads.submit(save, member, number) for number in range(FLOOD)]
        wait_until(lambda: any(each.done() for each in flood), "calls to be refused", timeout_seconds=30)
        assert served.call(person_of("desk", "admin"), lambda stub: stub.DeactivateApiKey(deactivate)) == ""
        assert not all(each.done() for each in flood), "others still waited"
        assert save(victim) == ""
        assert not all(each.done() for each in flood), "others still waited"
        answers = [each.result() for each in flood]
        assert answers.count("RATE_LIMITED") >= FLOOD - PLACES
        assert "" in answers
