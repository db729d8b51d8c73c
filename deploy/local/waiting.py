"""Waits for a condition, with a limit and without sleeping longer than needed."""

from __future__ import annotations

from collections.abc import Callable

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed


def wait_until(
    condition: Callable[[], bool], what: str, *, timeout_seconds: float, every_seconds: float = 0.02
) -> None:
    """Returns once `condition()` is true; TimeoutError naming `what` when it is not in time."""
    attempts = Retrying(
        retry=retry_if_result(lambda holds: not holds),
        stop=stop_after_delay(timeout_seconds),
        wait=wait_fixed(every_seconds),
    )
    try:
        attempts(condition)
    except RetryError:
        raise TimeoutError(f"waited {timeout_seconds:g} s in vain for: {what}") from None
