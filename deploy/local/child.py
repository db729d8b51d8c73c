"""Run a command that does not outlive its parent: `python -I -S child.py SIGNAL COMMAND...`.

On Linux the kernel sends SIGNAL (INT, TERM) to the command when the process that started it dies, kill -9
included; elsewhere the command just runs. Ctrl-C ends it, also where a script has it ignored. Standard library only
and no imports of ours: some 15 ms per child.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(signal_number: signal.Signals) -> None:
    """Ask the kernel for `signal_number` when our parent dies; exit at once if it already has."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent died while its child was starting")


def hear_ctrl_c() -> None:
    """Give SIGINT its usual effect again.

    A shell without a terminal starts what it puts into the background with SIGINT ignored, and every child inherits
    that: Python raises no KeyboardInterrupt then, and a SIGINT that is sent to stop the process is lost.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(*arguments: str, signal_name: str = "TERM") -> list[str]:
    """`arguments` wrapped so that the process gets `signal_name` when its parent dies."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), signal_name, *arguments]  # noqa: PTH100 (no pathlib: start-up time)


if __name__ == "__main__":
    hear_ctrl_c()
    die_with_parent(signal.Signals[f"SIG{sys.argv[1]}"])
    os.execvp(sys.argv[2], sys.argv[2:])
