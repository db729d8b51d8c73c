"""The rights of a service's role on the tables of acts, part of its own RIGHTS (kit.db.rights)."""

from collections.abc import Mapping
from typing import Final

ACT_RIGHTS: Final[Mapping[str, str]] = {
    "acts": "SELECT, INSERT",
    "act_chain": "SELECT, INSERT",
    "act_heads": "SELECT, INSERT (service, count, hash, at, seal)",
}
"""Rows are only added."""
