"""`--processes N`: a parent and the processes that share its port."""

import os
import subprocess
import sys
from typing import Final

from kit.base import config
from kit.base.clock import SystemClock, monotonic_seconds
from kit.observe import log
from kit.process.stopping import FAILED, KILL_AFTER_SECONDS, stop_on_signals
from kit.work.worker import Fatal, Stop, WorkerHealth

PARENT_CHECK_SECONDS: Final = 1.0

_log = log.get_logger()


def run_several(settings: config.ServiceSettings, mode: str, count: int) -> int:
    """Starts `count` processes and waits. When one ends by itself, stops the others and returns a failure."""
    stop = Stop()
    stop_on_signals(stop)
    others = "serve" if mode == "run" else mode
    children = [_start_child(mode if number == 0 else others, count) for number in range(count)]
    while not stop.wait(0.2) and all(child.poll() is None for child in children):
        pass
    asked = stop.is_set()
    for child in children:
        child.terminate()
    give_up_at = monotonic_seconds() + settings.stop_seconds + KILL_AFTER_SECONDS
    for child in children:
        try:
            child.wait(max(0.0, give_up_at - monotonic_seconds()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    codes = [child.returncode for child in children]
    if not asked:
        _log.error("process_ended", codes=codes)
    return 0 if asked and not any(codes) else FAILED


def _start_child(mode: str, count: int) -> subprocess.Popen[bytes]:
    interpreter_and_module = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    command = [
        sys.executable,
        *interpreter_and_module,
        mode,
        "--processes",
        str(count),
        "--parent",
        str(os.getpid()),
    ]
    # Its own process group: Ctrl-C reaches only the parent, which then stops the children once.
    return subprocess.Popen(command, process_group=0)  # noqa: S603


class Orphaned:
    """Ends the process when its parent has died without stopping it: otherwise it would serve beside the next one."""

    name = "parent"

    def __init__(self, parent: int) -> None:
        self._parent = parent

    def run(self, stop: Stop) -> None:
        while not stop.wait(PARENT_CHECK_SECONDS):
            if os.getppid() != self._parent:
                raise Fatal("the parent process is gone")

    def health(self) -> WorkerHealth:
        return WorkerHealth(self.name, healthy=True, last_run_at=SystemClock().now())
