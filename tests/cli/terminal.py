"""A command in a terminal of its own: what a person sees at 80 columns, and the answers to its questions."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local.waiting import wait_until

SECONDS = 30


@dataclass(frozen=True)
class Screen:
    """The screen after a command, and its exit code."""

    exit_code: int
    text: str

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.text.splitlines()]


def shown(home: Path, *arguments: str, width: int = 80, answer: str = "") -> Screen:
    """Runs `fiatgate` in a terminal of this width and types the answer."""
    command = [sys.executable, "-m", "cli", *arguments]
    return on_screen(command, {"FIATGATE_HOME": str(home), "TERM": "dumb"}, width=width, answer=answer)


def on_screen(
    command: Sequence[str],
    variables: Mapping[str, str],
    *,
    width: int = 80,
    answer: str = "",
    folder: Path | None = None,
) -> Screen:
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen(
        command, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal, env={**os.environ, **variables}
    )
    os.close(terminal)
    if answer:
        os.write(controller, f"{answer}\n".encode())
    printed = bytearray()

    def is_over() -> bool:
        while select.select([controller], [], [], 0)[0]:
            try:
                more = os.read(controller, 65_536)
            except OSError:  # Linux's end of a terminal that nobody has open any more
                return process.poll() is not None
            printed.extend(more)
        return False

    try:
        wait_until(is_over, f"{command} to end", timeout_seconds=SECONDS)
    finally:
        process.kill()
        os.close(controller)
    return Screen(process.wait(), printed.decode().replace("\r\n", "\n"))
