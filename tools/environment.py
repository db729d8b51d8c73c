"""Makes `.venv` and installs the locked packages, with their progress; Python's standard library is all that it needs.

python3 tools/environment.py runs        what `make run` runs on (requirements-local.lock)
python3 tools/environment.py develops    what its tests need besides (requirements-dev.lock)
python3 tools/environment.py nodes       what `make failover` needs besides (requirements-failover.lock)

An environment of another Python or another folder does not work, and neither does half of one, nor one that has lost
files of a package. It is removed and made anew. When all is installed it prints nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / ".venv"
PYTHON: Final = FOLDER / "bin" / "python"
OUTSIDE: Final = Path(sys.executable).resolve()
"""The Python outside of the environment: that of an activated one is removed with it."""
MADE: Final = FOLDER / ".made"
"""The folder and the Python that the environment was made for."""
BEGUN: Final = FOLDER / ".begun"
"""There while packages are installed: an interrupted installation leaves it behind."""
LOG: Final = FOLDER / "install.log"
LEAST_PYTHON: Final = (3, 11)

LOCKS: Final = {
    "runs": ("requirements-local.lock",),
    "develops": ("requirements-local.lock", "requirements-dev.lock"),
    "nodes": ("requirements-local.lock", "requirements-dev.lock", "requirements-failover.lock"),
}
"""The locks of each purpose, the last one its own. In this order: each purpose needs what those before it need."""
PURPOSES: Final = {
    "runs": "what Fiatgate runs on",
    "develops": "what its tests need",
    "nodes": "what `make failover` needs",
}

_PINNED: Final = re.compile(r"([A-Za-z0-9._-]+)==").match
_COLLECTING: Final = re.compile(r"(?:Collecting|Processing) (?:\S*/)?([^\s(]+)").match
_NO_INDEX: Final = re.compile(
    r"connection broken|Connection refused|NewConnectionError|name resolution|getaddrinfo|Network is unreachable"
    r"|ConnectTimeout|Read timed out|ProxyError|No route to host|from versions: none"
).search


class CannotInstall(Exception):
    """The environment could not be made; the text is one line for people."""


def main(arguments: Sequence[str]) -> int:
    (purpose,) = arguments
    try:
        prepare(purpose)
    except CannotInstall as reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted: the next make begins anew\n")
        return 130
    return 0


def prepare(purpose: str) -> None:
    """Makes the environment unless it works, and installs what is missing for the purpose. Raises CannotInstall."""
    if not FOLDER.exists():
        _make()
    elif fault := _fault():
        _require_python()
        _tell(f"Removing .venv: {fault}.")
        shutil.rmtree(FOLDER)
        _make()
    purposes = list(LOCKS)
    for each in purposes[: purposes.index(purpose) + 1]:
        if not is_installed(each):
            _install(each, LOCKS[each][-1], editable=each == "runs")


def _fault() -> str | None:
    """Returns the reason why the environment has to be made anew; None when it works."""
    if not MADE.exists() and _is_of_earlier_version():
        MADE.write_text(_identity())
    if BEGUN.exists() or not MADE.exists():
        return "its installation was interrupted"
    if MADE.read_text() != _identity():
        return "it was made for another folder or another Python"
    if (lost := _incomplete()) is not None:
        return f"files of {lost} are missing"
    return None


def _identity() -> str:
    """Returns the folder of the environment and the Python that it runs now."""
    asked = "import sys; print(*sys.version_info[:2], sys.platform, sys.prefix)"
    try:
        answer = subprocess.run(  # noqa: S603  our own words
            [PYTHON, "-c", asked], capture_output=True, text=True, check=False, timeout=30
        )
    except OSError:
        return "no Python"
    return f"{FOLDER}\n{answer.stdout}" if answer.returncode == 0 else "no Python"


def _is_of_earlier_version() -> bool:
    """Returns whether a Makefile before this script has finished the environment, for this folder."""
    pip = FOLDER / "bin" / "pip"
    finished = (FOLDER / ".runs").exists() and pip.exists()
    return finished and pip.read_text().startswith(f"#!{FOLDER}/")


def _incomplete() -> str | None:
    """Returns the name of a package that was installed and is not there, or not whole."""
    found = {}
    for record in FOLDER.glob("lib/python*/site-packages/*.dist-info/RECORD"):
        found[_name(record.parent.name.partition("-")[0])] = record
    wanted = {name for purpose in LOCKS if is_installed(purpose) for name in _locked(purpose)}
    entries: dict[str, frozenset[str]] = {}
    lost = (name for name, record in found.items() if not _is_whole(record, entries))
    return next(iter(sorted(wanted - found.keys())), None) or next(lost, None)


def _locked(purpose: str) -> list[str]:
    """Returns the packages of the locks that every platform has."""
    lines = [line for lock in LOCKS[purpose] for line in (ROOT / lock).read_text().splitlines()]
    return [_name(found[1]) for line in lines if ";" not in line and (found := _PINNED(line))]


def _name(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _is_whole(record: Path, entries: dict[str, frozenset[str]]) -> bool:
    """Returns whether all files of a package are there. `entries` keeps the folders that were read: 32,000 files are in
    few of them, and a check of each file alone takes four times as long.
    """
    packages = record.parent.parent
    for line in record.read_text(encoding="utf-8").splitlines():
        folder, _, name = line.rsplit(",", 2)[0].strip('"').rpartition("/")
        if folder.endswith("__pycache__"):
            continue
        if folder not in entries:
            within = packages / folder
            entries[folder] = (
                frozenset(each.name for each in within.iterdir()) if within.is_dir() else frozenset()
            )
        if name not in entries[folder]:
            return False
    return True


def is_installed(purpose: str) -> bool:
    stamp = FOLDER / f".{purpose}"
    return stamp.exists() and stamp.read_text() == _wanted(purpose)


def _wanted(purpose: str) -> str:
    """Returns a digest of the files that decide what is installed."""
    names = (*LOCKS[purpose], "pyproject.toml")
    return hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in names)).hexdigest()


def _require_python() -> None:
    if sys.version_info < LEAST_PYTHON:
        raise CannotInstall("Fiatgate needs Python 3.11 or newer: make PYTHON=/path/to/python3")


def _make() -> None:
    _require_python()
    FOLDER.mkdir()
    BEGUN.touch()
    made = subprocess.run(  # noqa: S603  our own words
        [OUTSIDE, "-m", "venv", str(FOLDER)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        shutil.rmtree(FOLDER)
        why = " ".join((made.stdout + made.stderr).split())[-300:]
        raise CannotInstall(f"{OUTSIDE} makes no environment (on Debian: apt install python3-venv): {why}")
    BEGUN.unlink()
    MADE.write_text(_identity())


def _install(purpose: str, lock: str, *, editable: bool = False) -> None:
    """Installs the packages of a lock, and Fiatgate itself when `editable`."""
    count = sum(not line.startswith((" ", "#")) for line in (ROOT / lock).read_text().splitlines())
    _tell(f"Installing {PURPOSES[purpose]}: {count} packages, once.")
    began = time.monotonic()
    BEGUN.touch()
    with LOG.open("w") as log:
        # All packages are downloaded before the first is installed, so a failed download leaves nothing half done.
        # Some have no wheel: they are built with our setuptools, in place of one that pip would fetch unpinned.
        built = ["--no-build-isolation"] if purpose == "nodes" else []
        _pip(["--require-hashes", "--no-deps", *built, "-r", lock], count, log)
        if editable:
            _pip(["--no-build-isolation", "--no-deps", "--editable", "."], 1, log)
    _tell(f"Installed in {time.monotonic() - began:.0f} s.")
    (FOLDER / f".{purpose}").write_text(_wanted(purpose))
    BEGUN.unlink()
    LOG.unlink()


def _pip(arguments: Sequence[str], count: int, log: IO[str]) -> None:
    """Runs `pip install` and shows how far it is. Raises CannotInstall, with the reason in one line."""
    environment = {"PIP_RETRIES": "2", **os.environ, "PYTHONUNBUFFERED": "1"}
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-color"]
    process = subprocess.Popen(  # noqa: S603  our own words
        [PYTHON, "-m", "pip", "install", *options, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    number, offline, last, began = 0, False, "", time.monotonic()
    for line in process.stdout:
        log.write(line)
        last = line.strip() or last
        offline = offline or bool(_NO_INDEX(line))
        if found := _COLLECTING(line):
            number += 1
            _show(f"{number} of {count} fetched, {time.monotonic() - began:.0f} s: {found[1]}")
        elif "Retrying" in line:
            _show("the package index does not answer, trying again ...")
        elif line.startswith("Installing collected packages"):
            _show(f"{number} of {count} fetched, {time.monotonic() - began:.0f} s: unpacking ...")
    _show("")
    if process.wait():
        BEGUN.unlink()
        if offline:
            raise CannotInstall(
                "The package index cannot be reached: check the network, or PIP_INDEX_URL, and run make again."
            )
        raise CannotInstall(f"pip failed: {last} (all of its output: {LOG.relative_to(ROOT)})")


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _show(text: str) -> None:
    """Shows the progress on one line of a terminal, in place of what it showed before; a log has no use for it."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns - 1
        sys.stdout.write(f"\r\033[K{text[:width]}")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
