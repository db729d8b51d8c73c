"""Identifiers: UUIDv7, so that newer rows sort after older ones and indexes grow at one end."""

import re
import uuid

import uuid_utils.compat

_CANONICAL = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def new_id() -> uuid.UUID:
    """A fresh UUIDv7; ids made by one process only grow."""
    return uuid_utils.compat.uuid7()


def parse_id(text: str) -> uuid.UUID | None:
    """The UUID that `text` is in its canonical form (8-4-4-4-12 hexadecimal digits, either case), else None.

    `uuid.UUID` also takes braces, `urn:uuid:` and missing hyphens: an external id that looks like that is
    somebody's order number, not an invoice's id (SPEC endpoint 2).
    """
    return uuid.UUID(text) if _CANONICAL.fullmatch(text) else None
