"""The stack's folder: secrets made once and private, one holder of the lock, files never half-written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.local.home import Home, LockHeld, write_private_json
from deploy.nats_rights import USERS
from kit.base.services import SERVICES


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_made_once_and_for_us_alone(home: Home) -> None:
    first = home.secrets()
    assert home.secrets() == first
    assert mode(home.folder / "secrets.json") == 0o600
    assert len({first["postgres"], first["master_key"], *first["databases"].values()}) == 2 + len(SERVICES)


def test_a_folder_of_an_earlier_version_gets_the_secrets_it_lacks_and_keeps_its_own(home: Home) -> None:
    first = home.secrets()
    earlier = {name: value for name, value in first.items() if name not in ("nats", "master_key")}
    for kind in ("databases", "owners"):  # of before there was a service identity
        earlier[kind] = {name: value for name, value in first[kind].items() if name != "identity"}
    write_private_json(home.folder / "secrets.json", earlier)
    mended = home.secrets()
    assert set(mended["nats"]) == set(USERS)
    assert mended["master_key"]
    for kind in ("databases", "owners"):
        assert mended[kind].items() > earlier.pop(kind).items()
        assert set(mended[kind]) == set(SERVICES)
    assert mended.items() >= earlier.items()
    assert home.secrets() == mended


def test_a_file_written_again_stays_private_whatever_the_umask(home: Home) -> None:
    before = os.umask(0)
    try:
        write_private_json(home.demo_file, {"api_key": "one"})
        write_private_json(home.demo_file, {"api_key": "two"})
    finally:
        os.umask(before)
    assert home.demo() == {"api_key": "two"}
    assert mode(home.demo_file) == 0o600
    assert [path.name for path in home.folder.glob("demo*")] == ["demo.json"]


@pytest.mark.parametrize("lock", [Home.lock, Home.lock_data])
def test_a_lock_has_one_holder_and_is_free_after_it(home: Home, lock: Callable[[Home], int]) -> None:
    held = lock(home)
    with pytest.raises(LockHeld):
        lock(home)
    os.close(held)
    os.close(lock(home))


def test_nothing_runs_in_a_folder_nobody_started(home: Home) -> None:
    assert home.stack() is None
    assert home.demo() is None
    with pytest.raises(SystemExit, match="no stack runs in"):
        home.running_stack()


def test_the_folder_is_the_setting_or_the_default() -> None:
    assert Home.of({"FIATGATE_HOME": "/somewhere"}).folder == Path("/somewhere")
    assert Home.of({"FIATGATE_HOME": ""}).folder == Path.cwd() / ".fiatgate"
