"""`make run` on a new machine: what is installed is shown, half of it is made anew, and each failure is one line."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.cli.terminal import on_screen

ROOT: Final = Path(__file__).resolve().parents[2]

BACKEND: Final = '''
"""Builds an empty wheel, so that pip needs nothing from an index."""
import zipfile

INFO = "nothing-1.dist-info"

def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{folder}/nothing-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\\nName: nothing\\nVersion: 1\\n")
        wheel.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{INFO}/RECORD", f"{INFO}/METADATA,,\\n{INFO}/WHEEL,,\\n{INFO}/RECORD,,\\n")
    return "nothing-1-py3-none-any.whl"
'''
PROJECT: Final = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "nothing"
version = "1"
"""


def project(made: Path) -> Path:
    """A project without packages, with this project's script."""
    (made / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "environment.py", made / "tools")
    (made / "backend.py").write_text(BACKEND)
    (made / "pyproject.toml").write_text(PROJECT)
    (made / "requirements-local.lock").write_text("")
    (made / "requirements-dev.lock").write_text("")
    (made / "requirements-failover.lock").write_text("")
    return made


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose environment is there: to make one takes seconds. A test leaves it as it was."""
    made = project(tmp_path_factory.mktemp("installed") / "project")
    assert prepare(made).returncode == 0
    return made


def prepare(
    folder: Path, purpose: str = "runs", *, python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "tools/environment.py", purpose],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def fault(folder: Path) -> str:
    """Why the environment would be made anew; "None" when it works."""
    asked = "import sys; sys.path.insert(0, 'tools'); import environment; print(environment._fault())"
    return subprocess.check_output([sys.executable, "-c", asked], cwd=folder, text=True).strip()


def test_an_environment_is_made_once_and_made_anew_when_it_cannot_work(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    first = prepare(folder)
    assert (first.returncode, first.stderr) == (0, "")
    assert re.fullmatch(
        r"Installing what Fiatgate runs on: 0 packages, once\.\nInstalled in \d+ s\.\n", first.stdout
    )
    assert prepare(folder).stdout == "", "nothing is to do"
    assert "what its tests need" in prepare(folder, "develops").stdout
    assert prepare(folder, "nodes").stdout.startswith("Installing what `make failover` needs: 0 packages")
    assert prepare(folder, "nodes").stdout == ""

    (folder / ".venv" / ".begun").touch()  # as an interrupted installation leaves it
    activated = prepare(folder, python=str(folder / ".venv" / "bin" / "python3"))
    assert (activated.returncode, activated.stderr) == (0, ""), "its own Python is removed, too"
    assert activated.stdout.startswith("Removing .venv: its installation was interrupted.\nInstalling ")
    assert prepare(folder).stdout == "", "it is whole"


def test_an_environment_of_another_folder_or_that_lost_something_is_one_to_be_made_anew(
    installed: Path,
) -> None:
    assert fault(installed) == "None"
    of_another = "it was made for another folder or another Python"
    moved = installed.rename(installed.with_name("moved"))
    assert fault(moved) == of_another
    moved.rename(installed)
    (packages,) = (installed / ".venv" / "lib").glob("python*/site-packages")
    for lost, why in (
        (installed / ".venv" / "bin" / "python", of_another),
        (packages / "nothing-1.dist-info" / "WHEEL", "files of nothing are missing"),
        (packages / "pip", "files of pip are missing"),
    ):
        kept = lost.rename(installed / "kept")
        assert fault(installed) == why
        kept.rename(lost)
    assert fault(installed) == "None"


def test_without_a_network_one_line_says_what_to_do_and_what_was_there_stays(installed: Path) -> None:
    lock = installed / "requirements-local.lock"
    lock.write_text(f"colour==0.1.5 --hash=sha256:{'0' * 64}\n")
    offline = prepare(
        installed, PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0", PIP_NO_CACHE_DIR="1"
    )
    assert offline.returncode == 1
    assert offline.stdout.startswith("Installing "), "another version's packages"
    assert offline.stderr == (
        "The package index cannot be reached: check the network, or PIP_INDEX_URL, and run make again.\n"
    )
    lock.write_text("")
    assert fault(installed) == "None"
    assert prepare(installed).stdout == ""


def test_the_packages_are_counted_on_one_line_of_a_terminal_and_not_in_a_log(
    installed: Path, tmp_path: Path
) -> None:
    wheel = tmp_path / "colour-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("colour-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: colour\nVersion: 1\n")
        made.writestr(
            "colour-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr("colour-1.dist-info/RECORD", "colour-1.dist-info/METADATA,,\n")
    lock = installed / "requirements-dev.lock"
    pinned = f"colour==1 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    lock.write_text(pinned)
    here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    logged = prepare(installed, "develops", **here)
    assert (len(logged.stdout.splitlines()), logged.stderr) == (2, "")
    lock.write_text(f"# changed\n{pinned}")
    script = [sys.executable, "tools/environment.py", "develops"]
    screen = on_screen(script, here | {"PIP_FORCE_REINSTALL": "1"}, folder=installed)
    assert screen.exit_code == 0
    _, *progress, _ = screen.text.strip().split("\n")[1].split("\r\033[K")
    assert progress and all(
        re.match(r"1 of 1 fetched, \d+ s: (colour\S+|unpacking \.\.\.)$", each) for each in progress
    )


@pytest.mark.parametrize("port", ["99999", "0", "-1", "web", ""])
def test_a_port_that_is_none_is_refused_in_one_line(port: str) -> None:
    ended = subprocess.run(
        ["make", "run", f"PORT={port}"],
        cwd=ROOT,
        env={name: each for name, each in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert "give a number from 1 to 65535" in line
