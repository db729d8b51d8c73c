"""Settings as the environment gives them."""

import pytest

from kit.config import load
from services.webhooks.config import WebhooksSettings
from tests.support.signing import PUBLIC_KEYS

REQUIRED = {
    "FIATGATE_WEBHOOKS_DATABASE_URL": "postgresql://webhooks@127.0.0.1/webhooks",
    "FIATGATE_WEBHOOKS_ADDRESS": "127.0.0.1:7000",
    "FIATGATE_MERCHANTS_ADDRESS": "127.0.0.1:7001",
    "FIATGATE_FACT_PUBLIC_KEYS": ",".join(PUBLIC_KEYS),
}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in REQUIRED.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_the_defaults_are_the_specifications(environment: pytest.MonkeyPatch) -> None:
    settings = load(WebhooksSettings)
    assert settings.webhook_retry_delays == (30, 60, 120, 240, 480, 960, 1800)
    assert settings.webhook_timeout_seconds == 15
    assert settings.webhook_resend_cooldown_seconds == 60
    assert settings.webhook_allow_private is False


def test_a_lease_outlives_a_wait_and_an_attempt(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FIATGATE_WEBHOOK_TIMEOUT_SECONDS", "20")
    settings = load(WebhooksSettings)
    assert settings.lease_seconds > 2 * settings.webhook_timeout_seconds


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FIATGATE_WEBHOOK_RETRY_DELAYS", "30,soon"),
        ("FIATGATE_WEBHOOK_RETRY_DELAYS", "0"),
        ("FIATGATE_WEBHOOK_TIMEOUT_SECONDS", "0"),
        ("FIATGATE_WEBHOOK_TIMEOUT_SECONDS", "26"),
        ("FIATGATE_WEBHOOK_RESEND_COOLDOWN_SECONDS", "-1"),
        ("FIATGATE_WEBHOOK_ALLOW_PRIVATE", "perhaps"),
    ],
)
def test_a_value_out_of_bounds_is_told_by_name_at_the_start(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    environment.setenv(name, value)
    with pytest.raises(SystemExit):
        load(WebhooksSettings)
    assert name in capsys.readouterr().err
