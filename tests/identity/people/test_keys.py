"""Signing keys are replaced while their tokens live; a master key is replaced while everything goes on; old rows go."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import text

from kit.base.vault import MasterKeyMissing
from kit.rpc.actor_keys import FETCH_SECONDS, REFRESH_SECONDS
from kit.rpc.actor_tokens import Invalid, read_token
from kit.work import worker
from services.identity.config import IdentitySettings
from services.identity.domain.people import KEY_KEPT, KEY_PUBLISHED_AHEAD
from services.identity.operations import keys, pruning
from services.identity.wiring import Deps, wire
from tests.identity.people.house import Someone, authorize, operator
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


def test_a_new_key_signs_once_every_service_has_fetched_it(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    """A service that does not know a key fetches all of them meanwhile: its pages would be late, or fail."""
    token_of(ada)
    fetched_before = Published(deps)
    keys.rotate_actor_key(deps)
    fetched_later = Published(deps)
    assert (len(fetched_before), len(fetched_later)) == (1, 2)
    clock.advance(seconds=74)
    read_token(token_of(ada), fetched_before, now=clock.now())
    clock.advance(seconds=11)
    token = token_of(ada)
    read_token(token, fetched_later, now=clock.now())
    with pytest.raises(Invalid, match="key"):
        read_token(token, fetched_before, now=clock.now())


def test_a_key_that_is_replaced_at_once_signs_in_its_turn(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    token_of(ada)
    keys.rotate_actor_key(deps)
    clock.advance(seconds=40)
    fetched = Published(deps)
    keys.rotate_actor_key(deps)
    clock.advance(seconds=40)
    read_token(token_of(ada), fetched, now=clock.now())
    clock.advance(seconds=50)
    with pytest.raises(Invalid, match="key"):
        read_token(token_of(ada), fetched, now=clock.now())
    read_token(token_of(ada), Published(deps), now=clock.now())


def test_a_key_is_published_for_longer_than_services_take_to_fetch_it() -> None:
    slowest_seconds = REFRESH_SECONDS * max(worker._PACES) + FETCH_SECONDS
    assert slowest_seconds < KEY_PUBLISHED_AHEAD.total_seconds()


def test_a_replaced_key_counts_until_its_last_token_has_ended(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    keys.signing_key(deps)
    keys.rotate_actor_key(deps)
    clock.advance(seconds=KEY_PUBLISHED_AHEAD.total_seconds() - 0.001)
    keys.signing_key(deps)
    clock.advance(seconds=KEY_KEPT.total_seconds() - 0.001)
    last = token_of(ada)
    clock.advance(seconds=59)
    assert read_token(last, Published(deps), now=clock.now()).name == ada.email
    clock.advance(minutes=1)
    assert len(Published(deps)) == 1
    with pytest.raises(Invalid, match="key"):
        read_token(last, Published(deps), now=clock.now())


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
    make_settings: Callable[..., IdentitySettings], clock: ManualClock
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
