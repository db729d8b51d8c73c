"""Rate sources come as one JSON setting; what is wrong with it is told at start, all at once."""

import json
from typing import Any

import pytest

from kit.base.config.variables import load
from services.catalog.config import CatalogSettings

SOURCE = {"name": "acme", "url": "https://rates.example/usdt", "paths": {"EUR": "data.EUR"}}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIATGATE_CATALOG_DATABASE_URL", "postgresql://catalog:secret@127.0.0.1:5432/catalog")
    monkeypatch.setenv("FIATGATE_CATALOG_ADDRESS", "127.0.0.1:7002")


def test_without_sources_the_rates_are_the_operators_alone() -> None:
    settings = load(CatalogSettings)
    assert settings.rate_sources == ()
    assert not settings.rate_allow_private


def test_sources_are_read_from_json(monkeypatch: pytest.MonkeyPatch) -> None:
    inverted = {**SOURCE, "name": "other", "invert": True}
    monkeypatch.setenv("FIATGATE_RATE_SOURCES", json.dumps([SOURCE, inverted]))
    first, second = load(CatalogSettings).rate_sources
    assert (first.name, first.url, first.paths, first.invert) == (
        "acme",
        "https://rates.example/usdt",
        {"EUR": "data.EUR"},
        False,
    )
    assert second.invert


@pytest.mark.parametrize(
    ("sources", "complaint"),
    [
        ("{", "expected a JSON list"),
        ('{"name": "acme"}', "tuple"),
        ([{**SOURCE, "name": ""}], "at least 1 character"),
        ([{**SOURCE, "paths": {}}], "at least 1 item"),
        ([{**SOURCE, "paths": {"eur": "x"}}], "no currency code"),
        ([{**SOURCE, "paths": {"EUR": ""}}], "the path of EUR is empty"),
        ([{**SOURCE, "unknown": 1}], "Extra inputs"),
        ([SOURCE, SOURCE], "source names must differ: acme"),
        ([{**SOURCE, "url": "http://rates.example/"}], "acme: the URL must begin with https://"),
        ([{**SOURCE, "url": "https://127.0.0.1/"}], "acme: the URL's address is not public"),
        ([{**SOURCE, "url": "https://user:pass@rates.example/"}], "acme: the URL must not hold a user name"),
    ],
)
def test_a_wrong_source_keeps_the_service_from_starting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sources: Any, complaint: str
) -> None:
    text = sources if isinstance(sources, str) else json.dumps(sources)
    monkeypatch.setenv("FIATGATE_RATE_SOURCES", text)
    with pytest.raises(SystemExit, match="2"):
        load(CatalogSettings)
    told = capsys.readouterr().err
    assert "FIATGATE_RATE_SOURCES" in told
    assert complaint in told


def test_a_currency_with_fewer_sources_than_must_answer_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIATGATE_RATES_MIN_SOURCES", "2")
    both = {**SOURCE, "name": "other", "paths": {"EUR": "a", "USD": "b"}}
    monkeypatch.setenv("FIATGATE_RATE_SOURCES", json.dumps([SOURCE, both]))
    with pytest.raises(SystemExit, match="2"):
        load(CatalogSettings)
    assert "fewer than 2 (RATES_MIN_SOURCES) sources for USD" in capsys.readouterr().err


def test_loopback_sources_are_for_local_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIATGATE_RATE_ALLOW_PRIVATE", "on")
    monkeypatch.setenv("FIATGATE_RATE_SOURCES", json.dumps([{**SOURCE, "url": "http://127.0.0.1:9/rates"}]))
    assert load(CatalogSettings).rate_sources[0].url == "http://127.0.0.1:9/rates"
