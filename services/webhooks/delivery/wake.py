"""The signal that wakes the engine."""

import asyncio

from kit.work.worker import Signal


class Wake(Signal):
    """A signal that an event loop can wait for: operations set it after their commit, and the engine waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()

    def set(self) -> None:
        super().set()
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._bell.set)

    def attach(self) -> None:
        """Signals the running loop from now on; earlier signals are not lost."""
        self._bell = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._event.is_set():
            self._event.clear()
            self._bell.set()

    def ring(self) -> None:
        """Does the same as `set`, called from the loop itself."""
        self._bell.set()

    async def wait_on_loop(self, timeout_seconds: float) -> None:
        """Waits for a signal, at most this long."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._bell.wait()
        except TimeoutError:
            pass
        self._bell.clear()
