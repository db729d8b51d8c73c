"""Random values that are shown once and stored hashed: tokens of sessions and invitations, recovery codes.

They have so many random bits that a plain SHA-256 is enough: no trial finds them from their hashes.
"""

import hashlib
import re
import secrets
from typing import Final

RECOVERY_CODES: Final = 10
_TOKEN_BYTES: Final = 32
_RECOVERY_MARK: Final = "recovery."  # no other token has a dot
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUPS: Final = 6
_GROUP_CHARACTERS: Final = 4  # 24 characters of 5 bits: 120 bits
_READ_AS: Final = str.maketrans("OIL", "011")


def new_token() -> str:
    """Returns 256 random bits in base64url."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def new_recovery_token() -> str:
    """Returns a token of a link that starts a session whatever factors the person has; the mark is part of what is
    hashed, so it can't be added to another token.
    """
    return _RECOVERY_MARK + new_token()


def is_for_recovery(token: str) -> bool:
    return token.startswith(_RECOVERY_MARK)


def hash_of(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def digest_of_link(token_hash: bytes, *texts: str) -> str:
    """Returns the digest of a link with the texts that go with it, in hexadecimal digits."""
    return hashlib.sha256("\0".join((token_hash.hex(), *texts)).encode()).hexdigest()


def new_recovery_code() -> str:
    """Returns a code as `7K3M-9QTX-…`: six groups of Crockford's alphabet."""
    groups = ("".join(secrets.choice(_CROCKFORD) for _ in range(_GROUP_CHARACTERS)) for _ in range(_GROUPS))
    return "-".join(groups)


def hash_of_recovery_code(text: str) -> bytes | None:
    """Returns the hash of a code as a person types it: in any case, with or without hyphens. None for other text."""
    code = re.sub(r"[\s-]", "", text).upper().translate(_READ_AS)
    if len(code) != _GROUPS * _GROUP_CHARACTERS or not set(code) <= set(_CROCKFORD):
        return None
    return hashlib.sha256(code.encode()).digest()
