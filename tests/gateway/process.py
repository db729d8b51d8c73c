"""A gateway of one's own, beside the stack's: for settings and neighbours that the stack doesn't have."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests

from deploy.local.ports import free_ports, named_in
from deploy.local.waiting import wait_until
from kit.base import services

ROOT = Path(__file__).parents[2]
START_SECONDS = 30
STOP_SECONDS = 20

SERVICES = services.SERVICES

# Where nobody listens: port 1 of loopback.
NOWHERE = "127.0.0.1:1"


@contextmanager
def gateway_process(addresses: Mapping[str, str], log: Path, **settings: str) -> Iterator[str]:
    """Runs `python -m gateway` until the block ends; gives its base URL. Services without an address are away."""
    [port] = free_ports(1, apart_from=named_in(settings))
    url = f"http://127.0.0.1:{port}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    for service in SERVICES:
        environment[f"FIATGATE_{service.upper()}_ADDRESS"] = addresses.get(service, NOWHERE)
    environment |= {
        "FIATGATE_GATEWAY_BIND": f"127.0.0.1:{port}",
        "FIATGATE_GATEWAY_WORKERS": "1",
        "FIATGATE_GATEWAY_START_SECONDS": "60" if set(SERVICES) <= set(addresses) else "0",
        "FIATGATE_PUBLIC_URL": url,
        "FIATGATE_MODE": "test",
        **settings,
    }
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "run"], cwd=ROOT, env=environment, stdout=out, stderr=out
        )
    try:
        wait_until(
            lambda: process.poll() is not None or answers(url), "the gateway", timeout_seconds=START_SECONDS
        )
        if process.poll() is not None:
            raise RuntimeError(f"the gateway did not start:\n{log.read_text()}")
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=2).status_code == 200
    except requests.RequestException:
        return False
