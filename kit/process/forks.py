"""A stop that reaches a process while it is forked is not lost.

Until a new process has handlers of its own it runs those of its parent, which note the signal for the parent's loop. A
stop that comes then would change nothing, and whoever sent it would wait until its patience ends.
"""

import os
import signal
from typing import Final

_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def hold_stops() -> None:
    """From now on a process that this one forks gets no signal to stop until it calls `release_stops`.

    This can't be undone, and a forked process inherits it. No handler of this process may raise: here it would be
    ignored. `subprocess` without `preexec_fn` does not fork in this sense.
    """
    os.register_at_fork(before=_hold, after_in_parent=release_stops)


def _hold() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)


def release_stops() -> None:
    """Delivers the signals that came meanwhile. Call it once the process has its own handlers, or the system's."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
