"""The pods of deploy/k8s/base as processes of this machine, and what happens to one that is replaced."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import grpc
import psutil
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc

from deploy.local import child, demo_rates, seed
from deploy.local.home import Home
from deploy.local.plan import PREFIX
from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from kit import migrate, schema
from kit.clock import SystemClock
from tests.k8s import manifests
from tests.k8s.manifests import Manifest, container, name, pod, process, shared_settings
from tests.kit.name_server import NameServer
from tests.support.databases import Databases
from tests.support.servers import NatsServer, PostgresServer

SERVICES: Final = ("merchants", "catalog", "invoices", "withdrawals", "webhooks")
DOMAIN: Final = "rolling.test"
INVOICE_TTL_SECONDS: Final = 5
START_SECONDS: Final = 120
READY_EVERY_SECONDS: Final = 0.1
READY_ANSWERS: Final = 10
GATEWAY_PORT: Final = 8080
MASTER_KEY: Final = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


class Broken(Exception):
    """A pod did what Kubernetes would have had to repair."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How much sooner things happen than on a cluster.

    leaving_seconds  how long a pod is still called after it was told to leave; None: as its preStop says
    """

    leaving_seconds: float | None = None


class Endpoints:
    """Which pods of a Service are ready: told by a name server, as a cluster tells of a headless Service."""

    def __init__(self) -> None:
        self._names = NameServer()
        self._lock = threading.Lock()
        self._ready: dict[str, list[str]] = {}
        self._server = socketserver.ThreadingUDPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def target(self, service: str, port: int) -> str:
        """What a client of ours is given for the service's address: the name, and who knows it."""
        return f"dns://127.0.0.1:{self._server.server_address[1]}/{service}.{DOMAIN}:{port}"

    def of(self, service: str) -> Sequence[str]:
        with self._lock:
            return list(self._ready.get(service, ()))

    def add(self, service: str, address: str) -> None:
        self._change(service, lambda ready: ready.append(address))

    def remove(self, service: str, address: str) -> None:
        self._change(service, lambda ready: ready.remove(address))

    def _change(self, service: str, change: Callable[[list[str]], None]) -> None:
        with self._lock:
            ready = self._ready.setdefault(service, [])
            change(ready)
            self._names.tell(f"{service}.{DOMAIN}", list(ready))

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        names = self._names

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                wire, reply_to = self.request
                if (answer := names.answer(wire)) is not None:
                    reply_to.sendto(answer, self.client_address)

        return Handler


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
                env=_without_settings(os.environ) | dict(environment),
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
        """What Kubernetes does to a pod it deletes. Its callers hear of it halfway through its preStop.
        Raises Broken when it has to be killed, or ends otherwise than it should.
        """
        pre_stop_seconds = 0
        if "lifecycle" in self._main:
            _, seconds = self._main["lifecycle"]["preStop"]["exec"]["command"]
            pre_stop_seconds = int(seconds)
        leaving_seconds = pre_stop_seconds if pace.leaving_seconds is None else pace.leaving_seconds
        rest = threading.Event()
        rest.wait(leaving_seconds / 2)
        unlist()
        rest.wait(leaving_seconds / 2)
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


