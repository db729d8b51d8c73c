"""API keys and signing secrets: how they are made and stored.

                 made of                     kept as
API key          "fg_" and 196 random bits   HMAC-SHA256 under the lookup key
signing secret   256 random bits             sealed
lookup key       256 random bits             sealed

"Sealed" is encrypted and authenticated under a master key (Fernet); the first master key seals, all of them
open, so rotating is: put a new key first, restart, `python -m services.merchants rotate-secrets`, drop the
old key, restart.

The lookup key stands between the master keys and the hashes because a hash, unlike a sealed value, can't be
moved to another key without the plaintext: were API keys hashed under the master key itself, dropping an
old master key would shut out every merchant. It needs no rotation of its own: nobody finds 196 random bits
by trying, whatever leaks.
"""

import hmac
import re
import secrets
import string
from collections.abc import Callable, Sequence
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

_ALPHABET: Final = string.digits + string.ascii_letters
_KEY_CHARACTERS: Final = 33  # log2(62) * 33 = 196 bits
_SECRET_CHARACTERS: Final = 43  # 256 bits
_HINT_CHARACTERS: Final = 7
_LOOKUP_KEY_BYTES: Final = 32

_is_api_key = re.compile(f"fg_[0-9A-Za-z]{{{_KEY_CHARACTERS}}}").fullmatch


class MasterKeyMissing(Exception):
    """A value was sealed under a master key that isn't configured any more: a fault of the installation."""


def new_api_key() -> str:
    return "fg_" + _random_text(_KEY_CHARACTERS)


def new_secret() -> str:
    return _random_text(_SECRET_CHARACTERS)


def new_lookup_key() -> bytes:
    return secrets.token_bytes(_LOOKUP_KEY_BYTES)


def hint_of(api_key: str) -> str:
    """Enough to recognise a key by, far too little to guess it from."""
    return api_key[:_HINT_CHARACTERS]


def hash_of(api_key: str, lookup_key: bytes) -> bytes:
    return hmac.digest(lookup_key, api_key.encode(), "sha256")


class ApiKeyHasher:
    """Turns a presented key into what it is looked up by.

    `sealed_lookup_key` asks the database; that happens once, the lookup key never changes.

    The hash is then compared by an index, not in constant time, and that's fine: without the lookup key
    nobody can choose a key whose hash shares a prefix with a stored one, so what the time tells about the
    prefix helps nobody.
    """

    def __init__(self, vault: "Vault", sealed_lookup_key: Callable[[], bytes | None]) -> None:
        self._vault = vault
        self._sealed_lookup_key = sealed_lookup_key
        self._lookup_key: bytes | None = None

    def hash_of(self, presented: str) -> bytes | None:
        """The hash, or None when no key can be meant: not of a key's form, or no key was ever made."""
        if _is_api_key(presented) is None:
            return None
        if self._lookup_key is None:
            sealed = self._sealed_lookup_key()
            if sealed is None:
                return None
            self._lookup_key = self._vault.open(sealed)
        return hash_of(presented, self._lookup_key)


class Vault:
    """Seals and opens; the first of the master keys seals, all open."""

    def __init__(self, master_keys: Sequence[str]) -> None:
        self._fernet = MultiFernet([Fernet(key) for key in master_keys])

    def seal(self, plain: bytes) -> bytes:
        return self._fernet.encrypt(plain)

    def open(self, sealed: bytes) -> bytes:
        """Raises MasterKeyMissing when none of the master keys fits."""
        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken:
            raise MasterKeyMissing("no key in FIATGATE_MASTER_KEYS opens a stored secret") from None

    def reseal(self, sealed: bytes) -> bytes:
        """The same content under the first master key. Raises MasterKeyMissing."""
        try:
            return self._fernet.rotate(sealed)
        except InvalidToken:
            raise MasterKeyMissing("no key in FIATGATE_MASTER_KEYS opens a stored secret") from None


def _random_text(characters: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(characters))
