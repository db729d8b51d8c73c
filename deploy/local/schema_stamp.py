"""A file with the fingerprint of the migrations that have run on the data. A start with the same migrations skips them.

It is apart from `deploy.local.schema` because the migration tools take half a second and 60 MB to import.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from deploy.local.home import Home

_ROOT = Path(__file__).resolve().parents[2]


def is_current(home: Home) -> bool:
    """Returns whether the data was migrated by exactly the migrations in the tree."""
    stamp = _stamp(home)
    return stamp.exists() and stamp.read_text() == _fingerprint()


def mark_current(home: Home) -> None:
    """Writes the current fingerprint."""
    _stamp(home).write_text(_fingerprint())


def _stamp(home: Home) -> Path:
    return home.postgres / "data" / "fiatgate-schema"  # a part of the data, so that it moves with them


def _fingerprint() -> str:
    digest = hashlib.sha256()
    # The migrations include the rights that each service declares.
    for path in sorted(_ROOT.glob("services/*/migrations/**/*.py")):
        digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
