"""Programs of the local stack that are forked from supervisord are what they are when they are executed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil

from deploy.local.plan import HTTP
from kit.base.services import SERVICES
from tests.support.stack import Stack

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_runs_after_the_imports_and_before_the_fork() -> None:
    script = """
import threading
import psutil
from deploy.local.forking import import_programs
import_programs()
process = psutil.Process()
print(process.num_threads(), threading.active_count(), process.net_connections(), len(process.children()))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "1 1 [] 0\n"


def test_each_program_in_python_is_forked_and_has_its_own_name(stack: Stack) -> None:
    programs = {name: psutil.Process(each.process_id) for name, each in stack.programs().items()}
    ours = (*SERVICES, *(each.name for each in HTTP), "demo-rates")
    supervisord = programs["invoices"].parent()
    assert supervisord is not None
    assert {name: programs[name].parent() for name in programs} == dict.fromkeys(programs, supervisord)
    forked = {name for name, process in programs.items() if process.cmdline() == supervisord.cmdline()}
    if sys.platform == "linux":
        assert forked == set(ours)
        names = {name: Path(f"/proc/{programs[name].pid}/comm").read_text().strip() for name in ours}
        assert names == {name: name[:15] for name in ours}


def test_supervisord_knows_no_secret_that_its_forks_would_have_in_memory(stack: Stack) -> None:
    supervisord = psutil.Process(stack.programs()["invoices"].process_id).parent()
    assert supervisord is not None
    known = [stack.home.supervisor_config.read_text(), *supervisord.environ().values()]
    secrets = json.loads((stack.home.folder / "secrets.json").read_text())
    of_programs = [
        *secrets["databases"].values(),
        *secrets["seal_keys"].values(),
        *(secrets[name] for name in ("master_key", "accounts_master_key", "fact_signing_key")),
    ]
    assert len(of_programs) > len(SERVICES)
    assert not [each for each in of_programs if any(each in text for text in known)]


def test_a_forked_program_has_its_log_for_itself(stack: Stack) -> None:
    for name in SERVICES:
        lines = (stack.home.logs / f"{name}.log").read_text().splitlines()
        assert lines
        assert all(f'"service": "{name}"' in line for line in lines)
