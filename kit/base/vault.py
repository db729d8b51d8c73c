"""Secrets at rest: encrypted and authenticated with a master key (Fernet). Names in the code have `sealed` for it."""

import base64
import hmac
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class MasterKeyMissing(Exception):
    """A stored value can't be opened as what it should be, mostly because its master key is no longer configured: a
    fault of the installation.
    """


class Vault:
    """Encrypts and decrypts; the first of the master keys encrypts, all decrypt.

    A value of one purpose can't be opened for another one: SQL under the service's role could otherwise put it into the
    place of a value that a person or a merchant gets to see.
    """

    def __init__(self, master_keys: Sequence[str], *, purpose: str) -> None:
        self._fernet = MultiFernet([Fernet(_derived(key, purpose)) for key in master_keys])

    def seal(self, plain: bytes) -> bytes:
        return self._fernet.encrypt(plain)

    def open(self, sealed: bytes) -> bytes:
        """Returns the plain bytes. Raises MasterKeyMissing when none of the master keys fits."""
        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken:
            raise MasterKeyMissing("no key in MASTER_KEYS opens a stored secret") from None

    def reseal(self, sealed: bytes) -> bytes:
        """Returns the same content encrypted with the first master key. Raises MasterKeyMissing."""
        try:
            return self._fernet.rotate(sealed)
        except InvalidToken:
            raise MasterKeyMissing("no key in MASTER_KEYS opens a stored secret") from None


def _derived(master_key: str, purpose: str) -> bytes:
    key = hmac.digest(base64.urlsafe_b64decode(master_key), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(key)
