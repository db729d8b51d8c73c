"""Seals: codes over stored values, under a key that a service's processes have and its database has not.

SQL under the service's role can write any row that the role's rights allow, but no right seal. A row that moves money
or records a decision has a seal, and counts only with it.
"""

import hmac
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from kit.base.keys import decoded


class Seals:
    """Makes and checks seals: HMAC-SHA256 under the first key; a seal under any of the keys is right."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [decoded(each) for each in keys]

    def seal(self, kind: str, content: bytes) -> bytes:
        """Returns the seal of this content. `kind` distinguishes it from that of any other kind of row."""
        return hmac.digest(self._keys[0], _sealed(kind, content), "sha256")

    def is_right(self, kind: str, content: bytes, seal: bytes | None) -> bool:
        sealed = _sealed(kind, content)
        return any(hmac.compare_digest(hmac.digest(key, sealed, "sha256"), seal or b"") for key in self._keys)


def _sealed(kind: str, content: bytes) -> bytes:
    return b"fiatgate %b v1\n%b" % (kind.encode(), content)


def canonical(values: Sequence[object]) -> bytes:
    """Returns the values as one JSON array: times in UTC, numbers without the zeros that a column's scale adds."""
    return json.dumps([_canonical(each) for each in values], separators=(",", ":"), sort_keys=True).encode()


def _canonical(value: object) -> object:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case UUID() | date():
            return str(value)
        case Decimal():
            return f"{value.normalize():f}"
        case bytes():
            return value.hex()
    return value
