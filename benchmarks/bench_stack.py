"""The whole stack on one machine: its memory at rest, commands, and a warm start.

    python -m benchmarks.bench_stack

Memory is read after the time in which idle database connections are closed, so it takes two minutes in all. Limits:
memory of all programs at rest under 700 MiB; median of the whole command
`fiatgate deals list` under 350 ms; a second start of the same data under 8 s.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import psutil
from rich.progress import track

from benchmarks.bench_api import running_stack
from benchmarks.report import Row, below, options, show
from kit.base.clock import monotonic_seconds
from kit.db.connections import POOLED_IDLE_SECONDS
from tests.support.stack import Stack

MOST_MEMORY_MIB = 700
MOST_COMMAND_MS = 350
COMMANDS = (("deals", "list"), ("status",), ("--help",))
COMMAND_RUNS = 9
COMMAND_SECONDS = 30
REST_SECONDS = 12  # the server closes a connection some seconds after the client gives it up
MOST_START_SECONDS = 8
MEBIBYTE = 1024 * 1024


def _rest() -> None:
    """Waits until the connections that only the start needed are closed."""
    for _ in track(range(POOLED_IDLE_SECONDS + REST_SECONDS), "rest", transient=True):
        time.sleep(1)


def _memory_mib(stack: Stack) -> dict[str, float]:
    """Proportional set size by program: what would be free without it."""
    used: dict[str, float] = defaultdict(float)
    for name, program in stack.programs().items():
        if program.process_id is not None:
            top = psutil.Process(program.process_id)
            for process in (top, *top.children(recursive=True)):
                used[name] += process.memory_full_info().pss / MEBIBYTE
    return used


def _commands_ms(stack: Stack, *words: str) -> list[float]:
    """Milliseconds of whole commands `fiatgate WORDS`, the start of Python included."""
    took = []
    for number in range(COMMAND_RUNS + 1):
        began = monotonic_seconds()
        subprocess.run(
            [Path(sys.executable).with_name("fiatgate"), *words],
            env=os.environ | {"FIATGATE_HOME": str(stack.home.folder)},
            stdout=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=True,
        )
        if number:  # the first one reads files that are not in the cache yet
            took.append(1000 * (monotonic_seconds() - began))
    return took


def measure() -> list[Row]:
    with running_stack() as stack:
        _rest()
        memory = _memory_mib(stack)
        listed, status, helped = (_commands_ms(stack, *words) for words in COMMANDS)
        stack.stop()
        started = monotonic_seconds()
        stack.start()
        start_seconds = monotonic_seconds() - started
    return [
        below("fiatgate deals list, whole command, median", statistics.median(listed), MOST_COMMAND_MS, "ms"),
        Row("the same of fiatgate status", f"{statistics.median(status):.1f} ms"),
        Row("the same of fiatgate --help", f"{statistics.median(helped):.1f} ms"),
        below("memory at rest, all", sum(memory.values()), MOST_MEMORY_MIB, "MiB"),
        *(Row(f"  {name}", f"{used:.0f} MiB") for name, used in sorted(memory.items())),
        below("warm start", start_seconds, MOST_START_SECONDS, "s"),
        Row("load average while measuring", f"{os.getloadavg()[0]:.1f}"),
    ]


def main() -> int:
    options(__doc__).parse_args()
    return show("Stack", measure())


if __name__ == "__main__":
    sys.exit(main())
