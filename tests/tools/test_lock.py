"""The locks are what `make run` and `make test` install: complete, by hash, from wherever the machine's pip looks."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(file: str) -> set[str]:
    return {
        normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", (ROOT / file).read_text(), re.MULTILINE)
    }


def asked_for(requirements: list[str]) -> set[str]:
    return {normal(match[0]) for text in requirements if (match := re.match(r"[A-Za-z0-9._-]+", text))}


def test_every_dependency_is_locked() -> None:
    assert asked_for(PROJECT["dependencies"]) <= locked("requirements.lock"), "run `make lock`"
    extras = PROJECT["optional-dependencies"]
    assert asked_for(extras["local"]) <= locked("requirements-local.lock"), "run `make lock`"
    assert asked_for(extras["dev"]) <= locked("requirements-dev.lock"), "run `make lock`"
    assert asked_for(SETTINGS["dependency-groups"]["failover"]) <= locked("requirements-failover.lock"), (
        "run `make lock`"
    )


def test_the_image_has_no_servers_of_the_laptop() -> None:
    needed = {"setuptools"}  # pytoniq-core asks for it; the image loses it after its build
    assert not (locked("requirements.lock") & asked_for(PROJECT["optional-dependencies"]["local"])) - needed


def test_tests_run_on_what_users_and_the_image_run_on() -> None:
    def lines(file: str) -> set[str]:
        return set(re.findall(r"^[A-Za-z0-9._-]+==[^\\]+", (ROOT / file).read_text(), re.MULTILINE))

    def versions(file: str) -> dict[str, str]:
        return dict(line.split(";")[0].strip().split("==") for line in lines(file))

    assert lines("requirements.lock") < lines("requirements-local.lock") < lines("requirements-dev.lock")
    ours, failover = versions("requirements-dev.lock"), versions("requirements-failover.lock")
    assert {name: ours.get(name, version) for name, version in failover.items()} == failover


LOCKS = [f"requirements{of}.lock" for of in ("", "-local", "-dev", "-failover")]


@pytest.mark.parametrize("file", LOCKS)
def test_a_lock_has_a_hash_for_everything_and_no_address(file: str) -> None:
    text = (ROOT / file).read_text()
    for entry in re.split(r"\n(?=[A-Za-z0-9])", text):
        if "==" in entry:
            assert "--hash=sha256:" in entry, entry
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|file:|/opt/", text)
