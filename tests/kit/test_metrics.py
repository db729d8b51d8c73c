"""The port that shows a process's metrics, and what counting costs."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from deploy.local.ports import free_ports, free_range, is_free
from deploy.local.waiting import wait_until
from kit.base.clock import SystemClock
from kit.observe import metrics
from kit.rpc import status
from kit.work.worker import Outage

COUNTED = metrics.counter("test_counted", "For the tests of the metrics", ["kind"])
TIMED = metrics.histogram("test_seconds", "For the tests of the metrics", ["kind"])


@contextmanager
def exporting(bind: str, *, processes: int = 1, own: tuple[Collector, ...] = ()) -> Iterator[None]:
    exporter = metrics.Exporter(bind, processes=processes, own=own)
    exporter.start()
    with closing(exporter):
        yield


def scrape(port: int) -> dict[str, float]:
    """Sample with its labels -> value."""
    text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=5).text
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def wait_until_served(port: int) -> None:
    wait_until(lambda: not is_free(port), f"port {port} to answer", timeout_seconds=10)


def test_a_scrape_tells_what_was_counted() -> None:
    port = free_ports(1)[0]
    with exporting(f"127.0.0.1:{port}", own=(metrics.Build("sample"),)):
        wait_until_served(port)
        COUNTED.labels("scraped").inc(3)
        TIMED.labels("scraped").observe(0.2)
        found = scrape(port)
    assert found["fiatgate_test_counted_total[('kind', 'scraped')]"] == 3
    assert found["fiatgate_test_seconds_bucket[('kind', 'scraped'), ('le', '0.1')]"] == 0
    assert found["fiatgate_test_seconds_bucket[('kind', 'scraped'), ('le', '0.25')]"] == 1
    assert any("build_info" in name and "('service', 'sample')" in name for name in found)
    assert not any("_created" in name for name in found)
    assert is_free(port), "closed"


def test_processes_that_share_a_setting_take_one_port_each() -> None:
    first, second = free_range(2)
    bind = f"127.0.0.1:{first}"
    with exporting(bind, processes=2), exporting(bind, processes=2):
        wait_until_served(first)
        wait_until_served(second)


def test_a_taken_port_is_told_and_tried_again(capfd: pytest.CaptureFixture[str]) -> None:
    port = free_ports(1)[0]
    bind = f"127.0.0.1:{port}"
    with exporting(bind):
        wait_until_served(port)
        second = metrics.Exporter(bind)
        second.start()
        told = ""

        def is_told() -> bool:
            nonlocal told
            told += str(capfd.readouterr())
            return "metrics_not_served" in told

        wait_until(is_told, "a word about it", timeout_seconds=10)
    with closing(second):
        wait_until_served(port)


def test_without_a_setting_nothing_is_served() -> None:
    with exporting(""):
        pass


def told(**different: Any) -> dict[str, float]:
    """What a scrape tells of a process that is well but for what is `different`."""
    well: dict[str, Any] = {
        "service": "sample",
        "version": "1",
        "started_at": SystemClock().now(),
        "workers": [],
        "database": lambda: None,
        "nats": lambda: True,
        "gauges": lambda: [status.Gauge("parked", 3, "Events that were set aside")],
        "pool": lambda: {"in_use": 2},
    }
    collector = status.StatusCollector(status.Process(**(well | different)))
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in collector.collect()
        for sample in family.samples
    }


WELL: Final = {
    "fiatgate_database_up sample": 1,
    "fiatgate_nats_up sample": 1,
    "fiatgate_db_pool_connections sample in_use": 2,
    "fiatgate_parked sample": 3,
}


def test_a_scrape_tells_of_a_database_and_a_nats_that_are_away_and_keeps_the_rest() -> None:
    def fail() -> None:
        raise Outage("away")

    assert told() == WELL
    away = {"fiatgate_database_up sample": 0, "fiatgate_nats_up sample": 0}
    assert told(database=fail, nats=lambda: False) == {
        name: away.get(name, value) for name, value in WELL.items() if name != "fiatgate_parked sample"
    }
    assert told(gauges=fail) == {name: WELL[name] for name in WELL if name != "fiatgate_parked sample"}


def test_numbers_of_one_name_are_told_apart_by_their_label() -> None:
    loads = [
        status.Gauge(name, value, "Places", ("method", method))
        for method, value in (("card", 3), ("bank", 7))
        for name in ("taken", "places")
    ]
    assert told(gauges=lambda: loads) == {
        name: WELL[name] for name in WELL if name != "fiatgate_parked sample"
    } | {
        "fiatgate_taken sample card": 3,
        "fiatgate_taken sample bank": 7,
        "fiatgate_places sample card": 3,
        "fiatgate_places sample bank": 7,
    }


def test_a_database_that_hangs_holds_no_scrape_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "SCRAPE_SECONDS", 0.1)
    answer = threading.Event()
    try:
        assert told(database=lambda: answer.wait(30))["fiatgate_database_up sample"] == 0
    finally:
        answer.set()
