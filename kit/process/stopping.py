"""How a process ends: on which signals, within which time, with which code."""

import os
import signal
import threading
from types import FrameType
from typing import Final

from kit.work.worker import Stop

FAILED: Final = 1
# The longest wait, once all workers have ended, for the signal's thread to stop the server.
DRAINING_SECONDS: Final = 15
# Longer than the process lives after giving up; otherwise gRPC would report an interrupted call as finished.
CUT_AFTER_SECONDS: Final = 60


def stop_on_signals(stop: Stop) -> None:
    """Sets `stop` at the first SIGTERM or SIGINT; the second one ends the process at once."""
    is_stopping = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopping
        if is_stopping:
            os._exit(128 + number)
        is_stopping = True
        # Not in this thread: the signal may have interrupted it while it held the event's lock.
        threading.Thread(target=stop.set, name="stop", daemon=True).start()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
