"""API keys in words: when one was used, and what to do about one that no program uses."""

from datetime import datetime, timedelta
from typing import Final

from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.proto import datetime_from, optional_datetime

IN_USE: Final = timedelta(hours=1)
"""A key that was used so lately has programs: it is deactivated only after a second question."""
IDLE_WHEN_REPLACED: Final = timedelta(days=1)
NEVER_USED: Final = timedelta(days=7)
IDLE: Final = timedelta(days=30)


def is_in_use(key: pb.ApiKey, now: datetime) -> bool:
    """Returns whether the key was used within the last hour."""
    used = optional_datetime(key, "last_used_at")
    return used is not None and now - used < IN_USE


def idle_words(key: pb.ApiKey, now: datetime) -> str:
    """Returns why an active key may be one that no program needs; empty for another one."""
    if not key.active:
        return ""
    used = optional_datetime(key, "last_used_at")
    since = now - (used or datetime_from(key.created_at))
    if key.HasField("replaced_by_key_id"):
        if since < IDLE_WHEN_REPLACED:
            return ""
        return "It was replaced and no use was noted for a day: it can be deactivated."
    if used is None:
        return "No use was noted since it was made." if since >= NEVER_USED else ""
    return f"No use was noted for {since.days} days." if since >= IDLE else ""
