"""JSON answers."""

import json
from datetime import datetime
from typing import Any, Final

import falcon

from kit.base.proto import datetime_from, optional_datetime

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

SUCCESSFUL: Final = {"successful": True}


def reply(resp: falcon.Response, value: object, *, status: int = 200) -> None:
    """Answers with `value` as JSON."""
    reply_encoded(resp, encoded(value), status=status)


def encoded(value: object) -> bytes:
    """Returns `value` as JSON."""
    return _dumps(value).encode()


def reply_encoded(resp: falcon.Response, content: bytes, *, status: int = 200) -> None:
    """Answers with JSON that `encoded` made."""
    resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = content
    resp.set_header("Cache-Control", "no-store")


def time_text(stamp: Any) -> str:
    """Returns the time in ISO 8601 with a UTC offset."""
    return datetime_from(stamp).isoformat()


def optional_time_text(message: Any, field: str) -> str | None:
    """The same for an optional timestamp."""
    value: datetime | None = optional_datetime(message, field)
    return None if value is None else value.isoformat()
