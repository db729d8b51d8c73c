"""Values of JSON answers (`kit.web.replies`)."""

from datetime import datetime
from typing import Any

from kit.base.proto import datetime_from, optional_datetime


def time_text(stamp: Any) -> str:
    """Returns the time in ISO 8601 with a UTC offset."""
    return datetime_from(stamp).isoformat()


def optional_time_text(message: Any, field: str) -> str | None:
    """Returns the same for an optional timestamp."""
    value: datetime | None = optional_datetime(message, field)
    return None if value is None else value.isoformat()
