"""Background tasks that must not end."""

import asyncio

import pytest

from kit.observe import metrics
from kit.work import tasks
from kit.work.tasks import ENDED, supervised


@pytest.mark.parametrize("end", ["returns", "raises", "is cancelled inside"])
def test_a_task_that_ends_is_begun_again_and_counted(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setattr(tasks, "RESTART_SECONDS", 0.01)

    async def story() -> None:
        begun, again = 0, asyncio.Event()

        async def work() -> None:
            nonlocal begun
            begun += 1
            if begun == 3:
                again.set()
                await asyncio.Event().wait()
            if end == "raises":
                raise ValueError("a mistake")
            if end == "is cancelled inside":
                raise asyncio.CancelledError

        task = supervised("test", work)
        async with asyncio.timeout(5):
            await again.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = ENDED.labels("test")._value.get()
    asyncio.run(story())
    assert ENDED.labels("test")._value.get() == before + 2


def test_a_task_that_is_cancelled_ends_at_once() -> None:
    async def story() -> None:
        task = supervised("quiet", asyncio.Event().wait)  # type: ignore[arg-type]
        assert (
            metrics.REGISTRY.get_sample_value("fiatgate_background_tasks_ended_total", {"task": "quiet"}) == 0
        )
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
