"""The service refuses to start with settings it could not work with."""

import base64
import os

import pytest

from kit.base.config.variables import load
from services.identity.config import IdentitySettings

KEY = bytes(range(224, 256))  # the two alphabets differ for it


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("FIATGATE_IDENTITY_DATABASE_URL", "postgresql://a:b@127.0.0.1/merchants")
    monkeypatch.setenv("FIATGATE_IDENTITY_ADDRESS", "127.0.0.1:7001")
    monkeypatch.setenv("FIATGATE_DESK_URL", "http://localhost:8081")
    monkeypatch.setenv("FIATGATE_DASHBOARD_URL", "http://localhost:8082")
    monkeypatch.delenv("FIATGATE_MASTER_KEYS", raising=False)
    monkeypatch.delenv("FIATGATE_WEBHOOK_ALLOW_PRIVATE", raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode().rstrip("="),
    ],
)
def test_a_master_key_may_be_in_either_alphabet_and_without_padding(
    environment: pytest.MonkeyPatch, text: str
) -> None:
    environment.setenv("FIATGATE_MASTER_KEYS", text)
    assert load(IdentitySettings).master_keys == (base64.urlsafe_b64encode(KEY).decode(),)


def test_the_order_of_master_keys_is_kept(environment: pytest.MonkeyPatch) -> None:
    keys = [base64.urlsafe_b64encode(os.urandom(32)).decode() for _ in range(3)]
    environment.setenv("FIATGATE_MASTER_KEYS", ", ".join(keys))
    assert load(IdentitySettings).master_keys == tuple(keys)


@pytest.mark.parametrize(
    "text", [None, "", ",", "hunter2", "ключ", base64.b64encode(KEY[:31]).decode(), KEY.hex()]
)
def test_without_good_master_keys_the_service_does_not_start(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    if text is not None:
        environment.setenv("FIATGATE_MASTER_KEYS", text)
    with pytest.raises(SystemExit) as exit:
        load(IdentitySettings)
    told = capsys.readouterr().err
    assert exit.value.code == 2
    assert "FIATGATE_MASTER_KEYS" in told
    assert not text or len(text) < 2 or text not in told  # a mistyped secret is still a secret


def test_the_master_keys_do_not_show_when_settings_are_printed(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FIATGATE_MASTER_KEYS", base64.urlsafe_b64encode(KEY).decode())
    assert base64.urlsafe_b64encode(KEY).decode() not in repr(load(IdentitySettings))