class Cluster:
    """Use as a context manager: all pods are ready when the block begins, and gone at its end."""

    def __init__(self, folder: Path, *, pace: Pace) -> None:
        self.folder = folder
        self.endpoints = Endpoints()
        self.restarts = 0
        self._pace = pace
        self._opened = ExitStack()
        self._lock = threading.Lock()
        # They die with the thread that started them, not only with this process (deploy.local.child): so one for all.
        self._starter = ThreadPoolExecutor(1)
        self._network = f"127.{64 + os.getpid() % 128}.{os.getpid() // 128 % 256}"
        self._addresses = iter(range(1, 255))
        self._pods: dict[str, list[Pod]] = {name(each): [] for each in manifests.DEPLOYMENTS}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            (self.folder / "postgres").mkdir(parents=True)
            self._postgres = PostgresServer(self.folder / "postgres")
            self._nats = NatsServer(self.folder / "nats")
            for server in (self._postgres, self._nats):
                opened.callback(server.stop)
                server.start()
            opened.enter_context(self.endpoints)
            opened.enter_context(self._rates())
            databases = Databases(self._postgres)
            # As the version before has left them: `migrate` comes when it comes.
            self._database_urls = {each: databases.fresh(each, schema.needs(each)) for each in SERVICES}
            opened.enter_context(self._starter)
            opened.callback(self._stop_pods)
            self._start_pods()
            home = Home(self.folder / "home")
            home.prepare()
            seed.seed(home, {"services": {each: {"address": self.address(each)} for each in SERVICES}})
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def url(self) -> str:
        """The gateway's; `endpoints` knows who that is."""
        return f"http://gateway:{GATEWAY_PORT}"

    def address(self, service: str) -> str:
        """Of a service: all its ready pods, as they come and go."""
        port = int(shared_settings()[f"{PREFIX}{service.upper()}_ADDRESS"].partition(":")[2])
        return self.endpoints.target(service, port)

    def admin_url(self, database: str) -> str:
        """A superuser's URL of a service's database."""
        path = self._database_urls[database].rpartition("/")[2]
        return f"{self._postgres.admin_url.rpartition('/')[0]}/{path}"

    def cli(self, *arguments: str) -> Any:
        """What `fiatgate ARGUMENTS --json` prints, parsed."""
        result = subprocess.run(
            [sys.executable, "-m", "cli", *arguments, "--json"],
            cwd=manifests.ROOT,
            env=dict(os.environ) | self._settings(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return json.loads(result.stdout) if result.stdout else {"ok": False, "problems": [result.stderr]}

    def unmigrated(self) -> list[str]:
        """Services whose newest migration has not run."""
        return [each for each, url in self._database_urls.items() if not migrate.is_current(each, url)]

    def began_before_migration(self) -> int:
        """Pods that found the schema of the version before at their start."""
        return sum('"schema behind"' in each.read_text() for each in self.folder.glob("*.log"))

    def used(self) -> dict[str, tuple[float, float]]:
        """By Deployment, the most that one of its pods uses: cores since its start, MiB."""
        most: dict[str, tuple[float, float]] = {}
        for each, pods in self._pods.items():
            cores, memory = zip(*(one.used() for one in pods), strict=True)
            most[each] = max(cores), max(memory)
        return most

    # -- rolling

    def roll(self, deployment: Manifest, order: Sequence[int], *, tell: Callable[[str], None]) -> None:
        """Replace its pods one after the other, in this order: the next one is ready before one leaves."""
        assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
        old = list(self._pods[name(deployment)])
        with ThreadPoolExecutor(len(old)) as leaving:
            left: list[Future[None]] = []
            for number in order:
                new = self._start(deployment)
                self._join(deployment, new)
                tell(f"{new} replaces {old[number].address}")
                left.append(leaving.submit(self._leave, deployment, old[number], tell))
        for each in left:
            each.result()

    def migrate(self) -> None:
        """The Jobs of all services at once. Raises Broken when one fails."""
        jobs = manifests.of_kind("Job")
        with ThreadPoolExecutor(len(jobs)) as threads:
            for _ in threads.map(self._run_job, jobs):
                pass

    def _run_job(self, job: Manifest) -> None:
        python, *arguments = container(job)["command"]
        assert python == "python"
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=manifests.ROOT,
            env=_without_settings(os.environ) | self._environment(job, "127.0.0.1"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if ended.returncode != 0:
            raise Broken(f"{name(job)} ended with {ended.returncode}: {ended.stderr}")

    def _start_pods(self) -> None:
        with ThreadPoolExecutor(len(manifests.DEPLOYMENTS)) as threads:
            # The gateway's pods are ready once all services are, so all at once.
            started = [
                threads.submit(self._join, each, self._start(each))
                for each in manifests.DEPLOYMENTS
                for _ in range(replicas(each))
            ]
        for joined in started:
            joined.result()
        # Each of the gateway's workers has to have found the services, not only the one that its probe reached.
        for address in self.endpoints.of("gateway"):
            wait_until(
                lambda asked=address: all(_is_ready(asked) for _ in range(READY_ANSWERS)),  # type: ignore[misc]
                "all workers of the gateway",
                timeout_seconds=START_SECONDS,
            )

    def _start(self, deployment: Manifest) -> Pod:
        with self._lock:
            address = f"{self._network}.{next(self._addresses)}"
            log = self.folder / f"{name(deployment)}-{address}.log"
            made = self._starter.submit(
                Pod, deployment, address, self._environment(deployment, address), log
            ).result()
            self._pods[name(deployment)].append(made)
        return made

    def _join(self, deployment: Manifest, new: Pod) -> None:
        new.wait_until_ready()
        threading.Event().wait(deployment["spec"].get("minReadySeconds", 0))
        if service := _service_of(deployment):
            self.endpoints.add(service, new.address)

    def _leave(self, deployment: Manifest, old: Pod, tell: Callable[[str], None]) -> None:
        service = _service_of(deployment)
        old.leave(self._pace, lambda: self.endpoints.remove(service, old.address) if service else None)
        tell(f"{old} has left")
        with self._lock:
            self._pods[name(deployment)].remove(old)
            self.restarts += 1

    def _stop_pods(self) -> None:
        for each in [each for pods in self._pods.values() for each in pods]:
            each.kill()

    # -- what they are told

    def _environment(self, deployment: Manifest, address: str) -> dict[str, str]:
        """Of the manifest, with addresses of this machine and secrets of this test."""
        secrets = {"database-url": "", "master-keys": MASTER_KEY, "url": self._nats.url}
        if process(deployment) in SERVICES:
            secrets["database-url"] = self._database_urls[process(deployment)]
        own = {
            each["name"]: each["value"].replace("0.0.0.0", address)
            if "value" in each
            else secrets[each["valueFrom"]["secretKeyRef"]["key"]]
            for each in container(deployment)["env"]
        }
        metrics = shared_settings()["FIATGATE_METRICS_BIND"].replace("0.0.0.0", address)
        return self._settings() | {"FIATGATE_METRICS_BIND": metrics} | own

    def _settings(self) -> dict[str, str]:
        return {
            **shared_settings(),
            **{f"{PREFIX}{each.upper()}_ADDRESS": self.address(each) for each in SERVICES},
            "FIATGATE_INVOICE_TTL_SECONDS": str(INVOICE_TTL_SECONDS),
            "FIATGATE_WEBHOOK_ALLOW_PRIVATE": "on",
            "FIATGATE_RATE_ALLOW_PRIVATE": "on",
            "FIATGATE_RATE_SOURCES": json.dumps(demo_rates.sources(self._rates_port)),
            "FIATGATE_RATE_LIMIT_PER_MINUTE": "600000",
            "FIATGATE_LOG_LEVEL": "warning",
        }

    @contextmanager
    def _rates(self) -> Iterator[None]:
        self._rates_port = free_ports(1)[0]
        rates = subprocess.Popen(demo_rates.command(self._rates_port), cwd=manifests.ROOT)
        try:
            yield
        finally:
            rates.terminate()
            rates.wait()


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(PREFIX)}


def _is_ready(gateway: str) -> bool:
    return requests.get(f"http://{gateway}:{GATEWAY_PORT}/readyz", timeout=5).status_code == 200


def replicas(deployment: Manifest) -> int:
    (scaled,) = [
        each["spec"]["minReplicas"]
        for each in manifests.of_kind("HorizontalPodAutoscaler")
        if name(each) == name(deployment)
    ] or [deployment["spec"]["replicas"]]
    return int(scaled)


def _service_of(deployment: Manifest) -> str | None:
    """The Service that leads to its pods, if one does."""
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for each in manifests.of_kind("Service"):
        if each["spec"]["selector"].items() <= labels.items():
            return name(each)
    return None
