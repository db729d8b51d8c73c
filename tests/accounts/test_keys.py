"""Signing keys are replaced while their tokens live; a master key is replaced while everything goes on; old rows go."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import text

from kit.base.vault import MasterKeyMissing
from kit.rpc.actor_tokens import Invalid, read_token
from services.accounts.config import AccountsSettings
from services.accounts.credentials.actor_keys import KeptKey
from services.accounts.operations import keys, pruning
from services.accounts.wiring import Deps, wire
from tests.accounts.house import Someone, authorize, operator
from tests.support.clock import ManualClock

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))


class Published:
    """The answer of ListActorKeys, as another service keeps it."""

    def __init__(self, deps: Deps) -> None:
        self._keys = {
            str(each.id): Ed25519PublicKey.from_public_bytes(each.public_key)
            for each in keys.list_actor_keys(deps)
        }

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key_id: str) -> Ed25519PublicKey | None:
        return self._keys.get(key_id)


@pytest.fixture
def deps(deps: Deps) -> Deps:
    with deps.db.transaction() as tx:
        tx.execute(text("DELETE FROM signing_keys"))
    return deps


@pytest.fixture
def ada(deps: Deps, new_email: Callable[[], str]) -> Someone:
    return operator(deps, new_email(), "desk", "prices")


def token_of(someone: Someone) -> str:
    return authorize(someone.deps, someone.token).actor_token


def test_a_token_names_the_person_and_counts_for_a_minute(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    token, published = token_of(ada), Published(deps)
    actor = read_token(token, published, now=clock.now())
    assert actor == ada.actor
    assert actor.roles == {"desk", "prices"}
    clock.advance(seconds=59)
    read_token(token, published, now=clock.now())
    clock.advance(seconds=1)
    with pytest.raises(Invalid, match="age"):
        read_token(token, published, now=clock.now())


def test_a_replaced_key_counts_until_its_last_token_has_ended(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    before = token_of(ada)
    another_process = replace(deps, kept_key=KeptKey())
    keys.signing_key(another_process)
    keys.rotate_actor_key(deps)
    after, late = token_of(ada), token_of(replace_deps(ada, another_process))
    published = Published(deps)
    assert len(published) == 2
    for token in (before, after, late):
        assert read_token(token, published, now=clock.now()).name == ada.email
    clock.advance(seconds=10)
    read_token(token_of(replace_deps(ada, another_process)), published, now=clock.now())
    clock.advance(minutes=2)
    assert len(Published(deps)) == 1
    with pytest.raises(Invalid, match="key"):
        read_token(before, Published(deps), now=clock.now())


def replace_deps(someone: Someone, deps: Deps) -> Someone:
    return replace(someone, deps=deps)


def test_the_first_key_is_there_before_a_token_and_a_key_is_replaced_when_it_is_old(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    assert keys.replace_old_key(deps)
    assert len(Published(deps)) == 1
    token_of(ada)
    assert len(Published(deps)) == 1
    clock.advance(days=29)
    assert not keys.replace_old_key(deps)
    clock.advance(days=2)
    assert keys.replace_old_key(deps)
    assert not keys.replace_old_key(deps)
    assert len(Published(deps)) == 2


def test_the_service_knows_its_own_keys(deps: Deps, ada: Someone, clock: ManualClock) -> None:
    own = keys.OwnKeys(deps)
    token = token_of(ada)
    assert read_token(token, own, now=clock.now()).name == ada.email
    assert own.find("another") is None


@pytest.fixture
def with_keys(
    make_settings: Callable[..., AccountsSettings], clock: ManualClock
) -> Iterator[Callable[..., Deps]]:
    """`with_keys(NEW, OLD)` is a freshly started service that has these master keys."""
    started: list[Deps] = []

    def start(*master_keys: str) -> Deps:
        started.append(wire(make_settings(*master_keys), clock=clock))
        return started[-1]

    yield start
    for deps in started:
        deps.db.dispose()


def test_all_that_is_encrypted_outlives_its_master_key(
    deps: Deps, with_keys: Callable[..., Deps], new_email: Callable[[], str], clock: ManualClock
) -> None:
    with deps.db.transaction() as tx:
        tx.execute(text("DELETE FROM totps"))
        tx.execute(text("DELETE FROM mails"))
    ada = operator(with_keys(OLD), new_email())
    ada.add_password_and_totp()
    token_of(ada)
    between = with_keys(NEW, OLD)
    assert keys.rotate_secrets(between) == 2  # the signing key and the TOTP secret
    after = with_keys(NEW)
    clock.advance(minutes=1)
    ada = replace(ada, deps=after)
    ada.token = ada.sign_in()
    token_of(ada)
    with pytest.raises(MasterKeyMissing):
        keys.signing_key(with_keys(OLD))


def test_rows_that_are_over_are_deleted_and_no_others(
    deps: Deps, new_email: Callable[[], str], clock: ManualClock
) -> None:
    ada = operator(deps, new_email())
    token_of(ada)
    keys.rotate_actor_key(deps)
    clock.advance(days=29)
    young = operator(deps, new_email())
    while pruning.prune(deps):
        pass
    assert {ada.email, young.email} <= people_with_sessions(deps)
    clock.advance(days=2)
    while pruning.prune(deps):
        pass
    assert people_with_sessions(deps) & {ada.email, young.email} == {young.email}
    with deps.db.transaction() as tx:
        left = {table: tx.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() for table in TABLES}
    assert left["signing_keys"] == 1
    assert left["invitations"] > 0
    clock.advance(minutes=timedelta(days=95) / timedelta(minutes=1))
    while pruning.prune(deps):
        pass
    with deps.db.transaction() as tx:
        left = {table: tx.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() for table in TABLES}
    assert left == {"sessions": 0, "invitations": 0, "challenges": 0, "guesses": 0, "signing_keys": 1}
    authorize_again = operator(deps, ada.email)
    assert authorize(deps, authorize_again.token).person.id == ada.person_id


TABLES = ("sessions", "invitations", "challenges", "guesses", "signing_keys")


def people_with_sessions(deps: Deps) -> set[str]:
    joined = text("SELECT email FROM people JOIN sessions ON sessions.person_id = people.id")
    with deps.db.transaction() as tx:
        return set(tx.execute(joined).scalars())
