"""The image is small, and what `tools/slim.py` leaves of the packages is enough."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import babel
import pytest

from gateway.pay.languages import NAMES
from tools import slim

ROOT: Final = Path(__file__).resolve().parents[2]
MOST_MB: Final = 150
"""Of all packages of the image, before `strip`, which takes 49 MB, and without bytecode, which takes 42 MB."""

SHOWN: Final = """
from datetime import UTC, datetime
import babel
from gateway.pay.languages import NAMES, language
print(babel.__file__)
for code in NAMES:
    page = language(code)
    moment = page.moment(datetime(2026, 1, 31, 12, tzinfo=UTC))
    print(page.money("1234567.5", "EUR"), page.minutes(90, form="long"), moment)
"""
CHECKED: Final = """
import stdnum
from stdnum import iban
print(stdnum.__file__)
for account in "DE89370400440532013000", "BE71096123456769", "ES9121000418450200051332", "TR330006100519786457841326":
    print(iban.validate(account))
"""
TRACED: Final = """
import io, pygments
from rich.console import Console
print(pygments.__file__)
console = Console(file=io.StringIO(), force_terminal=True)
try:
    1 / 0
except ZeroDivisionError:
    console.print_exception()
print(console.file.getvalue())
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Babel, Pygments and stdnum as they are in the image."""
    folder = tmp_path_factory.mktemp("packages")
    installed = Path(babel.__file__).parents[1]
    for package in ("babel", "pygments", "stdnum"):
        shutil.copytree(installed / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [*slim.unread(folder, languages=[*NAMES])]:
        path.unlink()
    return folder


def lines(program: str, path: str) -> list[str]:
    """Returns what the program prints, the file of the package first."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    ).stdout.splitlines()


def test_the_page_has_the_same_words_in_all_languages_without_the_other_locales(packages: Path) -> None:
    file, *shown = lines(SHOWN, f"{packages}:{ROOT}")
    assert file.startswith(str(packages))
    assert shown == lines(SHOWN, str(ROOT))[1:]
    assert len(shown) == len(NAMES)
    assert not (packages / "babel" / "locale-data" / "sv.dat").exists()


def test_a_traceback_has_its_colours_without_the_other_lexers(packages: Path) -> None:
    file, *shown = lines(TRACED, str(packages))
    assert file.startswith(str(packages))
    assert "ZeroDivisionError" in "".join(shown)
    assert not (packages / "pygments" / "lexers" / "c_cpp.py").exists()


def test_accounts_are_checked_without_the_other_tables(packages: Path) -> None:
    file, *shown = lines(CHECKED, str(packages))
    assert file.startswith(str(packages))
    assert shown == lines(CHECKED, "")[1:]
    assert not (packages / "stdnum" / "oui.dat").exists()


def test_the_packages_of_the_image_are_few_and_small() -> None:
    locked = re.findall(
        r"^([A-Za-z0-9._-]+)==[^\s;]+ \\$", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    )
    sizes = {name: installed_bytes(name) for name in locked if name != "setuptools"}
    largest = sorted(sizes.items(), key=lambda each: -each[1])[:10]
    assert sum(sizes.values()) / 1e6 < MOST_MB, f"the image grows; its largest packages: {largest}"


def installed_bytes(name: str) -> int:
    """Returns the bytes of a package's files in this environment, less those that the image does without."""
    files = [
        Path(str(file.locate())) for file in distribution(name).files or () if "__pycache__" not in file.parts
    ]
    return sum(path.stat().st_size for path in files if path.exists() and is_read(path))


def is_read(path: Path) -> bool:
    if path.parent.name == "locale-data" and path.suffix == ".dat":
        return path.stem in {slim.ALL_LANGUAGES, *NAMES}
    return path.suffix not in slim.NOT_READ and not slim.TEST_SUITES & set(path.parts)
