"""A master key is replaced while everything goes on working, and the old one is then of no use."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from cryptography.fernet import Fernet

from kit.base.vault import MasterKeyMissing
from services.identity.config import IdentitySettings
from services.identity.operations import api_keys, merchants
from services.identity.operations.api_keys import NewApiKey
from services.identity.operations.merchants import MerchantOptions
from services.identity.wiring import Deps, wire

OLD, NEW, NEWEST = (Fernet.generate_key().decode() for _ in range(3))


@pytest.fixture
def with_keys(make_settings: Callable[..., IdentitySettings]) -> Iterator[Callable[..., Deps]]:
    """`with_keys(NEW, OLD)` is a freshly started service that has these master keys."""
    started: list[Deps] = []

    def start(*master_keys: str) -> Deps:
        started.append(wire(make_settings(*master_keys)))
        return started[-1]

    yield start
    for deps in started:
        deps.db.dispose()


def new_keys(deps: Deps, count: int) -> list[NewApiKey]:
    """Of a new merchant."""
    options = MerchantOptions(name="Shop")
    merchant = merchants.create_merchant(deps, owner_email="a@example.com", active=True, options=options)
    return [api_keys.create_api_key(deps, merchant_id=str(merchant.merchant_id)) for _ in range(count)]


def works(deps: Deps, key: NewApiKey) -> bool:
    """Whether the key lets its merchant in and its secret signs."""
    holder = api_keys.authenticate(deps, api_key=key.api_key)
    asked = [(str(holder.merchant.merchant_id), str(key.key_id))]
    (signing,) = api_keys.get_signing_secrets(deps, queries=asked)
    return signing.secret == key.secret


def test_keys_and_secrets_outlive_the_master_key_they_were_made_under(
    with_keys: Callable[..., Deps], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.identity.operations.api_keys.RESEALED_PER_TRANSACTION", 3)
    before = with_keys(OLD)
    assert api_keys.rotate_secrets(before) == 0  # nothing is there yet
    keys = new_keys(before, 3)

    between = with_keys(NEW, OLD)
    keys += new_keys(between, 1)
    assert all(works(between, key) for key in keys)
    with pytest.raises(MasterKeyMissing):
        works(with_keys(NEW), keys[0])  # too early to drop the old one

    assert api_keys.rotate_secrets(between) == 5  # four secrets and the lookup key

    assert all(works(with_keys(NEW), key) for key in keys)
    assert all(works(between, key) for key in keys)
    with pytest.raises(MasterKeyMissing):
        works(with_keys(OLD), keys[0])


def test_the_command_rotates_and_tells_what_it_did(
    with_keys: Callable[..., Deps], make_settings: Callable[..., IdentitySettings]
) -> None:
    """Runs after the test above, on its database: the master keys are those it left."""
    (key,) = new_keys(with_keys(NEW), 1)

    def rotate(*master_keys: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "FIATGATE_MASTER_KEYS": ",".join(master_keys),
            "FIATGATE_IDENTITY_DATABASE_URL": make_settings().database_url,
            "FIATGATE_IDENTITY_BIND": "127.0.0.1:0",
            "FIATGATE_DESK_URL": "http://localhost:8081",
            "FIATGATE_DASHBOARD_URL": "http://localhost:8082",
        }
        command = [sys.executable, "-m", "services.identity", "rotate-secrets"]
        return subprocess.run(
            command, env=os.environ | settings, capture_output=True, text=True, timeout=60, check=False
        )

    failed = rotate(NEWEST, OLD)
    assert failed.returncode == 1
    assert "no key in MASTER_KEYS opens" in failed.stderr
    assert works(with_keys(NEW), key)  # nothing was half done

    done = rotate(NEWEST, NEW)
    assert done.returncode == 0, done.stderr
    assert '"event": "secrets_rotated"' in done.stderr
    assert works(with_keys(NEWEST), key)
