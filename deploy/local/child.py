"""Runs a command that ends with its parent: `python -I -S child.py SIGNAL COMMAND...`.

On Linux the kernel sends SIGNAL (INT, TERM) to the command when the process that started it dies, also by kill -9;
elsewhere the command just runs. Ctrl-C ends it, even where a script ignores SIGINT. Only the standard library and no
imports of ours: some 15 ms per child.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(signal_number: signal.Signals) -> None:
    """Makes the kernel send `signal_number` when our parent dies; exits at once if it has died already."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent died while its child was starting")


def hear_ctrl_c() -> None:
    """Restores the usual effect of SIGINT.

    A shell without a terminal starts its background commands with SIGINT ignored, and every child inherits that. Python
    then raises no KeyboardInterrupt, and a SIGINT that should stop the process is lost.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(*arguments: str, signal_name: str = "TERM") -> list[str]:
    """Returns `arguments` wrapped so that the process gets `signal_name` when its parent dies."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), signal_name, *arguments]  # noqa: PTH100 (no pathlib: start-up time)


if __name__ == "__main__":
    hear_ctrl_c()
    die_with_parent(signal.Signals[f"SIG{sys.argv[1]}"])
    os.execvp(sys.argv[2], sys.argv[2:])
