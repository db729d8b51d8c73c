"""`FIATGATE_PROMETHEUS=prometheus make run`: it takes our rules, finds every process, and answers every query of the
dashboard. `make soak` runs it, and installs what it needs.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from deploy.local.prometheus import RULES, Prometheus
from deploy.local.waiting import wait_until
from tests.support.stack import Stack

DASHBOARD: Final = RULES.with_name("dashboard.json")
# What only trouble gives: nothing to see on a good day.
EMPTY_ON_A_GOOD_DAY: Final = frozenset({"Away or stopped"})
SCRAPES_SECONDS: Final = 60

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack started as `FIATGATE_PROMETHEUS=prometheus make run` does."""
    made = Stack(tmp_path_factory.mktemp("watched") / "home", settings={"FIATGATE_PROMETHEUS": "prometheus"})
    try:
        made.start()
        yield made
    finally:
        made.stop()


def asked(stack: Stack, path: str, **query: str) -> Any:
    """`data` of an answer of its Prometheus; None while that does not answer."""
    url = f"{stack.home.running_stack()['prometheus_url']}/api/v1/{path}"
    try:
        answer = requests.get(url, params=query, timeout=10)
    except requests.ConnectionError:
        return None
    assert answer.status_code in (200, 503), answer.text
    return answer.json().get("data") if answer.status_code == 200 else None


def test_promtool_accepts_the_rules_and_the_configuration(tmp_path: Path) -> None:
    Prometheus(program="", folder=tmp_path, port=9090, targets=["127.0.0.1:9464"]).write_config()
    for what, file in (("rules", RULES), ("config", tmp_path / "prometheus.yml")):
        result = subprocess.run(
            ["promtool", "check", what, str(file)], capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr


def test_it_scrapes_every_process_and_evaluates_every_rule(watched: Stack) -> None:
    def all_up() -> bool:
        found = asked(watched, "targets")
        return bool(found) and {each["health"] for each in found["activeTargets"]} == {"up"}

    wait_until(all_up, "every target to be up", timeout_seconds=SCRAPES_SECONDS)
    addresses = {each["labels"]["instance"] for each in asked(watched, "targets")["activeTargets"]}
    told = watched.home.running_stack()["metrics"]
    assert addresses == {address for of_one in told.values() for address in of_one}

    def all_evaluated() -> bool:
        rules = [rule for group in asked(watched, "rules")["groups"] for rule in group["rules"]]
        assert not [rule["name"] for rule in rules if rule["health"] == "err"]
        return {rule["health"] for rule in rules} == {"ok"}

    wait_until(all_evaluated, "every rule to be evaluated", timeout_seconds=SCRAPES_SECONDS)


def test_every_panel_of_the_dashboard_shows_something_after_a_purchase(watched: Stack) -> None:
    panels = [each for each in json.loads(DASHBOARD.read_text())["panels"] if each["type"] != "row"]
    queries = [
        (panel["title"], target["expr"].replace("$__rate_interval", "1m"))
        for panel in panels
        for target in panel["targets"]
    ]

    def empty() -> set[str]:
        shown = {title: 0 for title, _ in queries}
        for title, query in queries:
            shown[title] += len(asked(watched, "query", query=query)["result"])
        return {title for title, series in shown.items() if not series} - EMPTY_ON_A_GOOD_DAY

    def all_show() -> bool:
        watched.cli("demo")  # a counter's first value is no increase: only a second purchase is seen
        watched.request("GET", "/api/v1/invoices/nobody-s", api_key="fg_nobody")
        for url in watched.home.running_stack()["consoles"].values():
            requests.get(f"{url}/sign-in", timeout=10)
        return not empty()

    try:
        wait_until(all_show, "every panel", timeout_seconds=SCRAPES_SECONDS)
    except TimeoutError:
        assert empty() == set()
