"""A worker of the webhooks service as a process of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from deploy.local.waiting import wait_until

SHORT_LEASE = {"webhook_timeout_seconds": 4, "webhook_lease_margin_seconds": 1}
"""A lease of nine seconds. An attempt outlasts a machine that stands still for three: a test interrupts it."""
START_SECONDS = 60


class WorkerProcess:
    """`python -m services.webhooks work`, and what it logs."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as stderr:
            command = [sys.executable, "-m", "services.webhooks", "work"]
            self.process = subprocess.Popen(command, env=os.environ | environment, stderr=stderr)
        wait_until(
            lambda: "process_started" in self.logged(), "the worker to start", timeout_seconds=START_SECONDS
        )

    def logged(self) -> dict[str, list[dict[str, Any]]]:
        """Complete lines by event."""
        lines: dict[str, list[dict[str, Any]]] = {}
        for line in self._log.read_text().splitlines(keepends=True):
            if line.endswith("\n") and line.startswith("{"):
                entry = json.loads(line)
                lines.setdefault(entry["event"], []).append(entry)
        return lines

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
