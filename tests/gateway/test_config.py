"""Settings of the gateway: those that decide which client a request comes from, and wrong ones."""

import os
from ipaddress import ip_network

import pytest

from gateway.config import GatewaySettings
from kit.base.config.variables import load


@pytest.fixture(autouse=True)
def _required(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("FIATGATE_")]:
        monkeypatch.delenv(name)
    for service in ("IDENTITY", "CATALOG", "INVOICES", "WITHDRAWALS", "WEBHOOKS", "BANK"):
        monkeypatch.setenv(f"FIATGATE_{service}_ADDRESS", "127.0.0.1:1")


def test_networks_of_proxies_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIATGATE_TRUSTED_PROXIES", "10.0.0.0/8, 100.64.0.7,FD00::/32")
    trusted = load(GatewaySettings).trusted_proxies
    assert trusted == tuple(map(ip_network, ("10.0.0.0/8", "100.64.0.7/32", "fd00::/32")))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.0.0.0/0", "0.0.0.0/0 is too wide, at least /8 is expected"),
        ("10.0.0.0/8,::/0", "::/0 is too wide, at least /7 is expected"),
        ("128.0.0.0/1", "clients in it could name any address as their own"),
        ("10.0.0.1/8", "10.0.0.1/8 has host bits set, did you mean 10.0.0.0/8?"),
        ("192.0.2.0/24", "192.0.2.0/24 is a network for examples"),
        ("10.0.0.0/8,203.0.113.7", "name the one that your proxies connect from"),
        ("2001:db8:1::/48", "2001:db8:1::/48 is a network for examples"),
        ("proxy", "proxy is not a network, as 10.0.0.0/8"),
    ],
)
def test_a_network_that_cannot_be_one_of_proxies_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str, expected: str
) -> None:
    monkeypatch.setenv("FIATGATE_TRUSTED_PROXIES", value)
    with pytest.raises(SystemExit):
        load(GatewaySettings)
    assert expected in capsys.readouterr().err


def test_wrong_settings_are_all_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIATGATE_PUBLIC_URL", "shop.example")
    monkeypatch.setenv("FIATGATE_INVOICES_ADDRESS", "nowhere")
    monkeypatch.delenv("FIATGATE_IDENTITY_ADDRESS")
    with pytest.raises(SystemExit) as ended:
        load(GatewaySettings)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    for variable in ("PUBLIC_URL", "INVOICES_ADDRESS", "IDENTITY_ADDRESS"):
        assert f"FIATGATE_{variable}" in told
