"""The local stack (`make run`) of `FIATGATE_HOME`, and the reason when it does not answer."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any


class NoAddress(Exception):
    """The address of a service is not known: no stack runs here and no variable names one. `code` is for scripts."""

    def __init__(self, message: str, *, code: str = "NO_STACK") -> None:
        super().__init__(message)
        self.code = code


def home() -> Path:
    return Path(os.environ.get("FIATGATE_HOME") or ".fiatgate").absolute()


def found() -> dict[str, Any] | None:
    """Returns the description of the stack that runs or starts here; None when none does."""
    described = read()
    return described if described is not None and _is_held() else None


def read() -> dict[str, Any] | None:
    """Returns the description that `make run` wrote, also of a stack that was killed; None without one."""
    try:
        described: dict[str, Any] = json.loads((home() / "stack.json").read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return described


def why_none(instead: str) -> NoAddress:
    """Returns the reason why there is no address: no stack, or one that only starts. `instead` is the other way."""
    if _is_held():
        return NoAddress(
            f"The stack in {home()} is starting or stopping: wait a moment", code="STACK_STARTING"
        )
    return NoAddress(
        f"No stack runs in {home()}. Start one: make run. Of another folder: FIATGATE_HOME=…. {instead}"
    )


def why_silent(service: str, address: str) -> NoAddress:
    """Returns the reason why a service at a known address does not answer."""
    described = read()
    is_local = described is not None and described["services"].get(service, {}).get("address") == address
    if is_local and not _is_held():
        return why_none("It was stopped without an end, and its data stays.")
    if described is not None and is_local and not described["ready"]:
        message = f"The stack in {home()} is starting: wait until it has printed its address"
        return NoAddress(message, code="STACK_STARTING")
    return NoAddress(f"{service} does not answer at {address}", code="SERVICE_DOWN")


def _is_held() -> bool:
    """Returns whether a process runs the stack: it holds the lock of the folder."""
    try:
        with (home() / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
