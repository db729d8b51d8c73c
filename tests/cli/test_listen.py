"""`fiatgate listen`: it takes genuine webhooks only, and prints each."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from services.webhooks.domain import signature

SECRET: Final = "a secret"
EVENT: Final[dict[str, Any]] = {
    "event_id": "e1",
    "order_id": "o1",
    "status": "success",
    "external_id": "order-1",
    "currency": "EUR",
    "amount": "40.00",
    "is_adjusted": True,
    "original_amount": "49.90",
}


def headers(body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"X-Signature-Timestamp": "1700000000", "X-Signature": signature(secret, "1700000000", body)}


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_it_prints_genuine_webhooks_and_refuses_others(tmp_path: Path, options: tuple[str, ...]) -> None:
    port = free_ports(1)[0]
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "listen", "--port", str(port), *options],
        env=os.environ | {"FIATGATE_SIGNING_SECRET": SECRET, "FIATGATE_HOME": str(tmp_path)},  # no stack
        stdout=subprocess.PIPE,
        text=True,
    )
    url = f"http://127.0.0.1:{port}/webhook"
    body = json.dumps(EVENT).encode()
    test = json.dumps(EVENT | {"event_id": "e2", "is_adjusted": False, "test_event": True}).encode()

    def post(sent: bytes, given: dict[str, str]) -> int:
        return requests.post(url, data=sent, headers=given, timeout=15).status_code

    try:
        wait_until(lambda: is_there(url), "fiatgate listen", timeout_seconds=30)
        assert [post(each, headers(each)) for each in (body, body, test)] == [204] * 3
        others: list[dict[str, str]] = [
            headers(body, "another"),
            headers(body) | {"X-Signature-Timestamp": "1700000001"},
            {},
        ]
        assert [post(body, each) for each in others] == [401] * 3
        assert post(b"x" * 100_000, headers(body)) == 413
    finally:
        process.terminate()
        printed, _ = process.communicate(timeout=15)
    if options:
        assert printed.count('"genuine": true') == 3
        assert printed.count('"again": true') == 1
        return
    assert printed.splitlines() == [
        "success order-1 40.00 EUR (ordered: 49.90)",
        "success order-1 40.00 EUR (ordered: 49.90, again)",
        "success order-1 40.00 EUR (a test)",
        *["refused: the signature is wrong or missing"] * 3,
    ]


def is_there(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).status_code == 501  # it knows POST only
    except requests.ConnectionError:
        return False
