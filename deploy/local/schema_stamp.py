"""Remembers which migrations the data here has had, so that most starts need not even look.

Apart from `deploy.local.schema` because the migration tools take half a second and 60 MB to import.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from deploy.local.home import Home

_ROOT = Path(__file__).resolve().parents[2]


def is_current(home: Home) -> bool:
    """Whether the data was already migrated by exactly the migrations in the tree."""
    stamp = _stamp(home)
    return stamp.exists() and stamp.read_text() == _fingerprint()


def mark_current(home: Home) -> None:
    """Note that it was, just now."""
    _stamp(home).write_text(_fingerprint())


def _stamp(home: Home) -> Path:
    return home.postgres / "data" / "fiatgate-schema"  # goes wherever the data goes


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(_ROOT.glob("services/*/migrations/**/*.py")):  # with the rights that each declares
        digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
