"""API keys and signing secrets: how they are made and stored.

                 made of                        stored as
API key          the mode and 196 random bits   HMAC-SHA256 under the lookup key
signing secret   256 random bits                encrypted
lookup key       256 random bits                encrypted

"Encrypted" means encrypted and authenticated with a master key (kit.base.vault); the code calls it `sealed`.
Keys begin with `fg_test_` or `fg_live_`, those from before modes with `fg_`.

To rotate: put a new key first, restart, run `python -m services.identity rotate-secrets`, remove the old key, restart.

API keys are hashed under the lookup key and not under a master key, because a hash, unlike an encrypted value, can't be
moved to another key without the plaintext: the removal of an old master key would shut out every merchant. The lookup
key needs no rotation: 196 random bits cannot be found by trial, even if the hashes and the lookup key leak.
"""

import hmac
import re
import secrets
import string
from collections.abc import Callable
from typing import Final

from kit.base.vault import MasterKeyMissing, Vault

_ALPHABET: Final = string.digits + string.ascii_letters
_KEY_CHARACTERS: Final = 33  # log2(62) * 33 = 196 bits
_SECRET_CHARACTERS: Final = 43  # 256 bits
_HINT_CHARACTERS: Final = 4
_LOOKUP_KEY_BYTES: Final = 32


def new_api_key(mode: str) -> str:
    return f"fg_{mode}_{_random_text(_KEY_CHARACTERS)}"


def new_secret() -> str:
    return _random_text(_SECRET_CHARACTERS)


def new_lookup_key() -> bytes:
    return secrets.token_bytes(_LOOKUP_KEY_BYTES)


def hint_of(api_key: str) -> str:
    """Returns the start of the key: enough to recognise it, far too little to guess it."""
    return api_key[: _HINT_CHARACTERS - _KEY_CHARACTERS]


def hash_of(api_key: str, lookup_key: bytes) -> bytes:
    return hmac.digest(lookup_key, api_key.encode(), "sha256")


def opened_lookup_key(vault: Vault, sealed: bytes) -> bytes:
    """Returns the lookup key. Raises MasterKeyMissing for any other value.

    SQL under the service's role can put an encrypted signing secret in the place of the lookup key. Its merchant knows
    it, and could compute the hash of a key for any merchant. A signing secret has another length.
    """
    lookup_key = vault.open(sealed)
    if len(lookup_key) != _LOOKUP_KEY_BYTES:
        raise MasterKeyMissing("the stored lookup key is not one: the row was changed past the service")
    return lookup_key


class ApiKeyHasher:
    """Computes the hash under which a presented key of this mode is stored.

    `sealed_lookup_key` reads the database; it is called until there is a lookup key, which then never changes.

    The database compares the hash by an index, not in constant time. That is safe: without the lookup key an attacker
    can't choose a key whose hash shares a prefix with a stored one, so the time reveals nothing of use.
    """

    def __init__(self, vault: Vault, mode: str, sealed_lookup_key: Callable[[], bytes | None]) -> None:
        self._vault = vault
        self._is_api_key = re.compile(rf"fg_({mode}_)?[0-9A-Za-z]{{{_KEY_CHARACTERS}}}").fullmatch
        self._sealed_lookup_key = sealed_lookup_key
        self._lookup_key: bytes | None = None

    def hash_of(self, presented: str) -> bytes | None:
        """Returns the hash; None when the text is not of the form of the mode's keys, or no key was ever made."""
        if self._is_api_key(presented) is None:
            return None
        if self._lookup_key is None:
            sealed = self._sealed_lookup_key()
            if sealed is None:
                return None
            self._lookup_key = opened_lookup_key(self._vault, sealed)
        return hash_of(presented, self._lookup_key)


def _random_text(characters: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(characters))
