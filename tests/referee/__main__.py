"""`python -m tests.referee record FOLDER` and `python -m tests.referee compare [--update]`."""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import requests
from prometheus_client.parser import text_string_to_metric_families

from deploy.local.postgres import binary
from kit.base.services import SERVICES
from tests.referee import surfaces
from tests.referee.day import Day, commands
from tests.support.receiver import Receiver
from tests.support.stack import Stack

ROOT: Final = Path(__file__).resolve().parents[2]
RECORDED: Final = Path(__file__).with_name("recorded")
SETTINGS: Final = {
    "FIATGATE_DESK_REQUESTS_PER_MINUTE": "0",
    "FIATGATE_DASHBOARD_REQUESTS_PER_MINUTE": "0",
    "FIATGATE_KEY_LEASE_MILLISECONDS": "300",
    "FIATGATE_RATES_POLL_SECONDS": "3600",
}


def recorded() -> dict[str, Any]:
    """Starts a stack, lives the day and returns its parts."""
    with tempfile.TemporaryDirectory() as folder, Receiver() as receiver:
        stack = Stack(Path(folder) / "home", settings=SETTINGS)
        try:
            stack.start()
            os.environ["FIATGATE_HOME"] = str(stack.home.folder)
            return _lived(stack, receiver, Path(folder))
        finally:
            stack.stop()


def _lived(stack: Stack, receiver: Receiver, folder: Path) -> dict[str, Any]:
    day = Day(stack, receiver, folder)
    day.live()
    metrics = list(_metrics(stack))
    called = {method for name, labels, method in metrics if name.endswith("rpc_calls_total")}
    return {
        **day.parts,
        "commands_not_run": day.commands_not_run(),
        "options": {name: _options(command) for name, command in commands()},
        "addresses": {each: dict(surfaces.addresses(each)) for each in ("gateway", "desk", "dashboard")},
        "metrics": sorted({f"{name} {' '.join(labels)}".strip() for name, labels, _ in metrics}),
        "rpcs_not_called": [name for name in _rpcs() if f"/{name}" not in called],
        **{f"schema_{service}": _schema(stack, service) for service in SERVICES},
    }


def _rpcs() -> list[str]:
    """`package.Service/Method` of all services."""
    paths = sorted(path.relative_to(ROOT).with_suffix("") for path in ROOT.glob("fiatgate/**/*_pb2.py"))
    modules = [importlib.import_module(".".join(path.parts)) for path in paths]
    services = [each for module in modules for each in module.DESCRIPTOR.services_by_name.values()]
    return [f"{service.full_name}/{method.name}" for service in services for method in service.methods]


def _options(command: Any) -> list[str]:
    return [" ".join([*each.opts, *each.secondary_opts]) + " *" * each.required for each in command.params]


def _metrics(stack: Stack) -> Iterator[tuple[str, list[str], str]]:
    """Name and label names of each series, and the RPC that it counts."""
    for addresses in stack.home.running_stack()["metrics"].values():
        for address in addresses:
            text = requests.get(f"http://{address}/metrics", timeout=30).text
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    yield sample.name, sorted(sample.labels), sample.labels.get("method", "")


def _schema(stack: Stack, service: str) -> list[str]:
    url = stack.superuser_url(service)
    dump = subprocess.run(
        [binary("pg_dump"), "--schema-only", url], capture_output=True, text=True, check=True, timeout=60
    )
    lines = dump.stdout.splitlines()
    return [
        line for line in lines if line and not re.match(r"--|\\(un)?restrict|SET |SELECT pg_catalog", line)
    ]


def write(folder: Path) -> None:
    """Records a day into the folder, a file for each part."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in recorded().items():
        (folder / f"{name}.json").write_text(json.dumps(part, indent=1, ensure_ascii=False) + "\n")


def differences(before: Path, after: Path) -> list[str]:
    """The lines in which two recordings differ, with a few around them."""
    names = sorted({path.name for folder in (before, after) for path in folder.glob("*.json")})
    found: list[str] = []
    for name in names:
        old, new = (_lines(folder / name) for folder in (before, after))
        found += difflib.unified_diff(old, new, f"recorded/{name}", f"now/{name}", lineterm="", n=5)
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(prog="referee", description=__doc__)
    parser.add_argument("verb", choices=("record", "compare"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--update", action="store_true", help="replace the committed recording")
    given = parser.parse_args()
    if given.verb == "record" or given.update:
        write(given.folder or RECORDED)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        found = differences(RECORDED, Path(folder))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
