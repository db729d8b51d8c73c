"""The time that is left for the current request (docs/ARCHITECTURE.md#time-limits).

The server sets it from the caller's deadline, the gateway from its own limit. Every outgoing call derives its own
deadline from it, so that no process works on an answer after its caller has stopped waiting.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kit.base.clock import monotonic_seconds

# The monotonic instant at which the current request's time ends.
expires_at: ContextVar[float | None] = ContextVar("deadline_expires_at", default=None)


def remaining_seconds() -> float | None:
    """Returns the seconds left, below zero after the deadline; None without one."""
    instant = expires_at.get()
    return None if instant is None else instant - monotonic_seconds()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Gives the block at most `seconds`, and never more than the enclosing deadline leaves."""
    mine, outer = monotonic_seconds() + seconds, expires_at.get()
    token = expires_at.set(mine if outer is None else min(mine, outer))
    try:
        yield
    finally:
        expires_at.reset(token)
