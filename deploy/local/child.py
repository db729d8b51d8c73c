"""Run a command that does not outlive its parent: `python -I -S child.py SIGNAL COMMAND...`.

On Linux the kernel sends SIGNAL (INT, TERM) to the command when the process that started it dies, kill -9
included; elsewhere the command just runs. Standard library only and no imports of ours: some 15 ms per child.
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


def command(*arguments: str, signal_name: str = "TERM") -> list[str]:
    """`arguments` wrapped so that the process gets `signal_name` when its parent dies."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), signal_name, *arguments]  # noqa: PTH100 (no pathlib: start-up time)


if __name__ == "__main__":
    die_with_parent(signal.Signals[f"SIG{sys.argv[1]}"])
    os.execvp(sys.argv[2], sys.argv[2:])
