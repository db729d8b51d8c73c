"""One more console beside those of the stack."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import requests

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from tests.console.house import House

ROOT: Final = Path(__file__).parents[2]
START_SECONDS: Final = 30
STOP_SECONDS: Final = 20


@contextmanager
def second_console(surface: str, house: House, log: Path, **settings: str) -> Iterator[str]:
    """Runs one more process of a surface on the same services, with settings of its own; gives its address."""
    port = free_ports(1)[0]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    environment |= {
        f"FIATGATE_{service.upper()}_ADDRESS": address for service, address in house.stack.addresses.items()
    }
    environment |= {
        f"FIATGATE_{surface.upper()}_BIND": f"127.0.0.1:{port}",
        f"FIATGATE_{surface.upper()}_WORKERS": "1",
        **settings,
    }
    url = f"http://localhost:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "console", surface], cwd=ROOT, env=environment, stdout=out, stderr=out
        )
    try:
        wait_until(lambda: _answers(url), f"the {surface}: {log}", timeout_seconds=START_SECONDS)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=2).status_code == 200
    except requests.RequestException:
        return False
