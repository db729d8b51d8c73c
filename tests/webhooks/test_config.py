"""Settings as the environment gives them."""

import pytest

from kit.base.config.variables import load
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from services.webhooks.config import CALL_MARGIN_SECONDS, WebhooksSettings
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY

REQUIRED = {
    "FIATGATE_WEBHOOKS_DATABASE_URL": "postgresql://webhooks@127.0.0.1/webhooks",
    "FIATGATE_WEBHOOKS_ADDRESS": "127.0.0.1:7000",
    "FIATGATE_IDENTITY_ADDRESS": "127.0.0.1:7001",
    "FIATGATE_FACT_PUBLIC_KEYS": ",".join(PUBLIC_KEYS),
    "FIATGATE_WEBHOOKS_SEAL_KEYS": SEAL_KEY,
}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in REQUIRED.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_the_defaults_are_the_documented_ones(environment: pytest.MonkeyPatch) -> None:
    settings = load(WebhooksSettings)
    assert settings.webhook_retry_delays == (30, 60, 120, 240, 480, 960, 1800)
    assert settings.webhook_timeout_seconds == 15
    assert settings.webhook_resend_cooldown_seconds == 60
    assert settings.webhook_allow_private is False


def test_a_lease_outlives_a_wait_and_an_attempt(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FIATGATE_WEBHOOK_TIMEOUT_SECONDS", "20")
    settings = load(WebhooksSettings)
    assert settings.lease_seconds > 2 * settings.webhook_timeout_seconds


def test_no_attempt_outlasts_the_call_that_waits_for_it(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its caller stops waiting after OUTWARD_CALL_SECONDS, however long the service's own calls may take."""
    environment.setenv("FIATGATE_WEBHOOKS_CALL_SECONDS", "180")
    most = OUTWARD_CALL_SECONDS - CALL_MARGIN_SECONDS
    environment.setenv("FIATGATE_WEBHOOK_TIMEOUT_SECONDS", str(most))
    assert load(WebhooksSettings).webhook_timeout_seconds == most
    environment.setenv("FIATGATE_WEBHOOK_TIMEOUT_SECONDS", str(most + 1))
    with pytest.raises(SystemExit):
        load(WebhooksSettings)
    assert "FIATGATE_WEBHOOK_TIMEOUT_SECONDS" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FIATGATE_WEBHOOK_RETRY_DELAYS", "30,soon"),
        ("FIATGATE_WEBHOOK_RETRY_DELAYS", "0"),
        ("FIATGATE_WEBHOOK_TIMEOUT_SECONDS", "0"),
        ("FIATGATE_WEBHOOK_TIMEOUT_SECONDS", "26"),
        ("FIATGATE_WEBHOOK_RESEND_COOLDOWN_SECONDS", "-1"),
        ("FIATGATE_WEBHOOK_ALLOW_PRIVATE", "perhaps"),
        ("FIATGATE_WEBHOOKS_POOL_SIZE", "3"),  # for 64 threads of resends
    ],
)
def test_a_value_out_of_bounds_is_told_by_name_at_the_start(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    environment.setenv(name, value)
    with pytest.raises(SystemExit):
        load(WebhooksSettings)
    assert name in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("FIATGATE_FACT_PUBLIC_KEYS", ""),
        ("FIATGATE_FACT_PUBLIC_KEYS", "CHANGE-ME"),
    ],
)
def test_what_lets_facts_in_must_be_right(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str
) -> None:
    environment.setenv(variable, value)
    with pytest.raises(SystemExit):
        load(WebhooksSettings)
    assert variable in capsys.readouterr().err
