"""The calls to services that the work in progress has made, for the one log line of that work.

The log line of a request names them, so the services need no line of their own for each call that succeeds.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

NAMED_AT_MOST: Final = 20
"""Calls that a line names; more are counted. A page makes a few, a stream of a live page any number."""


class MadeCalls:
    """The calls of one request, or of one call that a service answers."""

    __slots__ = ("_calls", "_more")

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._more = 0

    def add(self, service: str, method: str, seconds: float, code: str, reason: str) -> None:
        if len(self._calls) >= NAMED_AT_MOST:
            self._more += 1
            return
        call = {"service": service, "method": method, "code": code, "duration_ms": round(seconds * 1000, 2)}
        if reason:
            call["reason"] = reason
        self._calls.append(call)

    def log_fields(self) -> dict[str, Any]:
        """Returns `calls`, in the order in which they ended, and `more_calls`; nothing where there was none."""
        if not self._calls:
            return {}
        return {"calls": self._calls, "more_calls": self._more} if self._more else {"calls": self._calls}


_current: ContextVar[MadeCalls | None] = ContextVar("made_calls", default=None)


def begin() -> MadeCalls:
    """Notes the calls of this context from now on, those of its tasks too."""
    made = MadeCalls()
    _current.set(made)
    return made


def add(service: str, method: str, seconds: float, code: str, reason: str = "") -> None:
    """Adds one call that has ended. Work without a log line of its own, such as a loop, keeps none."""
    made = _current.get()
    if made is not None:
        made.add(service, method, seconds, code, reason)
