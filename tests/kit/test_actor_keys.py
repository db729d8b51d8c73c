"""The public keys of actor tokens: fetched at once when one is unknown, seldom, and kept while identity is away."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc as pb_grpc
from kit.rpc import actor_keys
from kit.rpc.actor_keys import WAITING_AT_MOST, ActorKeys
from kit.rpc.actor_tokens import raw_public_key
from kit.rpc.server import RpcServer
from kit.work.worker import Stop


class Accounts(pb_grpc.ActorKeysServiceServicer):
    """Publishes the keys that it is given, and counts how often it is asked."""

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self.keys = {"first": Ed25519PrivateKey.generate()}
        self.fetches = 0
        self.answers = threading.Event()
        self.answers.set()
        self.start()

    def start(self) -> None:
        self._server = RpcServer()
        pb_grpc.add_ActorKeysServiceServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait(5)

    def ListActorKeys(
        self, request: pb.ListActorKeysRequest, context: grpc.ServicerContext
    ) -> pb.ListActorKeysResponse:
        self.fetches += 1
        self.answers.wait(600)
        keys = self.keys.items()
        return pb.ListActorKeysResponse(
            keys=[pb.ActorKey(key_id=key_id, public_key=raw_public_key(key)) for key_id, key in keys]
        )


@pytest.fixture
def accounts() -> Iterator[Accounts]:
    made = Accounts()  # type: ignore[abstract]  # services call this method alone
    yield made
    made.stop()


@pytest.fixture
def keys(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> Iterator[ActorKeys]:
    """Those of a service, with the worker that fetches them. A slow machine ends no fetch."""
    for name in ("FETCH_SECONDS", "WAIT_SECONDS"):
        monkeypatch.setattr(actor_keys, name, 600)  # longer than a test may last
    made, stop = ActorKeys(f"127.0.0.1:{accounts.port}"), Stop()
    worker = threading.Thread(target=made.run, args=(stop,))
    worker.start()
    yield made
    accounts.answers.set()
    stop.set()
    worker.join(15)
    assert not worker.is_alive()


def is_known(keys: ActorKeys, accounts: Accounts, key_id: str) -> bool:
    found = keys.find(key_id)
    return found is not None and found.public_bytes_raw() == raw_public_key(accounts.keys[key_id])


def test_a_new_key_is_known_at_its_first_token_and_a_dropped_one_no_more(
    accounts: Accounts, keys: ActorKeys
) -> None:
    assert is_known(keys, accounts, "first")
    accounts.keys["second"] = Ed25519PrivateKey.generate()
    assert is_known(keys, accounts, "second")
    del accounts.keys["first"]
    assert keys.find("unknown") is None
    assert keys.find("first") is None


def test_invented_keys_hold_few_threads_of_a_service(accounts: Accounts, keys: ActorKeys) -> None:
    assert is_known(keys, accounts, "first")
    accounts.answers.clear()
    with ThreadPoolExecutor(16) as callers:
        found = [callers.submit(keys.find, f"invented-{number}") for number in range(64)]
        wait_until(
            lambda: sum(each.done() for each in found) == 64 - WAITING_AT_MOST,
            "all but a few to be refused while identity does not answer",
            timeout_seconds=60,
        )
        accounts.answers.set()
        assert [each.result(60) for each in found] == [None] * 64


def test_invented_keys_cost_accounts_no_call_before_the_pause_is_over(
    accounts: Accounts, keys: ActorKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_known(keys, accounts, "first")
    monkeypatch.setattr(actor_keys, "LEAST_SECONDS_BETWEEN", 600)  # longer than a test may last
    monkeypatch.setattr(actor_keys, "WAIT_SECONDS", 0.01)
    begun = accounts.fetches
    assert [keys.find(f"invented-{number}") for number in range(64)] == [None] * 64
    assert accounts.fetches <= begun + 1, "one may have waited for the pause of before"


def test_while_accounts_is_away_known_keys_count_and_the_service_stays_healthy(
    accounts: Accounts, keys: ActorKeys
) -> None:
    assert is_known(keys, accounts, "first")
    accounts.stop()
    assert is_known(keys, accounts, "first")
    assert keys.find("unknown") is None
    assert keys.health().healthy
    accounts.keys["second"] = Ed25519PrivateKey.generate()
    accounts.start()
    wait_until(lambda: is_known(keys, accounts, "second"), "the new key", timeout_seconds=60)


def test_a_service_that_started_before_accounts_has_its_keys_before_a_token_comes(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, accounts.keys = accounts.keys, {}
    for name in ("REFRESH_SECONDS", "FETCH_SECONDS"):
        monkeypatch.setattr(actor_keys, name, 600)  # longer than a test may last
    made, stop = ActorKeys(f"127.0.0.1:{accounts.port}"), Stop()
    worker = threading.Thread(target=made.run, args=(stop,))
    worker.start()
    try:
        wait_until(lambda: accounts.fetches > 0, "the first fetch", timeout_seconds=60)
        accounts.stop()
        accounts.keys = first
        accounts.start()
        fetches = accounts.fetches
        wait_until(lambda: accounts.fetches > fetches, "a fetch without a token", timeout_seconds=60)
    finally:
        stop.set()
        worker.join(15)
    assert is_known(made, accounts, "first")
