"""JSON answers."""

import json
from typing import Final

import falcon

_dumps: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


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
