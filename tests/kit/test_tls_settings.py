"""Who a process is stands in three files: all of them, and such as can be used, or it doesn't start."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kit.base.config.processes import CliSettings
from kit.base.config.variables import EXIT_CODE, load
from kit.base.tls import Files
from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[Files], None]:
    def make(files: Files) -> None:
        for name, path in (("CA", files.ca), ("CERT", files.certificate), ("KEY", files.key)):
            monkeypatch.setenv(f"FIATGATE_TLS_{name}", str(path))

    return make


def test_settings_without_files_are_without_tls() -> None:
    assert load(CliSettings).identity is None


def test_all_connections_of_a_process_share_one_identity(
    authority: Authority, tmp_path: Path, environment: Callable[[Files], None]
) -> None:
    environment(authority.issue(tmp_path / "cli", "cli"))
    settings = load(CliSettings)
    assert settings.identity is not None
    assert settings.identity is settings.identity
    assert settings.identity.current().names == ("cli",)


def test_files_of_its_own_come_first(
    authority: Authority,
    tmp_path: Path,
    environment: Callable[[Files], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment(authority.issue(tmp_path / "gateway", "gateway"))
    own = authority.issue(tmp_path / "cli", "cli")
    monkeypatch.setenv("FIATGATE_CLI_TLS_CERT", str(own.certificate))
    monkeypatch.setenv("FIATGATE_CLI_TLS_KEY", str(own.key))
    identity = load(CliSettings).identity
    assert identity is not None
    assert identity.current().names == ("cli",)


def _missing(files: Files) -> str:
    files.ca.unlink()
    return f"{files.ca} can't be read: No such file or directory"


def _garbage(files: Files) -> str:
    files.certificate.write_text("-----BEGIN CERTIFICATE-----\nsecret")
    return f"{files.certificate} holds no certificate in PEM"


def _no_key(files: Files) -> str:
    files.key.write_bytes(files.certificate.read_bytes())
    return f"{files.key} holds no private key without password in PEM"


def _another_key(files: Files) -> str:
    files.key.write_bytes(Authority().issue(files.key.parent / "other", "gateway").key.read_bytes())
    return f"{files.key} is not the key of {files.certificate}"


def _locked_key(files: Files) -> str:
    Authority().issue(files.key.parent, "gateway", password=b"secret")
    return f"{files.key} holds no private key without password in PEM"


def _nameless(files: Files) -> str:
    Authority().issue(files.key.parent)
    return f"{files.certificate} has no DNS name to be known by"


@pytest.mark.parametrize("spoil", [_missing, _garbage, _no_key, _another_key, _locked_key, _nameless])
def test_a_process_with_files_that_can_not_be_used_does_not_start(
    authority: Authority,
    tmp_path: Path,
    environment: Callable[[Files], None],
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Files], str],
) -> None:
    files = authority.issue(tmp_path / "gateway", "gateway")
    why = spoil(files)
    environment(files)
    with pytest.raises(SystemExit) as end:
        load(CliSettings)
    assert end.value.code == EXIT_CODE
    assert f"FIATGATE_TLS_KEY: {why} (" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["CA", "CERT", "KEY"])
def test_a_process_with_half_of_the_settings_does_not_start(
    authority: Authority,
    tmp_path: Path,
    environment: Callable[[Files], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
) -> None:
    environment(authority.issue(tmp_path / "cli", "cli"))
    monkeypatch.delenv(f"FIATGATE_TLS_{missing}")
    with pytest.raises(SystemExit) as end:
        load(CliSettings)
    assert end.value.code == EXIT_CODE
    assert "expected all of TLS_CA, TLS_CERT and TLS_KEY, or none" in capsys.readouterr().err
