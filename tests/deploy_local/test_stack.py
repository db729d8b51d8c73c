"""`make run` as its users meet it: it starts, heals, says what is wrong, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import pytest
import requests

from demo.invoice import curl_line
from deploy.local.supervision import ROOT
from deploy.local.waiting import wait_until
from kit.audit.heads import KEEPER
from kit.base.services import SERVICES
from tests.faults.test_on_a_stack import PROGRAMS
from tests.support.stack import CliRefused, Stack
from tests.test_observability import alerts, scraped, selectors


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that the tests of this module may break and start again."""
    # A folder too long for a unix socket, with characters that mean something to a shell or a config file.
    folder = tmp_path_factory.mktemp("o") / ("a folder; with 100% odd $names " + "x" * 70)
    made = Stack(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def family(process_id: int) -> list[psutil.Process]:
    process = psutil.Process(process_id)
    return [process, *process.children(recursive=True)]


def wait_until_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=40)
    assert alive == [], "left behind"


def run_again(stack: Stack, *, port: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deploy.local", "run", "--port", str(port), "--volatile"],
        cwd=ROOT,
        env=os.environ | {"FIATGATE_HOME": str(stack.home.folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_curl_line_it_prints_makes_another_invoice(stack: Stack) -> None:
    line = curl_line(stack.url, stack.demo["api_key"])
    answer = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=20, check=True)
    invoice = json.loads(answer.stdout)
    assert invoice["status"] == "pending"
    assert stack.request("GET", f"/api/v1/invoices/{invoice['external_id']}").status_code == 200


def test_the_demo_invoice_waits_for_its_customer(stack: Stack) -> None:
    invoice = stack.request("GET", f"/api/v1/invoices/{stack.demo['invoice_id']}").json()["data"]
    assert invoice["status"] == "pending"
    assert invoice["payment_link"].startswith(stack.url)


def test_the_demo_merchant_and_its_key_are_listed_like_any_other(stack: Stack) -> None:
    assert stack.demo["merchant_id"] in {each["merchant_id"] for each in stack.cli("merchants", "list")}
    assert stack.demo["key_id"] in {
        each["key_id"] for each in stack.cli("keys", "list", stack.demo["merchant_id"])
    }


def test_the_demo_people_have_links_to_both_surfaces(stack: Stack) -> None:
    links, consoles = stack.home.links(), stack.home.running_stack()["consoles"]
    for surface in ("desk", "dashboard"):
        assert links[surface].startswith(f"{consoles[f'console-{surface}']}/invitation")
        assert requests.get(f"{consoles[f'console-{surface}']}/readyz", timeout=5).status_code == 200


def test_every_demo_currency_has_a_fresh_rate_and_methods(stack: Stack) -> None:
    demo = {"EUR", "USD", "RUB", "KZT", "TRY", "INR", "JPY"}

    def listed(path: str) -> list[Any]:
        """Other tests of this stack may have used up the key's requests of the minute."""
        wait_until(
            lambda: stack.request("GET", path).status_code != 429,
            f"{path} within the limit of the key",
            timeout_seconds=65,
            every_seconds=1,
        )
        answer = stack.request("GET", path)
        assert answer.status_code == 200, answer.text
        data: list[Any] = answer.json()["data"]
        return data

    currencies = listed("/api/v1/currencies")
    assert demo <= {currency["currency"] for currency in currencies}
    methods = listed("/api/v1/payment-methods")
    assert demo <= {method["currency"]["code"] for method in methods}


def test_what_is_secret_is_readable_by_us_alone(stack: Stack) -> None:
    for name in (
        "secrets.json",
        "demo.json",
        "links.json",
        "stack.json",
        "supervisor.conf",
        "settings/identity.env",
    ):
        assert stat.S_IMODE((stack.home.folder / name).stat().st_mode) == 0o600, name


def test_a_second_one_in_the_same_folder_says_where_the_first_is(stack: Stack) -> None:
    second = run_again(stack, port=stack.port + 1)
    assert second.returncode == 1
    assert stack.url in second.stdout
    assert str(stack.process_id) in second.stdout
    assert stack.home.stack() is not None, "the second must not clean up after the first"


def test_it_is_not_ready_while_a_service_is_down(stack: Stack) -> None:
    with stack.without("webhooks"):
        wait_until(
            lambda: requests.get(f"{stack.url}/readyz", timeout=5).status_code == 503,
            "a 503",
            timeout_seconds=20,
        )
        assert requests.get(f"{stack.url}/healthz", timeout=5).status_code == 200
    assert requests.get(f"{stack.url}/readyz", timeout=5).status_code == 200


def test_a_taken_port_is_told_and_nothing_stays(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        other = Stack(tmp_path / "other")
        other.port = somebody.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"Port {other.port} is taken"):
            other.start()
    assert not other.home.folder.exists()


def test_a_first_start_raises_no_alert_that_counts_events(own_stack: Stack) -> None:
    def heads_are_kept() -> bool:
        with (
            closing(psycopg2.connect(own_stack.database_urls[KEEPER])) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT DISTINCT service FROM act_heads")
            return "catalog" in {service for (service,) in cursor.fetchall()}

    wait_until(heads_are_kept, "identity to keep the head of catalog", timeout_seconds=30)
    workers = {
        each["service"]: {worker["name"] for worker in each["workers"]}
        for each in own_stack.cli("status")
        if "workers" in each
    }
    with_heads = {service for service, names in workers.items() if "act-heads" in names}
    assert with_heads == set(SERVICES) - {KEEPER}, "identity has no other side"

    now = scraped(own_stack)
    counted = {
        name: {
            selector.name: now.total(
                selector.name or "", **{each.name: each.value for each in selector.matchers.matchers}
            )
            for selector in selectors(rule["expr"])
        }
        for name, rule in alerts().items()
        if re.fullmatch(r".*increase\(.*\) > 0", rule["expr"], re.DOTALL)
    }
    assert len(counted) > 10
    assert not {name: totals for name, totals in counted.items() if any(totals.values())}


def test_killing_it_leaves_no_process_behind_and_the_next_start_finds_everything_but_replaces_a_dead_demo_key(
    own_stack: Stack,
) -> None:
    before = own_stack.demo
    options = {"name": "Euro here", "symbol": "€", "decimals": "2", "min": "1", "max": "9000"}
    own_stack.cli("currencies", "set", "EUR", *(f"--{name}={value}" for name, value in options.items()))
    own_stack.cli("keys", "deactivate", before["key_id"])
    with pytest.raises(CliRefused) as refused:
        own_stack.cli("demo")
    error = json.loads(refused.value.output)["error"]
    assert error["code"] == "DEMO_FAILED"
    assert "403 API_KEY_INVALID: API key is invalid or deactivated" in error["message"]
    assert "{" not in error["message"]

    processes = family(own_stack.process_id)
    assert len(processes) >= 2 + len(PROGRAMS)
    own_stack.kill_runner()
    own_stack.start()  # waits for what the killed one left to be gone
    wait_until_gone(processes)
    assert own_stack.demo["api_key"] != before["api_key"]
    assert own_stack.demo["merchant_id"] == before["merchant_id"]
    assert own_stack.request("GET", f"/api/v1/invoices/{before['invoice_id']}").status_code == 200
    (euro,) = [each for each in own_stack.cli("currencies", "list") if each["code"] == "EUR"]
    assert euro["name"] == "Euro here", "only the key is made anew"


def test_the_supervisor_itself_may_be_killed(own_stack: Stack) -> None:
    supervisord = next(
        each for each in family(own_stack.process_id) if "supervisor.supervisord" in each.cmdline()
    )
    supervisord.kill()
    wait_until(lambda: not own_stack.programs(), "supervisord to be gone", timeout_seconds=10)
    wait_until(lambda: len(own_stack.programs()) == len(PROGRAMS), "another supervisord", timeout_seconds=60)
    own_stack.wait_until_ready(120)


def test_ctrl_c_stops_everything_soon_and_takes_the_addresses_away(own_stack: Stack) -> None:
    processes = family(own_stack.process_id)
    with requests.Session() as open_browser:
        open_browser.get(f"{own_stack.url}/healthz", timeout=5)  # keeps its connection open
        own_stack.stop()
    assert " with SIGKILL" not in own_stack.home.logs.joinpath("supervisord.log").read_text()
    wait_until_gone(processes)
    assert own_stack.home.stack() is None


def test_a_wrong_setting_is_told_by_name_and_nothing_stays(own_stack: Stack) -> None:
    """On the stopped stack, whose databases are made."""
    own_stack.stop()
    wrong = Stack(own_stack.home.folder, settings={"FIATGATE_CUSTOMER_LIMIT": "many"})
    with pytest.raises(RuntimeError, match="FIATGATE_CUSTOMER_LIMIT"):
        wrong.start()
    assert wrong.home.stack() is None
