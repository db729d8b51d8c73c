"""`fiatgate demo` in an installation that is no local stack: the demo pod is its own process here, too."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from cli import connection
from demo import rates, seeding
from demo.webhooks import Delivery, Inbox, is_signed
from demo.world import CURRENCIES
from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from tests.cli.command_line import Ended, Fiatgate, run
from tests.support.stack import Stack

ROOT: Final = Path(__file__).resolve().parents[2]
HTTP_SECONDS: Final = 10


@contextmanager
def demo_pod(log: Path) -> Iterator[str]:
    """Runs `python -m demo` and returns its address; its lines go to `log`."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "demo", str(port)], cwd=ROOT, stdout=output)
        try:
            wait_until(lambda: answers(url), "the demo pod", timeout_seconds=30)
            yield url
        finally:
            process.terminate()
            assert process.wait(timeout=10) == 0, "a pod that is told to stop does so"


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=HTTP_SECONDS).ok
    except requests.RequestException:
        return False


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture
def elsewhere(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of a pod: addresses of services and gateway, and no stack in FIATGATE_HOME."""
    described = stack.home.running_stack()
    monkeypatch.setenv("FIATGATE_HOME", str(tmp_path))
    for service, place in described["services"].items():
        monkeypatch.setenv(f"FIATGATE_{service.upper()}_ADDRESS", place["address"])
    monkeypatch.setenv("FIATGATE_PUBLIC_URL", "https://pay.example.com")
    monkeypatch.setenv("FIATGATE_INTERNAL_GATEWAY_URL", described["url"])
    return monkeypatch


def refusal(ended: Ended) -> dict[str, Any]:
    assert (ended.exit_code, ended.out) == (1, "")
    return dict(json.loads(ended.err)["error"])


def test_the_demo_pays_an_invoice_and_shows_its_webhook(
    fiatgate: Fiatgate, elsewhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "pod.log"
    run("merchants", "create", "Real shop", "--owner", "real@shop.example", "--json")
    with demo_pod(log) as url:
        elsewhere.setenv("FIATGATE_DEMO_URL", url)
        keys = active_keys(fiatgate)
        first = run("demo", "--anyway", "--json")
        assert first.exit_code == 0, first.err
        assert active_keys(fiatgate) == keys, "that of the run is deactivated"
        steps = {step["step"]: step["detail"] for step in json.loads(first.out)}
        again = run("demo", "--anyway", "--keep-key")
    assert again.exit_code == 0, again.err
    (kept,) = active_keys(fiatgate) - keys
    assert run("keys", "deactivate", kept).exit_code == 0
    assert "signing secret" in again.out
    assert "signing secret" not in first.out
    assert "desk" not in steps["Links by which the demo people sign in"], "it would open the data of others"
    assert "Demo data" in again.err
    assert "https://pay.example.com/api/v1/create-invoice" in again.err, "customers' address, not ours"
    assert "signature valid" in steps["Merchant receives one signed webhook"]
    assert f"{fiatgate.stack.url}/pay/" in steps["Merchant creates an invoice"]
    received = [line for line in lines(log) if line["event"] == "webhook_received"]
    assert [line["signature"] for line in received] == ["valid"] * 4, "each run's webhook and its resend"
    assert {line["status"] for line in received} == {"success"}


def active_keys(fiatgate: Fiatgate) -> set[str]:
    return {
        key["key_id"] for key in fiatgate("keys", "list", fiatgate.stack.demo["merchant_id"]) if key["active"]
    }


def test_the_demo_of_a_local_stack_needs_the_word_too(fiatgate: Fiatgate) -> None:
    run("merchants", "create", "Real shop", "--owner", "real@shop.example", "--json")
    refused = refusal(run("demo", "--json"))
    assert refused["code"] == "OTHERS_THERE"
    assert "--anyway" in refused["message"]


def test_the_demo_needs_a_word_where_there_are_other_merchants(
    fiatgate: Fiatgate, elsewhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run("merchants", "create", "Real shop", "--owner", "real@shop.example", "--json")
    with demo_pod(tmp_path / "pod.log") as url:
        elsewhere.setenv("FIATGATE_DEMO_URL", url)
        refused = refusal(run("demo", "--json"))
    assert refused["code"] == "OTHERS_THERE"
    assert "Real shop" in refused["message"] or "merchants (" in refused["message"]
    assert "--anyway" in refused["message"]


def test_invented_accounts_are_not_made_beside_real_ones(
    fiatgate: Fiatgate, elsewhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The demo's merchant is not there: its methods would be offered to the customers of the others."""
    elsewhere.setattr(seeding, "SHOP", "A demo shop that was never made")
    with demo_pod(tmp_path / "pod.log") as url:
        elsewhere.setenv("FIATGATE_DEMO_URL", url)
        for words in (("demo", "--json"), ("demo", "--anyway", "--json")):
            refused = refusal(run(*words))
            assert refused["code"] == "OTHERS_THERE"
            assert "Use an empty installation" in refused["message"]


def others() -> tuple[int, int]:
    """How many categories and currencies the demo takes for those of others."""
    found = "; ".join(seeding.others(connection.merchants(), connection.catalog(), connection.desk()))
    counts = [re.search(rf"(\d+) {noun}(y|ies) ", found) for noun in ("categor", "currenc")]
    categories, currencies = (0 if count is None else int(count[1]) for count in counts)
    return categories, currencies


def test_currencies_and_categories_of_others_are_counted_and_not_replaced(
    fiatgate: Fiatgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stack has the demo's: to a demo with other values they are somebody else's until its merchant is made."""
    categories, currencies = others()
    first, *rest = CURRENCIES
    monkeypatch.setattr(seeding, "CURRENCIES", (replace(first, max_amount="77"), *rest))
    monkeypatch.setattr(seeding, "COMMISSION", "0.07")
    assert others() == (categories, currencies), "an operator may change the demo's"
    monkeypatch.setattr(seeding, "SHOP", "A demo shop that was never made")
    assert others() == (categories + 1, currencies + 1)
    monkeypatch.setattr(seeding, "CURRENCIES", CURRENCIES)
    monkeypatch.setattr(seeding, "COMMISSION", "0.04")
    assert others() == (categories, currencies), "an interrupted first run goes on"
    monkeypatch.setattr(seeding, "CURRENCIES", tuple(rest))
    monkeypatch.setattr(seeding, "CATEGORY", "another")
    assert others() == (categories + 1, currencies + 1)


def test_an_installation_that_is_not_for_trials_has_no_demo(elsewhere: pytest.MonkeyPatch) -> None:
    refused = refusal(run("demo", "--json"))
    assert refused["code"] == "NO_DEMO_HERE"
    assert "FIATGATE_DEMO_URL" in refused["message"]


def test_a_demo_pod_that_is_away_is_named_and_no_key_stays(
    fiatgate: Fiatgate, elsewhere: pytest.MonkeyPatch
) -> None:
    keys = active_keys(fiatgate)
    (port,) = free_ports(1)
    elsewhere.setenv("FIATGATE_DEMO_URL", f"http://127.0.0.1:{port}")
    refused = refusal(run("demo", "--anyway", "--json"))
    assert refused["code"] == "SERVICE_DOWN"
    assert str(port) in refused["message"]
    assert active_keys(fiatgate) == keys


def test_the_pod_has_the_rates_and_names_a_wrong_signature(tmp_path: Path) -> None:
    log = tmp_path / "pod.log"
    with demo_pod(log) as url:
        assert requests.get(f"{url}/rates", timeout=HTTP_SECONDS).content == rates.document()
        sent = [requests.post(f"{url}/webhooks", data=b"[]", timeout=HTTP_SECONDS)]
        assert requests.put(f"{url}/secret", data="one", timeout=HTTP_SECONDS).status_code == 204
        sent.append(requests.post(f"{url}/webhooks/shop", data=b'{"event_id":"e"}', timeout=HTTP_SECONDS))
        assert [answer.status_code for answer in sent] == [204, 204]
        large = requests.post(f"{url}/webhooks", data=b"x" * 100_000, timeout=HTTP_SECONDS)
        assert large.status_code == 413
        assert requests.post(f"{url}/elsewhere", data=b"", timeout=HTTP_SECONDS).status_code == 404
        (row,) = requests.get(f"{url}/received/shop", timeout=HTTP_SECONDS).json()
        assert row["body"] == '{"event_id":"e"}'
    unknown, _, wrong = lines(log)
    assert unknown["signature"].startswith("unknown")
    assert (wrong["signature"], wrong["event_id"]) == ("wrong", "e")


SIGNED: Final = "b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163"
"""By `openssl dgst -sha256 -hmac secret` of the time, a period, and the body."""


def test_a_signature_counts_for_its_secret_body_and_time_only() -> None:
    def delivery(time: str = "1700000000", body: bytes = b"{}", signature: str = SIGNED) -> Delivery:
        headers = {"x-signature-timestamp": time, "x-signature": signature}
        return Delivery(path="/webhooks", headers=headers, body=body)

    assert is_signed(delivery(), ["another", "secret"])
    assert not is_signed(delivery(), ["another"])
    assert not is_signed(delivery(), [])
    assert not is_signed(delivery(time="1700000001"), ["secret"])
    assert not is_signed(delivery(body=b"[]"), ["secret"])
    assert not is_signed(delivery(signature="é"), ["secret"])
    assert not is_signed(Delivery(path="/webhooks", headers={}, body=b"{}"), ["secret"])


def test_an_inbox_keeps_the_newest_of_each_path() -> None:
    inbox = Inbox()
    for number in range(150):
        inbox.add(Delivery(path=f"/{number % 2}", headers={}, body=str(number).encode()))
    assert [each.body for each in inbox.at("/1")][-1] == b"149"
    assert len(inbox.at("/0")) + len(inbox.at("/1")) == 100


def test_a_merchant_without_a_category_comes_with_a_warning(fiatgate: Fiatgate) -> None:
    made = run("merchants", "create", "No category", "--owner", "none@shop.example")
    assert made.exit_code == 0
    assert "offered no method, because it has no category" in " ".join(made.err.split())
    assert "--category CODE" in made.out
    named = run(
        "merchants", "create", "Known category", "--owner", "none@shop.example", "--category", "standard"
    )
    assert (named.exit_code, named.err) == (0, "")
