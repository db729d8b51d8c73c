"""The whole stack as `make run` starts it, for end-to-end tests: on a free port, in a folder of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import grpc
import psutil
import requests
from sqlalchemy import text

from deploy.local import ports
from deploy.local.home import Home
from deploy.local.plan import PREFIX
from deploy.local.ports import free_ports, named_in
from deploy.local.supervision import ROOT, ProgramState, Supervisor
from deploy.local.waiting import wait_until
from kit.audit import acts
from kit.base.actors import Actor, acting
from kit.base.seals import Seals
from kit.base.tls import Files, Identity
from kit.db.database import Database
from kit.rpc.client import channel
from tests.support.certificates import stack_settings

_READY_SECONDS = 180
_READY_ANSWERS = 10
_STOP_SECONDS = 60
_BACK_SECONDS = 30
_CLI_SECONDS = 60
_HTTP_SECONDS = 15
RECONNECT_SECONDS = 1.5
"""Longer than the longest pause of a client between two connections (kit.rpc.client)."""


def ports_of_process() -> tuple[int, int]:
    """The first and the last port of this process of tests: what starts meanwhile in another one has others."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    count = len(ports.ALL) // processes
    return ports.ALL[number * count], ports.ALL[(number + 1) * count - 1]


class CliRefused(Exception):
    """The command ended with another exit code than 0."""

    def __init__(self, exit_code: int, output: str) -> None:
        super().__init__(f"exit code {exit_code}: {output}")
        self.exit_code = exit_code
        self.output = output


