"""Starts the stack, prints its addresses, keeps it until the stop, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.status import Status

from demo import invoice as demo_invoice
from deploy.local import announcement, child, schema_stamp
from deploy.local.errors import CannotStart
from deploy.local.home import Home, LockHeld, write_private_json
from deploy.local.plan import Plan, make_plan
from deploy.local.ports import is_free
from deploy.local.supervision import ROOT, STOP_SECONDS, Supervisor, last_lines, trim_logs
from deploy.local.waiting import wait_until
from kit.base.clock import monotonic_seconds
from kit.base.services import SERVICES

_START_SECONDS = 120
_STOP_SECONDS = 3 * STOP_SECONDS + 10  # three groups, one after the other
_READY_ANSWERS = 8
_POLL_SECONDS = 0.05
_WATCH_SECONDS = 1.0
_STARTS_BEFORE_GIVING_UP = 3
_SUPERVISOR_RESTARTS = 5
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GROUPS_ON_DATABASES = ("services", "edge")
_DEMO_PEOPLE = "deploy.local.demo_people"


@dataclass(frozen=True)
class _Step:
    """A module of ours that runs once, in a process of its own."""

    module: str
    process: subprocess.Popen[bytes]
    log: Path


class _Stopped(Exception):
    """The stop came before the stack was up."""


class Runner:
    """One run of the stack, in the main thread: `run()` returns the exit code.

    `caller` is the environment whose `FIATGATE_*` win; `durable=False` does not wait for the disk (tests); `mode` is
    that of the services, "run" or "serve".
    """

    def __init__(
        self, home: Home, *, port: int, caller: Mapping[str, str], durable: bool = True, mode: str = "run"
    ) -> None:
        self._home = home
        self._port = port
        self._caller = caller
        self._durable = durable
        self._mode = mode
        self._supervisor = Supervisor(home)
        self._console = Console(highlight=False)
        self._told_to_stop = threading.Event()
        self._told_to_hurry = threading.Event()

    def run(self) -> int:
        """Starts, announces and watches; returns 0 after an ordinary stop, 1 when it could not start or keep
        running.
        """
        for number in _STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        try:
            self._console.print("Starting PostgreSQL, NATS and the services ...", style="dim")
            with self._console.status("Starting ...") as status:
                started = monotonic_seconds()
                if not self._home.folder.exists():
                    self._require_port()  # leaves no folder behind
                self._home.prepare()
                plan, lock = self._start(status)
            announcement.announce(self._console, plan, seconds=monotonic_seconds() - started)
            write_private_json(self._home.stack_file, plan.as_json(process_id=os.getpid(), ready=True))
            self._watch(plan, lock)
        except _Stopped:
            pass
        except CannotStart as reason:
            self._console.print(str(reason), markup=False, soft_wrap=True)
            return 1
        finally:
            self._stop()
        self._console.print("Stopped.", style="dim")
        return 0

    def _on_signal(self, number: int, frame: object) -> None:
        if self._told_to_stop.is_set():
            self._told_to_hurry.set()
        self._told_to_stop.set()

    def _start(self, status: Status) -> tuple[Plan, int]:
        lock = self._take_locks(status)
        self._require_port()
        plan = make_plan(
            self._home, port=self._port, caller=self._caller, durable=self._durable, mode=self._mode
        )
        write_private_json(self._home.stack_file, plan.as_json(process_id=os.getpid(), ready=False))
        plan.postgres.initialise()
        plan.nats.write_config()
        if plan.prometheus is not None:
            plan.prometheus.write_config()
        migrated = plan.owns_databases and schema_stamp.is_current(self._home)
        self._supervisor.configure(plan, waiting_groups=() if migrated else _GROUPS_ON_DATABASES)
        self._supervisor.start(plan, lock=lock)
        # The query wakes supervisord: otherwise it would look for programs to start only after a second.
        self._wait(self._supervisor_answers, "supervisord to answer", timeout_seconds=_START_SECONDS)
        if not migrated:
            status.update("Preparing the databases ...")
            self._run_module("deploy.local.schema")
            for group in _GROUPS_ON_DATABASES:
                self._supervisor.start_group(group)
            self._supervisor.configure(plan)  # for a supervisord that has to be started again
        if plan.serve_only:  # what a restore brought back is only looked at
            self._wait_until_serving(plan, status)
            return plan, lock
        # Beside the start of the services: it waits for identity itself.
        inviting = self._start_module(_DEMO_PEOPLE) if self._home.demo() else None
        self._wait_until_ready(plan, status)
        if inviting:
            self._finish(inviting)
        demo = self._home.demo()
        if demo is None or demo_invoice.refuses_key(plan.url, demo["api_key"]):
            status.update("Making a demo merchant's key ...")
            self._run_module("deploy.local.seed")
        if not inviting:
            self._run_module(_DEMO_PEOPLE)
        return plan, lock

    def _require_port(self) -> None:
        if not is_free(self._port):
            raise CannotStart(f"Port {self._port} is taken by another program: make run PORT=8081")

    def _take_locks(self, status: Status) -> int:
        try:
            self._home.lock()  # held until this process ends
        except LockHeld:
            raise CannotStart(_already_runs(self._home)) from None
        taken: list[int] = []

        def free() -> bool:
            try:
                taken.append(self._home.lock_data())
            except LockHeld:  # its runner was killed, and supervisord still stops the others
                status.update("Waiting for a stack that was killed to be gone ...")
            return bool(taken)

        self._wait(free, "what is left of the last stack here to be gone", timeout_seconds=_STOP_SECONDS)
        return taken[0]

    def _supervisor_answers(self) -> bool:
        if self._supervisor.has_died:
            raise CannotStart(f"supervisord ended:\n{last_lines(self._home.logs / 'supervisord.out')}")
        return bool(self._supervisor.programs())

    def _wait_until_ready(self, plan: Plan, status: Status) -> None:
        def ready() -> bool:
            # Several times: each of the gateway's workers must have found the services.
            return all(_answers(f"{url}/healthz") for url in plan.probed) and all(
                _answers(f"{url}/readyz") for url in plan.probed for _ in range(_READY_ANSWERS)
            )

        self._wait_for_programs(ready, f"{', '.join(plan.probed)} to be ready", status)

    def _wait_until_serving(self, plan: Plan, status: Status) -> None:
        addresses = [plan.environment[f"FIATGATE_{each.upper()}_ADDRESS"] for each in SERVICES]

        def serving() -> bool:
            return all(_accepts(address) for address in addresses)

        self._wait_for_programs(serving, "the services to answer", status)

    def _wait_for_programs(self, condition: Callable[[], bool], what: str, status: Status) -> None:
        starts: dict[str, set[int]] = defaultdict(set)
        status.update("Starting the services ...")

        def holds() -> bool:
            if not self._supervisor_answers():
                return False
            for program in self._supervisor.programs().values():
                starts[program.name].add(program.started_at_seconds)
                if program.refuses_settings or len(starts[program.name]) > _STARTS_BEFORE_GIVING_UP:
                    log = last_lines(program.log)
                    raise CannotStart(f"{program.name} does not start; {program.log} ends:\n{log}")
            return condition()

        self._wait(holds, what, timeout_seconds=_START_SECONDS)

    def _wait(self, condition: Callable[[], bool], what: str, *, timeout_seconds: float) -> None:
        def holds() -> bool:
            if self._told_to_stop.is_set():
                raise _Stopped
            return condition()

        try:
            wait_until(holds, what, timeout_seconds=timeout_seconds, every_seconds=_POLL_SECONDS)
        except TimeoutError as late:
            raise CannotStart(f"{late}\nThe logs are in {self._home.logs}") from None

    def _run_module(self, module: str) -> None:
        self._finish(self._start_module(module))

    def _start_module(self, module: str) -> _Step:
        log = self._home.logs / f"{module.rpartition('.')[2]}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                child.command(sys.executable, "-m", module, str(self._home.folder)),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        return _Step(module, process, log)

    def _finish(self, step: _Step) -> None:
        try:
            self._wait(
                lambda: step.process.poll() is not None,
                f"{step.module} to finish",
                timeout_seconds=_START_SECONDS,
            )
        finally:
            step.process.kill()  # has no effect once it has ended
            step.process.wait()
        if step.process.returncode != 0:
            raise CannotStart(f"{step.module} failed; {step.log} ends:\n{last_lines(step.log)}")

    def _watch(self, plan: Plan, lock: int) -> None:
        restarts = 0
        while not self._told_to_stop.wait(_WATCH_SECONDS):
            trim_logs(self._home.logs)
            if self._supervisor.has_died:
                restarts += 1
                if restarts > _SUPERVISOR_RESTARTS:
                    raise CannotStart("supervisord keeps dying; the stack is stopped")
                self._console.print("supervisord died; starting it and everything else again")
                self._supervisor.start(plan, lock=lock)

    def _stop(self) -> None:
        self._supervisor.stop()
        with self._console.status("Stopping ...") as status:

            def gone() -> bool:
                if not self._supervisor.has_died:
                    names = (p.name for p in self._supervisor.programs().values() if p.process_id)
                    status.update(f"Stopping {', '.join(names)} ...")
                return self._supervisor.has_died or self._told_to_hurry.is_set()

            try:
                wait_until(gone, "all to stop", timeout_seconds=_STOP_SECONDS, every_seconds=_POLL_SECONDS)
            finally:
                self._supervisor.kill()
        running = self._home.stack()
        if running is not None and running["process_id"] == os.getpid():
            self._home.stack_file.unlink()


def _already_runs(home: Home) -> str:
    stack = home.stack()
    if stack is None:
        return f"Fiatgate is being started or stopped already ({home.folder})"
    return (
        f"Fiatgate runs already: {stack['url']} (process {stack['process_id']}, {home.folder}).\n"
        f"Ctrl-C where it was started stops it, or: kill {stack['process_id']}\n"
        "A second one beside it: FIATGATE_HOME=.fiatgate-2 make run PORT=8081"
    )


def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2):
            return True
    except OSError:
        return False


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 (our own gateway)
            return bool(response.status == 200)
    except OSError:
        return False
