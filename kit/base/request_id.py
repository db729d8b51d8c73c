"""The id of one request, in the HTTP answer's `X-Request-Id`, gRPC metadata, logs and event headers.

The id lives in a context variable: each asyncio task and each RPC has its own.
"""

import re
import secrets
from contextvars import ContextVar, Token
from types import TracebackType

METADATA_KEY = "x-request-id"

_current: ContextVar[str] = ContextVar("request_id", default="")
_acceptable = re.compile(r"[A-Za-z0-9_.:-]{1,128}").fullmatch


def current() -> str:
    """Returns the id of the current request; empty outside of any request."""
    return _current.get()


def new() -> str:
    """Returns a fresh id: 24 hexadecimal characters, 96 random bits."""
    return secrets.token_hex(12)


def accepted(text: str | bytes | None) -> str:
    """Returns the id that a caller gave, or a fresh one when it's absent, too long, or could break a log line."""
    return text if isinstance(text, str) and _acceptable(text) else new()


class bind:  # noqa: N801  reads as a verb at the call: `with request_id.bind(id):`
    """Makes `id` the current one at once; as a context manager it restores the former one at the end."""

    __slots__ = ("_token",)

    def __init__(self, id: str) -> None:
        self._token: Token[str] = _current.set(id)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)