class Stack:
    """One `python -m deploy.local run`.

    `settings` are `FIATGATE_*` of its environment; `durable` waits for the disk at every commit. With `certificates`,
    by process, it has mTLS.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        durable: bool = False,
        certificates: Mapping[str, Files] | None = None,
    ) -> None:
        self.home = Home(folder)
        self.settings = {**(settings or {}), **stack_settings(certificates or {})}
        [self.port] = free_ports(1, apart_from=named_in(self.settings))
        self.identity = Identity(certificates["cli"]) if certificates else None
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._supervisor = Supervisor(self.home)

    # -- its life

    def start(self, *, serve_only: bool = False) -> None:
        """Start it and return when it is ready; RuntimeError with what it printed when it is not.

        With `serve_only` no service has its workers.
        """
        output = self.home.folder.parent / f"{self.home.folder.name}.out"
        command = [sys.executable, "-m", "deploy.local", "run", "--port", str(self.port)]
        command += ["--inner-ports", *map(str, ports_of_process())]
        if not self._durable:  # tests don't wait for the disk
            command.append("--volatile")
        if serve_only:
            command.append("--serve-only")
        with output.open("wb") as out:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        process = self._process
        try:
            wait_until(
                lambda: process.poll() is not None or self._is_ready(),
                "the stack to be ready",
                timeout_seconds=_READY_SECONDS,
                every_seconds=0.1,
            )
        except TimeoutError:
            self.kill_runner()
            raise
        if process.poll() is not None:
            raise RuntimeError(f"the stack did not start:\n{output.read_text()}")

    def stop(self) -> None:
        """As Ctrl-C does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_STOP_SECONDS)
            self._process = None

    def kill_runner(self) -> None:
        """kill -9 the process that `make run` is; what it started must follow by itself."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    @property
    def process_id(self) -> int:
        """Of the process that `make run` is."""
        assert self._process is not None
        return self._process.pid

    # -- its processes

    def programs(self) -> dict[str, ProgramState]:
        """postgres, nats, demo-rates, gateway, console and the services, as supervisord sees them."""
        return self._supervisor.programs()

    def kill(self, program: str) -> None:
        """kill -9 one of them; returns when another one has taken its place.

        Its own children, such as the gateway's workers, end by themselves; they are waited for.
        """
        before = self.programs()[program].process_id
        assert before is not None, f"{program} is not running"
        children = psutil.Process(before).children(recursive=True)
        os.kill(before, signal.SIGKILL)
        _, left = psutil.wait_procs(children, timeout=_BACK_SECONDS)
        assert not left, f"{program} left {left} behind"
        self._wait_for_another(program, before)

    def restart(self, program: str) -> None:
        """Stop one of them in good order; returns when another one has taken its place."""
        before = self.programs()[program].process_id
        assert before is not None, f"{program} is not running"
        os.kill(before, signal.SIGINT if program == "postgres" else signal.SIGTERM)
        self._wait_for_another(program, before)

    def stop_program(self, program: str) -> None:
        """Stop one of them in good order; it stays stopped."""
        self._supervisor.stop_program(program)

    def start_program(self, program: str) -> None:
        """Start one that was stopped; returns at once."""
        self._supervisor.start_program(program)

    @contextmanager
    def without(self, program: str) -> Iterator[None]:
        """One of them is stopped inside the block; after it, it is ready, and so is each of its clients."""
        self._supervisor.stop_program(program)
        try:
            yield
        finally:
            self._supervisor.start_program(program)
            if program in self.addresses:  # the gateway may not have noticed that it was away
                wait_until(lambda: _listens(self.addresses[program]), program, timeout_seconds=_BACK_SECONDS)
            self.wait_until_ready()
            # A client that has just tried in vain tries again after a pause; meanwhile it refuses calls at once.
            threading.Event().wait(RECONNECT_SECONDS)

    def wait_until_ready(self, seconds: float = _BACK_SECONDS) -> None:
        """Return when everything behind the gateway answers again, whichever of its workers is asked."""
        wait_until(
            lambda: all(self._answers() for _ in range(_READY_ANSWERS)),
            f"{self.url}/readyz to answer 200",
            timeout_seconds=seconds,
        )

    # -- its users

    @property
    def url(self) -> str:
        """The gateway's base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def demo(self) -> dict[str, Any]:
        """The demo merchant: `merchant_id`, `key_id`, `api_key`, `secret`, `invoice_id`."""
        demo = self.home.demo()
        assert demo is not None
        return demo

    @property
    def addresses(self) -> dict[str, str]:
        """The gRPC address of each service."""
        return {name: place["address"] for name, place in self.home.running_stack()["services"].items()}

    def channel(self, service: str) -> grpc.Channel:
        """A channel to the service, with the certificate of the command line where there is mTLS."""
        return channel(self.addresses[service], name=service, identity=self.identity)

    @property
    def database_urls(self) -> dict[str, str]:
        """The database of each service."""
        return {name: place["database_url"] for name, place in self.home.running_stack()["services"].items()}

    def superuser_url(self, service: str) -> str:
        """The database of a service as PostgreSQL's superuser."""
        return f"{self.home.running_stack()['postgres_url'].rpartition('/')[0]}/{service}"

    def seals_of(self, service: str) -> Seals:
        """With the service's key: for rows that no call writes."""
        return Seals([self.home.secrets()["seal_keys"][service]])

    def decide(
        self,
        service: str,
        statement: str,
        act: str,
        object: str,
        after: Mapping[str, object],
        *,
        merchant_id: UUID | None = None,
        **values: object,
    ) -> None:
        """Changes rows as no call can, and writes the act that decides their values: `fiatgate verify` agrees."""
        db = Database(self.superuser_url(service), name="tests", pool_size=1, seals=self.seals_of(service))
        with acting(Actor(kind="cli", name="tests")), db.transaction() as tx:
            tx.execute(text("SET LOCAL session_replication_role = replica"))
            tx.execute(text(statement), values)
            acts.record(tx, act, object, merchant_id=merchant_id, after=after)
        db.dispose()

    def request(
        self, method: str, path: str, *, api_key: str | None = None, **options: Any
    ) -> requests.Response:
        """An API call as the demo merchant, or with another key; `options` as for `requests.request`."""
        headers = {"X-Api-Key": api_key or self.demo["api_key"], **options.pop("headers", {})}
        return requests.request(method, self.url + path, headers=headers, timeout=_HTTP_SECONDS, **options)

    def cli(self, *arguments: str) -> Any:
        """What `fiatgate ARGUMENTS --json` prints, parsed; CliRefused when its exit code is not 0."""
        result = subprocess.run(
            [sys.executable, "-m", "cli", *arguments, "--json"],
            cwd=ROOT,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_CLI_SECONDS,
            check=False,
        )
        if result.returncode != 0:
            raise CliRefused(result.returncode, result.stdout + result.stderr)
        return json.loads(result.stdout)

    def _environment(self) -> dict[str, str]:
        ours = (PREFIX, "OTEL_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return clean | self.settings | {"FIATGATE_HOME": str(self.home.folder)}

    def _is_ready(self) -> bool:
        stack = self.home.stack()
        return stack is not None and stack["ready"] and stack["process_id"] == self.process_id

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/readyz", timeout=2).status_code == 200
        except requests.RequestException:
            return False

    def _wait_for_another(self, program: str, before: int) -> None:
        def another() -> bool:
            now = self.programs().get(program)
            return now is not None and now.process_id not in (None, before)

        wait_until(another, f"another {program}", timeout_seconds=_BACK_SECONDS)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_HTTP_SECONDS).close()
    except OSError:
        return False
    return True
