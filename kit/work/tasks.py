"""Background tasks of an event loop that must not end: one that ends is logged, counted and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from kit.observe import metrics
from kit.observe.log import get_logger

RESTART_SECONDS: Final = 1.0

ENDED: Final = metrics.counter(
    "background_tasks_ended", "Background tasks that ended and were begun again, by task", ["task"]
)

_log = get_logger()


def supervised(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """Starts `work` in the running loop, and again whenever it returns or raises, until the task is cancelled.

    The caller keeps the task: the loop itself holds it weakly. `name` is a label: one of a few.
    """
    ENDED.labels(name)  # shown as 0 from the start: an alert sees the first end
    return asyncio.create_task(_for_ever(name, work), name=name)


async def _for_ever(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    while True:
        try:
            await work()
            _log.error("task_ended", task=name)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            _log.exception("task_failed", task=name)  # an awaited task inside it was cancelled
        except Exception:  # noqa: BLE001  the task must continue after any error
            _log.exception("task_failed", task=name)
        ENDED.labels(name).inc()
        await asyncio.sleep(RESTART_SECONDS)
