"""`--logo`: from a file or an address, once, when it is set."""

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cli import logos
from kit.egress.client import Egress
from tests.cli.command_line import Fiatgate, run
from tests.support.pictures import PNG

DIGEST = hashlib.sha256(PNG).hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def merchant_id(fiatgate: Fiatgate) -> str:
    made = fiatgate("merchants", "create", "Logo shop", "--owner", "logo@shop.example")
    return str(made["merchant_id"])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "logo.png").write_bytes(PNG)
    (tmp_path / "empty.png").write_bytes(b"")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_file_becomes_the_logo_and_nothing_takes_it_away(
    fiatgate: Fiatgate, merchant_id: str, tmp_path: Path
) -> None:
    file = tmp_path / "logo.png"
    file.write_bytes(PNG)
    assert fiatgate("merchants", "set", merchant_id, "--logo", str(file))["branding"]["logo"] == DIGEST
    assert fiatgate("merchants", "set", merchant_id, "--name", "New")["branding"]["logo"] == DIGEST
    assert fiatgate("merchants", "set", merchant_id, "--logo", "")["branding"]["logo"] is None
    file.write_text("<svg/>")
    assert fiatgate.refused("merchants", "set", merchant_id, "--logo", str(file)) == "VALIDATION_ERROR"


def test_an_address_is_asked_once(
    fiatgate: Fiatgate, merchant_id: str, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.egress.client.Egress", partial(Egress, allow_private=True))
    configured = fiatgate("merchants", "set", merchant_id, "--logo", f"{site}/logo.png")
    assert configured["branding"]["logo"] == DIGEST
    for path in ("missing.png", "empty.png"):
        assert run("merchants", "set", merchant_id, "--logo", f"{site}/{path}").exit_code == 2


def test_what_cannot_be_had_is_said(merchant_id: str, site: str, tmp_path: Path) -> None:
    large = tmp_path / "large.png"
    large.write_bytes(bytes(logos.MAX_BYTES + 1))
    for source in (
        str(tmp_path / "none.png"),
        str(tmp_path),
        str(large),
        f"{site}/logo.png",
        "https://127.0.0.1/",
    ):
        ended = run("merchants", "set", merchant_id, "--logo", source)
        assert (ended.exit_code, ended.out) == (2, ""), source
        assert "--logo" in ended.err
