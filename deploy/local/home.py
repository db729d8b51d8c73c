"""The folder of one stack, `FIATGATE_HOME`: its files, its lock, its secrets and its addresses.

postgres/  nats/        the data: everything that must be kept
secrets.json            made on the first start: passwords of databases and NATS, all keys (mode 0600)
demo.json               the demo merchant's key and secret (mode 0600)
links.json              the links of this start by which the demo people sign in (mode 0600)
stack.json              while it runs: addresses, for the command line and for a second `make run` (mode 0600)
logs/                   one rotated file per process
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from deploy.nats_rights import USERS
from kit.base.services import SERVICES
from kit.events.signing import new_private_key


class LockHeld(Exception):
    """Another process has the lock."""


@dataclass(frozen=True)
class Home:
    """The paths below one `FIATGATE_HOME`, which `prepare` makes."""

    folder: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Home:
        """Returns the folder named by `FIATGATE_HOME`, or `.fiatgate` here."""
        return cls(Path(environment.get("FIATGATE_HOME") or ".fiatgate").absolute())

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def nats(self) -> Path:
        return self.folder / "nats"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def demo_file(self) -> Path:
        return self.folder / "demo.json"

    @property
    def links_file(self) -> Path:
        return self.folder / "links.json"

    @property
    def stack_file(self) -> Path:
        return self.folder / "stack.json"

    @property
    def supervisor_config(self) -> Path:
        return self.folder / "supervisor.conf"

    def prepare(self) -> None:
        """Makes the folders."""
        for folder in (self.folder, self.postgres, self.nats, self.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def lock(self) -> int:
        """Takes the lock of the one process that runs the stack; held until the returned descriptor is closed.

        Raises LockHeld when another process has it.
        """
        return _lock(self.folder / "lock")

    def lock_data(self) -> int:
        """Takes the lock of the data. supervisord inherits it, so it outlives a runner that was killed.

        Raises LockHeld when another process has it.
        """
        return _lock(self.folder / "lock-data")

    def secrets(self) -> dict[str, Any]:
        """Returns `postgres`, `databases`, `owners` and `seal_keys` by service, `nats` by user, `master_key`,
        `fact_signing_key`.

        Each is made on first use. The folder of an earlier version lacks some; the others stay as they are.
        """
        path = self.folder / "secrets.json"
        known = read_json(path) or {}
        made = {
            "postgres": secrets.token_urlsafe(24),
            "master_key": Fernet.generate_key().decode(),
            "fact_signing_key": new_private_key(),
            **known,
            **{
                kind: {name: secrets.token_urlsafe(24) for name in names} | known.get(kind, {})
                for kind, names in (("databases", SERVICES), ("owners", SERVICES), ("nats", USERS))
            },
            "seal_keys": {name: new_private_key() for name in SERVICES} | known.get("seal_keys", {}),
        }
        if made != known:
            write_private_json(path, made)
        return made

    def demo(self) -> dict[str, Any] | None:
        """Returns the file that the seed wrote on the first start; None before."""
        return read_json(self.demo_file)

    def links(self) -> dict[str, Any]:
        """Returns the links of the last start, by `desk` and `dashboard`; None for a person who got none."""
        return read_json(self.links_file) or {}

    def stack(self) -> dict[str, Any] | None:
        """Returns the description of the stack that runs here; None when none does."""
        return read_json(self.stack_file)

    def running_stack(self) -> dict[str, Any]:
        """Returns the description of the stack that runs here; SystemExit when none does."""
        stack = self.stack()
        if stack is None:
            raise SystemExit(f"no stack runs in {self.folder}")
        return stack


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LockHeld from None
    return descriptor


def read_json(path: Path) -> dict[str, Any] | None:
    """Returns the object in a file; None when there is no file."""
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return None


def write_private_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes `value` so that only this account can read it and no reader ever finds half of it."""
    scratch = path.with_suffix(f".{os.getpid()}.new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(value, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    scratch.rename(path)
