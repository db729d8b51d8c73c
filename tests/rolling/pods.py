"""A pod of deploy/k8s/base as a process of this machine: asked by its probes, and told to leave as a cluster does."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
import psutil
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc

from deploy.local import child
from deploy.local.plan import PREFIX
from deploy.local.waiting import wait_until
from kit.base.clock import SystemClock
from tests.k8s import manifests
from tests.k8s.manifests import Manifest, container, name, pod

START_SECONDS: Final = 120
READY_EVERY_SECONDS: Final = 0.1
HEARD_SECONDS: Final = 2.5
"""Until the cluster's name server and nodes know that a pod leaves."""
NAMES_KEPT_SECONDS: Final = 30.0
"""The longest that name servers of clusters keep an answer: docs/operations/kubernetes.md, Rolling restarts."""


class Broken(Exception):
    """A pod did what Kubernetes would have had to repair."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How slowly news travels.

    names_kept_seconds  so long the name server gives an answer again
    leaving_seconds     how long a pod goes on after it was told to leave; None: as its preStop says
    """

    names_kept_seconds: float = NAMES_KEPT_SECONDS
    leaving_seconds: float | None = None


class Pod:
    """One process of a Deployment, at an address of its own."""

    def __init__(self, deployment: Manifest, address: str, environment: Mapping[str, str], log: Path) -> None:
        self.address = address
        self._main = container(deployment)
        self._patience_seconds = int(pod(deployment)["terminationGracePeriodSeconds"])
        self._name = f"{name(deployment)} at {address}"
        self._process = self._started(environment, log)

    def __str__(self) -> str:
        return self._name

    def _started(self, environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
        python, *arguments = self._main["command"]
        assert python == "python"
        with log.open("ab") as out:
            return subprocess.Popen(
                child.command(sys.executable, *arguments),
                cwd=manifests.ROOT,
                env=without_settings(os.environ) | dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                process_group=0,
            )

    def wait_until_ready(self) -> None:
        """Started, then ready, as its probes ask. Raises Broken when it ends meanwhile, or doesn't get there."""
        for probe in ("startupProbe", "readinessProbe"):

            def passes(asked: Manifest = self._main[probe]) -> bool:
                if self._process.poll() is not None:
                    raise Broken(f"{self} ended with {self._process.returncode} at its start")
                return self._answers(asked)

            try:
                wait_until(
                    passes,
                    f"{probe} of {self}",
                    timeout_seconds=START_SECONDS,
                    every_seconds=READY_EVERY_SECONDS,
                )
            except TimeoutError as late:
                raise Broken(str(late)) from None

    def leave(self, pace: Pace, unlist: Callable[[], None]) -> None:
        """What Kubernetes does to a pod it deletes. Callers hear of it when the name server gives them a new answer.
        Raises Broken when it has to be killed, or ends otherwise than it should.
        """
        pre_stop_seconds = 0
        if "lifecycle" in self._main:
            _, seconds = self._main["lifecycle"]["preStop"]["exec"]["command"]
            pre_stop_seconds = int(seconds)
        leaving_seconds = pre_stop_seconds if pace.leaving_seconds is None else pace.leaving_seconds
        rest = threading.Event()
        rest.wait(heard_seconds := min(HEARD_SECONDS, leaving_seconds / 2))
        unlist()
        rest.wait(leaving_seconds - heard_seconds)
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(self._patience_seconds - pre_stop_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Broken(f"{self} had to be killed") from None
        if code != 0:
            raise Broken(f"{self} ended with {code} when it was told to leave")

    def used(self) -> tuple[float, float]:
        """Cores, on the average since its start, and MiB of memory now; its children included."""
        own = psutil.Process(self._process.pid)
        all_of_it = [own, *own.children(recursive=True)]
        cpu_seconds = sum(sum(each.cpu_times()[:2]) for each in all_of_it)
        alive_seconds = SystemClock().now().timestamp() - own.create_time()
        return cpu_seconds / alive_seconds, sum(each.memory_info().rss for each in all_of_it) / 2**20

    def kill(self) -> None:
        """With its children: at the end of a test that has failed."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _answers(self, probe: Manifest) -> bool:
        ports = {port["name"]: port["containerPort"] for port in self._main["ports"]}
        if "grpc" in probe:
            return self._serves(probe["grpc"]["port"], probe["grpc"].get("service", ""))
        asked = probe["httpGet"]
        try:
            url = f"http://{self.address}:{ports[asked['port']]}{asked['path']}"
            return requests.get(url, timeout=probe.get("timeoutSeconds", 1)).status_code < 400
        except requests.RequestException:
            return False

    def _serves(self, port: int, service: str) -> bool:
        with grpc.insecure_channel(f"{self.address}:{port}") as channel:
            try:
                request = health_pb2.HealthCheckRequest(service=service)
                answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=1)
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The rest of it: what is set on this machine is no part of a cluster."""
    return {name: value for name, value in environment.items() if not name.startswith(PREFIX)}
