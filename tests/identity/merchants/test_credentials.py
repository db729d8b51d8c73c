"""Keys, secrets and what of them is kept."""

import pytest
from cryptography.fernet import Fernet

from kit.base.vault import MasterKeyMissing, Vault
from services.identity.credentials import api_keys as credentials
from services.identity.credentials.api_keys import ApiKeyHasher
from services.identity.wiring import Deps

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def test_keys_and_secrets_are_long_random_and_readable() -> None:
    keys = {credentials.new_api_key("live") for _ in range(100)}
    secrets = {credentials.new_secret() for _ in range(100)}
    assert len(keys) == len(secrets) == 100
    assert all(
        len(key) == 41 and key.startswith("fg_live_") and key[8:].isalnum() and key.isascii() for key in keys
    )
    assert all(len(secret) == 43 and secret.isalnum() and secret.isascii() for secret in secrets)


@pytest.mark.parametrize(("mode", "other"), [("live", "test"), ("test", "live")])
def test_only_keys_of_the_mode_and_those_from_before_modes_are_looked_up(mode: str, other: str) -> None:
    vault = Vault([NEW], purpose="keys")
    hasher = ApiKeyHasher(vault, mode, lambda: vault.seal(credentials.new_lookup_key()))
    key = credentials.new_api_key(mode)
    assert hasher.hash_of(key) and hasher.hash_of(key.replace(f"_{mode}", ""))
    assert hasher.hash_of(credentials.new_api_key(other)) is None
    assert credentials.hint_of(key) == key[:12] and credentials.hint_of("fg_" + "a" * 33) == "fg_aaaa"


def test_a_value_sealed_twice_looks_different_and_opens_the_same() -> None:
    vault = Vault([NEW], purpose="keys")
    one, other = vault.seal(b"secret"), vault.seal(b"secret")
    assert one != other
    assert vault.open(one) == vault.open(other) == b"secret"
    assert b"secret" not in one


def test_every_master_key_opens_but_only_the_first_seals() -> None:
    both = Vault([NEW, OLD], purpose="keys")
    assert both.open(Vault([OLD], purpose="keys").seal(b"old")) == b"old"
    assert Vault([NEW], purpose="keys").open(both.seal(b"new")) == b"new"
    assert Vault([NEW], purpose="keys").open(both.reseal(Vault([OLD], purpose="keys").seal(b"old"))) == b"old"


@pytest.mark.parametrize(
    "spoil", [lambda sealed: sealed[:-4] + b"AAA=", lambda sealed: b"", lambda sealed: b"\0"]
)
def test_what_was_changed_or_sealed_elsewhere_does_not_open(spoil: object) -> None:
    assert callable(spoil)
    with pytest.raises(MasterKeyMissing):
        Vault([NEW], purpose="keys").open(spoil(Vault([NEW], purpose="keys").seal(b"secret")))
    with pytest.raises(MasterKeyMissing):
        Vault([NEW], purpose="keys").reseal(Vault([OLD], purpose="keys").seal(b"secret"))


def test_the_hash_of_a_key_depends_on_the_lookup_key() -> None:
    key = credentials.new_api_key("live")
    one, other = (credentials.hash_of(key, credentials.new_lookup_key()) for _ in range(2))
    assert len(one) == 32
    assert one != other


def test_the_lookup_key_is_asked_for_until_there_is_one_and_then_once() -> None:
    vault, api_key = Vault([NEW], purpose="keys"), credentials.new_api_key("test")
    lookup_key = credentials.new_lookup_key()
    answers = [None, vault.seal(lookup_key)]
    hasher = ApiKeyHasher(vault, "test", lambda: answers.pop(0))
    assert hasher.hash_of(api_key) is None
    assert hasher.hash_of(api_key) == hasher.hash_of(api_key) == credentials.hash_of(api_key, lookup_key)
    assert answers == []


def test_a_sealed_signing_secret_is_not_taken_as_the_lookup_key() -> None:
    """Its merchant knows it, and could make a key for any merchant by SQL."""
    vault = Vault([NEW], purpose="keys")
    hasher = ApiKeyHasher(vault, "live", lambda: vault.seal(credentials.new_secret().encode()))
    with pytest.raises(MasterKeyMissing):
        hasher.hash_of(credentials.new_api_key("live"))


def test_an_encrypted_value_of_people_opens_nothing_of_merchants_nor_the_other_way(deps: Deps) -> None:
    """SQL under the service's role could else put a secret that it knows in the place of a key."""
    for one, other in ((deps.vault, deps.key_vault), (deps.key_vault, deps.vault)):
        with pytest.raises(MasterKeyMissing):
            other.open(one.seal(credentials.new_lookup_key()))
