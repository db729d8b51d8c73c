"""Removes from an environment what its programs don't read: `python tools/slim.py FOLDER`, in the build of the image.

Compiled modules keep what the loader needs and lose the tables for debuggers. Babel keeps the languages of the
customer's page; Pygments, which colours tracebacks, keeps Python; stdnum keeps its tables of countries and of IBANs.
Sources of compiled modules, stubs for type checkers and the test suites of packages go. Needs `strip` (binutils) and
this project in the environment.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

NOT_READ: Final = frozenset({".c", ".h", ".pxd", ".pxi", ".pyi", ".pyx"})
TEST_SUITES: Final = frozenset({"SelfTest", "testing", "tests"})
KEPT_LEXERS: Final = frozenset({"__init__", "_mapping", "python"})
ALL_LANGUAGES: Final = "root"
"""The locale from which all others inherit."""


def main(folder: Path) -> None:
    """Makes the environment smaller and prints the size before and after, in MB."""
    # In a process of its own: a compiled module that this one has loaded must not change under it.
    asked = "from gateway.pay.languages import NAMES; print(*NAMES)"
    languages = subprocess.run(  # noqa: S603  our own words
        [folder / "bin" / "python", "-c", asked], check=True, capture_output=True, text=True
    ).stdout.split()
    (packages,) = folder.glob("lib/python*/site-packages")
    before = size_bytes(packages)
    for path in [*unread(packages, languages=languages)]:
        path.unlink()
    for suite in test_suites(packages):
        shutil.rmtree(suite, ignore_errors=True)  # within one that is gone already
    strip(packages)
    sys.stdout.write(f"{packages}: {before / 1e6:.0f} MB, now {size_bytes(packages) / 1e6:.0f} MB\n")


def unread(packages: Path, *, languages: list[str]) -> Iterator[Path]:
    """Returns the files that no program reads."""
    yield from (path for path in packages.rglob("*") if path.suffix in NOT_READ)
    yield from packages.rglob("test_*.py")
    yield from (path for path in packages.glob("stdnum/*.dat") if path.name != "iban.dat")
    kept = {ALL_LANGUAGES, *languages}
    yield from (path for path in packages.glob("pygments/lexers/*.py") if path.stem not in KEPT_LEXERS)
    yield from (path for path in packages.glob("babel/locale-data/*.dat") if path.stem not in kept)


def test_suites(packages: Path) -> list[Path]:
    return [path for path in packages.rglob("*") if path.is_dir() and path.name in TEST_SUITES]


def strip(packages: Path) -> None:
    """Strips the compiled modules. Libraries that a wheel brings along (`*.libs`) stay as they are: the tool that put
    them there has moved their parts, which `strip` may not expect.
    """
    modules = [path for path in packages.rglob("*.so") if not path.parent.name.endswith(".libs")]
    subprocess.run(["strip", "--strip-unneeded", *modules], check=True)  # noqa: S603, S607


def size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
